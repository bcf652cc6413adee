"""penstock sql: statements from the command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import app
from penstock.cli.gateway import PasswordFile, Url, User, connection
from penstock.cli.options import DATA_DIR, DataDir, Form
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.client.connection import Connection

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
    """Run SQL and print the rows of the last statement; without one, open a prompt.

    Statements come from standard input when that is no terminal.

    Example: penstock sql "SELECT count(*) FROM power.meters"
    """
    if statement is None and file is None and sys.stdin.isatty():
        with connection(data_dir, url, user, password_file) as client:
            client.database = database
            _prompt(client)
        return
    text = _statements(statement, file)
    with connection(data_dir, url, user, password_file) as client:
        result = client.query(text, database=database)
    from penstock.cli.output import write

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


def _prompt(client: Connection) -> None:
    # the line editor costs every other command a tenth of a second
    from penstock.cli.prompt import loop

    loop.run(client, sys.stdout, history_file())


def history_file() -> Path:
    """Return where what is typed at the prompt is kept."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "penstock" / "history"


def _statements(statement: str | None, file: Path | None) -> str:
    """Return the text to run: given, of a file, or of standard input. Raises ConfigError."""
    if statement is not None and file is not None:
        raise ConfigError(
            "which statement?", hint='penstock sql "SELECT …", or penstock sql -f FILE'
        )
    if statement is not None:
        return statement
    try:
        if file is None or str(file) == "-":
            return sys.stdin.read()
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise ConfigError(f"{file or 'standard input'} cannot be read", detail=str(wrong)) from None
