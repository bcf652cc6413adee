"""penstock export: a whole table in a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import app
from penstock.cli.completion import complete_table
from penstock.cli.gateway import PasswordFile, Url, User, connection
from penstock.cli.options import DATA_DIR, DataDir
from penstock.errors import ConfigError


@app.command()
def export(
    table: Annotated[
        str,
        typer.Argument(
            help="DATABASE.TABLE: a supertable, child table, plain table or result table",
            autocompletion=complete_table,
        ),
    ],
    out: Annotated[Path, typer.Argument(help="the Parquet file to write")],
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    user: User = "root",
    password_file: PasswordFile = None,
) -> None:
    """Write all rows of a table to a Parquet file, in order of time.

    Example: penstock export power.meters meters.parquet
    """
    if "." not in table:
        raise ConfigError(f"which database is {table} in?", hint="write DATABASE.TABLE")
    from penstock.cli import export_file

    with connection(data_dir, url, user, password_file) as client:
        export_file.write(client, table, out)
