"""penstock follow: rows of a table, or window events of a stream, as they come."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from penstock.cli import app
from penstock.cli.completion import complete_table
from penstock.cli.following import source
from penstock.cli.following.printer import FollowForm, PiecePrinter
from penstock.cli.following.rows import events_table
from penstock.cli.gateway import PasswordFile, Url, User, connection
from penstock.cli.options import DATA_DIR, DataDir
from penstock.cli.table_name import TableName, precision_of
from penstock.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.connection import Connection

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
    database: Annotated[str | None, typer.Option(help="for a name without one")] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    user: User = "root",
    password_file: PasswordFile = None,
) -> None:
    """Show rows of a table or stream, or a stream's window events, as they come, until Ctrl-C.

    Example: penstock follow power.meters --from earliest --where "current > 10"
    """
    wanted = TableName.parse(name, database)
    if where is not None and (events or child):
        raise ConfigError("--where goes with rows of a whole table", hint="leave the others out")
    chosen = form or ("table" if sys.stdout.isatty() else "ndjson")
    printer = PiecePrinter(chosen, sys.stdout)
    begin = _STARTS[start]
    try:
        with connection(data_dir, url, user, password_file) as client:
            if events:
                _show_events(client, wanted, child or [], begin, printer, chosen, rows)
            else:
                followed = source.find(client, wanted)
                _say(f"following {followed.kind} {wanted}; Ctrl-C ends it")
                if where is not None:
                    found = source.selected(client, followed, where, begin)
                else:
                    subscription = source.subscribe(client, followed, child or [], begin)
                    found = source.pieces(subscription, followed.columns, _say)
                _show_rows(found, printer, rows)
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        # whoever read has seen enough; nothing is to be written at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    printer.close()


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _show_rows(found: Iterator[pa.Table], printer: PiecePrinter, most: int | None) -> None:
    left = most
    for piece in found:
        printer.write(piece if left is None else piece.slice(0, left))
        if left is not None:
            left -= piece.num_rows
            if left <= 0:
                return


def _show_events(
    client: Connection,
    name: TableName,
    children: list[str],
    start: str,
    printer: PiecePrinter,
    form: FollowForm,
    most: int | None,
) -> None:
    source.require_stream(client, name)
    unit = precision_of(client, name.database) or "ms"
    _say(f"following window events of {name}; Ctrl-C ends it")
    left = most
    updates = client.subscribe(str(name), what="events", tables=children or None, start=start)
    for update in updates:
        items = update.items[:left]
        if form in ("json", "ndjson"):
            printer.write_objects(json.dumps(item, ensure_ascii=False) for item in items)
        else:
            printer.write(events_table(items, unit))
        if left is not None:
            left -= len(items)
            if left <= 0:
                return
