"""The `penstock` command. Each subject has a file that adds its commands to `app`, and a line in
`lazy.PLACES`; errors end in one place, without a traceback.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from penstock import installed
from penstock.cli.lazy import LazyGroup
from penstock.errors import EXIT_CONFIG, ConfigError, PenstockError

#: what the scripts of `penstock completion` set, with what the shell asks for
_COMPLETE = "_PENSTOCK_COMPLETE"
_HELP = "Windows over Kafka in SQL: a mesh of small services on one machine or many."

app = typer.Typer(
    name="penstock",
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"penstock {installed.version()}")
        raise typer.Exit


@app.callback(help=_HELP)
def penstock(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Be a group before any command is imported."""


def main() -> None:
    """Run one command line; a terminal that gives none gets the prompt of `penstock sql`. The exit
    status is 78 for a wrong configuration, 1 for any other error.
    """
    if _COMPLETE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    alone = len(sys.argv) == 1 and sys.stdin.isatty() and sys.stdout.isatty()
    try:
        app(["sql"] if alone else None)
    except PenstockError as wrong:
        print(wrong, file=sys.stderr)
        sys.exit(EXIT_CONFIG if isinstance(wrong, ConfigError) else 1)
