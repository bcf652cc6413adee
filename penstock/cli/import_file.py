"""penstock import: rows of a CSV, NDJSON or Parquet file into a table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import app
from penstock.cli.completion import complete_table
from penstock.cli.gateway import PasswordFile, Url, User, connection
from penstock.cli.options import DATA_DIR, DataDir


@app.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(help="…csv, …tsv, …ndjson, …jsonl or …parquet")],
    table: Annotated[
        str,
        typer.Argument(
            help="DATABASE.TABLE; it is made if there is none", autocompletion=complete_table
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="make the table without asking")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="read and check everything, write nothing")
    ] = False,
    time_column: Annotated[
        str | None,
        typer.Option("--time", help="of a new table: the column with each row's time"),
    ] = None,
    tbname: Annotated[
        str | None,
        typer.Option(help="the column that names each row's child table; default: tbname"),
    ] = None,
    tags: Annotated[
        str, typer.Option(help="of a new supertable: columns that are tags, separated by commas")
    ] = "",
    delimiter: Annotated[str, typer.Option(help="between the fields of CSV")] = ",",
    cut_times: Annotated[
        bool, typer.Option("--cut-times", help="leave out digits that times have too many")
    ] = False,
    database: Annotated[str | None, typer.Option(help="for a table without one")] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    user: User = "root",
    password_file: PasswordFile = None,
) -> None:
    """Write the rows of a file into a table.

    The file is read twice: first all of it is checked, and types are found and shown. Running the
    same import again writes nothing twice. Times without a zone are UTC.

    Example: penstock import readings.csv power.meters --tbname meter --tags location
    """
    from penstock.cli.importing.run import import_rows
    from penstock.cli.importing.target import Choices
    from penstock.cli.table_name import TableName

    name = TableName.parse(table, database)
    choices = Choices(time_column, tbname, tuple(t.strip() for t in tags.split(",") if t.strip()))
    open_client = partial(connection, data_dir, url, user, password_file)
    import_rows(
        file,
        name,
        choices,
        open_client,
        delimiter=delimiter,
        cut_times=cut_times,
        dry_run=dry_run,
        yes=yes,
    )
