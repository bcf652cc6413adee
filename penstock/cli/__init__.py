"""The `penstock` command. Each subject has a file that adds its commands to `app`; errors end in
one place, without a traceback.
"""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from penstock.config.settings import EXIT_CONFIG
from penstock.errors import ConfigError, PenstockError

app = typer.Typer(
    name="penstock",
    help="Windows over Kafka in SQL: a mesh of small services on one machine or many.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run one command line; exit status 78 for a wrong configuration, 1 for any other error."""
    # - importing adds their commands
    from penstock.cli import backup, demo, doctor, mesh, query, snode  # noqa: F401

    try:
        app()
    except PenstockError as wrong:
        Console(stderr=True, highlight=False).print(str(wrong), markup=False, soft_wrap=True)
        sys.exit(EXIT_CONFIG if isinstance(wrong, ConfigError) else 1)
