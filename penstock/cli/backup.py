"""penstock backup, backup list, restore: a whole deployment into a vault and out of it."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from penstock.cli import app
from penstock.cli.backup_key import KEY, UNSIGNED, Key, Unsigned, open_vault, signing_key
from penstock.cli.options import DATA_DIR, DataDir, messages
from penstock.errors import ConfigError, StateError
from penstock.mesh.layout import Layout
from penstock.mesh.process import UMASK

if TYPE_CHECKING:
    from typer._click.core import Context

#: what a place without a command means
_MAKE = "make"
#: a table of a pipe is not cut
_LEAST_WIDTH = 120


class _PlaceOrCommand(TyperGroup):
    """`penstock backup PLACE` makes a backup, `penstock backup list PLACE` lists them."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = [_MAKE, *args]
        return super().parse_args(ctx, args)


commands = typer.Typer(
    cls=_PlaceOrCommand,
    help=(
        "Back up a whole mesh: `penstock backup PLACE`. PLACE is a directory or a URL of fsspec;"
        " a directory called list is ./list."
    ),
    no_args_is_help=True,
)
app.add_typer(commands, name="backup")
Target = Annotated[
    str,
    typer.Argument(
        help="directory or fsspec URL of the backups; several share what is the same in them"
    ),
]


@commands.command(_MAKE, hidden=True)
def backup_command(target: Target, data_dir: DataDir = DATA_DIR) -> None:
    """Back up a whole mesh, running or not: catalog, segments, offsets, state. Its passwords are
    not in it.

    Example: penstock backup ./copies
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from penstock.mesh.deployment import backup
    from penstock.storage.vault import Vault

    os.umask(UMASK)
    layout = Layout(data_dir.expanduser().absolute())
    if target.startswith("/") and layout.root in (
        resolved := Layout(type(layout.root)(target)).root,
        *resolved.parents,
    ):
        raise ConfigError(
            "a backup inside of what it backs up helps nobody", hint="name a directory elsewhere"
        )
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=messages()
    ) as progress:
        task = progress.add_task("files", total=None)

        def advance(_path: str, number: int, count: int) -> None:
            progress.update(task, completed=number, total=count)

        done = backup(layout, Vault(target, signing_key(layout)), time.time_ns() // 10**6, advance)
    size = done.backup.size / 1e6
    print(
        f"{done.backup.name}: {done.backup.facts['files']} files, {size:.1f} MB; the mesh stood"
        f" still for {done.paused * 1000:.0f} ms"
    )


@commands.command("list")
def list_command(target: Target, data_dir: DataDir = DATA_DIR, key: Key = KEY) -> None:
    """List the backups in a place, the newest first.

    `signed` says whether this mesh's key (or --key) has signed it: others need --unsigned to be
    restored.

    Example: penstock backup list ./copies
    """
    from rich.console import Console
    from rich.table import Table

    from penstock.mesh.deployment import SUBJECT
    from penstock.storage.vault import mask_login

    vault = open_vault(target, Layout(data_dir.expanduser().absolute()), key, unsigned=True)
    found = vault.backups(SUBJECT)
    if not found:
        raise StateError(
            f"there are no backups in {mask_login(target)}", hint="penstock backup makes one"
        )
    table = Table(box=None, pad_edge=False)
    for heading in ("backup", "taken", "files", "MB", "signed"):
        table.add_column(
            heading, justify="right" if heading in ("files", "MB") else "left", no_wrap=True
        )
    for made in found:
        taken = datetime.fromtimestamp(made.time / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        signed = "yes" if made.signed else "no"
        table.add_row(made.name, taken, str(made.facts["files"]), f"{made.size / 1e6:.1f}", signed)
    width = max(Console().width, _LEAST_WIDTH)
    Console(highlight=False, width=width).print(table, markup=False)


@app.command("restore")
def restore_command(
    target: Target,
    data_dir: DataDir = DATA_DIR,
    name: Annotated[
        str | None, typer.Option("--backup", help="a backup by its name; default: the newest")
    ] = None,
    key: Key = KEY,
    unsigned: Unsigned = UNSIGNED,
) -> None:
    """Restore a whole mesh into an empty data directory; `penstock up` starts it. It gets new
    passwords.
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from penstock.mesh.deployment import SUBJECT, restore
    from penstock.storage.vault import mask_login

    os.umask(UMASK)
    vault = open_vault(target, Layout(data_dir.expanduser().absolute()), key, unsigned=unsigned)
    found = [b for b in vault.backups(SUBJECT) if name in (None, b.name)]
    if not found:
        raise StateError(
            f"no such backup in {mask_login(target)}",
            detail=", ".join(b.name for b in vault.backups(SUBJECT)) or "it holds none",
        )
    with Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=messages()
    ) as progress:
        task = progress.add_task(found[0].name, total=found[0].size)
        restore(
            Layout(data_dir.expanduser().absolute()),
            vault,
            found[0],
            lambda item: progress.advance(task, item.size),
        )
    print(f"{found[0].name}: {found[0].facts['files']} files restored")
