"""penstock sql: statements from the command line."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from penstock.cli import app
from penstock.cli.gateway import PasswordFile, Url, User, connection
from penstock.cli.options import DATA_DIR, DataDir

_SHOWN_ROWS = 1000


@app.command()
def sql(
    statement: Annotated[
        str, typer.Argument(help="one statement, or several separated by semicolons")
    ],
    database: Annotated[str | None, typer.Option(help="for names without one")] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    user: User = "root",
    password_file: PasswordFile = None,
) -> None:
    """Run SQL and print the rows.

    Example: penstock sql "SELECT count(*) FROM power.meters"
    """
    with connection(data_dir, url, user, password_file) as client:
        result = client.query(statement, database=database)
    table = Table(box=None, pad_edge=False)
    for column in result.columns:
        table.add_column(column)
    for row in result.table.slice(0, _SHOWN_ROWS).to_pylist():
        table.add_row(*("NULL" if value is None else str(value) for value in row.values()))
    Console(highlight=False).print(table, markup=False)
    if len(result) > _SHOWN_ROWS:
        Console(stderr=True).print(
            f"{_SHOWN_ROWS} of {len(result)} rows shown; `penstock export` writes all"
        )
