"""Commands that are imported when they are called: `penstock --help` needs none of them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer
from typer.core import TyperGroup

from penstock import installed

if TYPE_CHECKING:
    from typer._click.core import Command, Context
    from typer._click.formatting import HelpFormatter
    from typer._click.shell_completion import CompletionItem


@dataclass(frozen=True)
class CommandPlace:
    """The module of a command, and a summary of at most 60 characters."""

    module: str
    summary: str


#: every command, in the order in which help shows them
PLACES = {
    "up": CommandPlace("mesh", "Start the mesh and keep it running until Ctrl-C."),
    "down": CommandPlace("mesh", "Stop what was started in the data directory."),
    "status": CommandPlace("mesh", "Show health, ports, memory and restarts of each service."),
    "logs": CommandPlace("logs", "Show what the services have logged, in order of time."),
    "restart": CommandPlace("mesh", "Stop one service and wait for its successor."),
    "setup": CommandPlace("mesh", "Fetch what pip does not bring."),
    "init": CommandPlace("mesh", "Make the topics that every mesh has."),
    "login": CommandPlace("mesh", "Print a link that logs a browser in as root."),
    "backup": CommandPlace("backup", "Back up a whole mesh, running or not; list backups."),
    "restore": CommandPlace("backup", "Restore a whole mesh into an empty data directory."),
    "sql": CommandPlace("query", "Run SQL and print the rows."),
    "follow": CommandPlace("follow", "Show rows or window events as they come."),
    "import": CommandPlace("import_file", "Write the rows of a file into a table."),
    "export": CommandPlace("export", "Write all rows of a table to a Parquet file."),
    "demo": CommandPlace("demo", "Replay 336,776 flights and check every window."),
    "top": CommandPlace("top", "Show what services and streams are doing, live."),
    "debug": CommandPlace("debug", "Pack logs, status and metrics for whoever helps."),
    "completion": CommandPlace("completion", "Print the script that completes commands by Tab."),
    "doctor": CommandPlace("doctor", "Say what is wrong with the mesh and what to do."),
    "snode": CommandPlace("snode", "Back up the stream jobs' state, and restore it."),
}


#: modules whose commands start, stop or look after a mesh on this machine
OF_A_MESH = ("mesh", "backup", "debug", "demo", "doctor", "logs", "snode", "top")


class LazyGroup(TyperGroup):
    """The group of all commands; their modules add them to `app` once they are imported."""

    def list_commands(self, ctx: Context) -> list[str]:
        return list(PLACES)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        place = PLACES.get(cmd_name)
        if place is None:
            return None
        if place.module in OF_A_MESH:
            installed.require_mesh()
        importlib.import_module(f"penstock.cli.{place.module}")
        from penstock.cli import app

        found: Command | None = typer.main.get_group(app).commands.get(cmd_name)
        return found

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Offer names and summaries: a Tab imports no command."""
        from typer._click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=place.summary)
            for name, place in PLACES.items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.summary) for name, place in PLACES.items()])
