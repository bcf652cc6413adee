"""penstock follow: rows of a table, or window events of a stream, as they come."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated, Literal

import typer

from penstock.cli import app
from penstock.cli.completion import complete_table
from penstock.cli.gateway import PasswordFile, Url, User, connection
from penstock.cli.options import DATA_DIR, DataDir, FollowForm
from penstock.errors import ConfigError

_STARTS = {"now": "latest", "earliest": "earliest"}


@app.command()
def follow(
    name: Annotated[
        str, typer.Argument(help="DATABASE.TABLE or DATABASE.STREAM", autocompletion=complete_table)
    ],
    events: Annotated[
        bool, typer.Option("--events", help="window events of a stream, not rows")
    ] = False,
    form: Annotated[
        FollowForm | None,
        typer.Option("--output", "-o", help="default: a table; ndjson through a pipe"),
    ] = None,
    start: Annotated[
        Literal["now", "earliest"],
        typer.Option("--from", help="only what is to come, or all that the log still has"),
    ] = "now",
    child: Annotated[
        list[str] | None, typer.Option(help="only this child table; may be repeated")
    ] = None,
    where: Annotated[
        str | None, typer.Option(help='only rows of a table like these: "speed > 90"')
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", "-n", min=1, help="end after so many")
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(
            min=0, help="give up after so many seconds without a connection; default: never"
        ),
    ] = None,
    database: Annotated[str | None, typer.Option(help="for a name without one")] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    user: User = "root",
    password_file: PasswordFile = None,
) -> None:
    """Show rows of a table or stream, or a stream's window events, as they come, until Ctrl-C.

    Example: penstock follow power.meters --from earliest --where "current > 10"
    """
    from penstock.cli.following.run import Following, follow_events, follow_rows
    from penstock.cli.table_name import TableName

    wanted = TableName.parse(name, database)
    if where is not None and (events or child):
        raise ConfigError("--where goes with rows of a whole table", hint="leave the others out")
    chosen = form or ("table" if sys.stdout.isatty() else "ndjson")
    asked = Following(wanted, tuple(child or ()), _STARTS[start], where, rows, chosen, patience)
    show = follow_events if events else follow_rows
    show(partial(connection, data_dir, url, user, password_file), asked)
