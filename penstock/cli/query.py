"""penstock sql: statements from the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import app
from penstock.cli.gateway import PasswordFile, Url, User, connection
from penstock.cli.options import DATA_DIR, DataDir
from penstock.cli.output import Form, write
from penstock.errors import ConfigError

#: of a table on a terminal
_SHOWN_ROWS = 1000


@app.command()
def sql(
    statement: Annotated[
        str | None, typer.Argument(help="one statement, or several separated by semicolons")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="read them from a file; `-`: standard input")
    ] = None,
    form: Annotated[Form, typer.Option("--output", "-o", help="how rows are written")] = "table",
    database: Annotated[str | None, typer.Option(help="for names without one")] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    user: User = "root",
    password_file: PasswordFile = None,
) -> None:
    """Run SQL and print the rows of the last statement.

    Example: penstock sql "SELECT count(*) FROM power.meters"
    """
    text = _statements(statement, file)
    with connection(data_dir, url, user, password_file) as client:
        result = client.query(text, database=database)
    rows = result.table
    if form == "table" and sys.stdout.isatty():
        rows = rows.slice(0, _SHOWN_ROWS)
    write(rows, form, sys.stdout)
    for notice in result.notices:
        print(notice, file=sys.stderr)
    if rows.num_rows < len(result):
        print(
            f"{rows.num_rows} of {len(result)} rows shown; `-o csv > rows.csv` writes all",
            file=sys.stderr,
        )


def _statements(statement: str | None, file: Path | None) -> str:
    """Return the text to run. Raises ConfigError."""
    if (statement is None) == (file is None):
        raise ConfigError(
            "which statement?", hint='penstock sql "SELECT …", or penstock sql -f FILE'
        )
    if file is None:
        assert statement is not None
        return statement
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise ConfigError(f"{file} cannot be read", detail=str(wrong)) from None
