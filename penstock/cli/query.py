"""penstock sql, export: statements and whole tables from the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from penstock.cli import app
from penstock.cli.options import DATA_DIR, DataDir
from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.config.secret_files import read_secret
from penstock.errors import ConfigError
from penstock.mesh.running import RunningMesh
from penstock.sql.words import in_backticks

#: rows asked for at once: a slice of time is halved until it holds no more
SLICE_ROWS = 1_000_000
_SHOWN_ROWS = 1000

Url = Annotated[
    str | None, typer.Option(help="the gateway's address; default: the mesh of the data directory")
]
User = Annotated[str, typer.Option(envvar="PENSTOCK_USER")]
PasswordFile = Annotated[
    Path | None, typer.Option(envvar="PENSTOCK_PASSWORD_FILE", help="file that holds the password")
]


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


@app.command()
def export(
    table: Annotated[
        str,
        typer.Argument(
            help="DATABASE.TABLE: a supertable, child table, plain table or result table"
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
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
    )
    with (
        connection(data_dir, url, user, password_file) as client,
        Progress(*columns, console=Console(stderr=True)) as progress,
    ):
        task = progress.add_task(table, total=None)
        written = 0
        partial = out.with_name(out.name + ".part")
        with pq.ParquetWriter(partial, _schema(client, table), compression="zstd") as writer:
            for rows in slices(client, table):
                writer.write_table(rows.cast(writer.schema))
                written += rows.num_rows
                progress.update(task, completed=written)
        partial.replace(out)
        progress.update(task, total=written)
    Console(stderr=True, highlight=False).print(f"{written} rows in {out}")


def slices(client: Connection, table: str, most: int = SLICE_ROWS) -> Iterator[pa.Table]:
    """The rows of *table* in pieces of at most *most* rows, each a range of time, oldest first.

    Rows that share one moment stay together, however many.
    """
    key = in_backticks(_schema(client, table).names[0])
    whole = client.query(
        f"SELECT count(*) AS n, min({key}) AS a, max({key}) AS b FROM {table}"
    ).table
    if whole["n"][0].as_py() == 0:
        return
    first, last = (whole[name].cast(pa.int64())[0].as_py() for name in ("a", "b"))
    waiting = [(first, last)]
    while waiting:
        low, high = waiting.pop()
        where = f"WHERE {key} >= {low} AND {key} <= {high}"
        count = client.query(f"SELECT count(*) AS n FROM {table} {where}").table["n"][0].as_py()
        if count > most and low < high:
            middle = (low + high) // 2
            waiting += [(middle + 1, high), (low, middle)]
        elif count:
            yield client.query(f"SELECT * FROM {table} {where} ORDER BY {key}").table


def _schema(client: Connection, table: str) -> pa.Schema:
    schema = client.query(f"SELECT * FROM {table} LIMIT 0").table.schema
    return schema.remove_metadata()


def connection(
    data_dir: Path,
    url: str | None,
    user: str,
    password_file: Path | None,
    *,
    timeout: float = 60.0,
    notifier_url: str | None = None,
) -> Connection:
    """Connect to the mesh in *data_dir*, or to the one at *url*. Raises ConfigError, AuthError,
    RemoteError.
    """
    mesh = RunningMesh.attach(data_dir.expanduser()) if url is None else None
    if url is None and mesh is None:
        raise ConfigError(
            f"no mesh runs in {data_dir.absolute()}",
            hint="`penstock up` starts one; --url names another's gateway",
        )
    if password_file is None and mesh is None:
        raise ConfigError("which password?", hint="--password-file, or PENSTOCK_PASSWORD_FILE")
    password = ""
    if password_file:
        password = read_secret(password_file, "PENSTOCK_PASSWORD_FILE")
    elif mesh is not None:
        password = mesh.password
    if mesh is not None:
        url = url or mesh.gateway_url
    # what the services trust, the command trusts
    ca = os.environ.get("PENSTOCK_TLS_CA") or None
    return connect(
        url or "",
        user=user,
        password=password,
        options=ConnectionOptions(timeout=timeout, notifier_url=notifier_url, ca=ca),
    )
