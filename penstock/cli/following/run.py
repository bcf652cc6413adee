"""Rows and window events on the screen or in a pipe, until somebody ends it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from penstock.cli.following import source
from penstock.cli.following.printer import PiecePrinter
from penstock.cli.following.rows import events_table
from penstock.cli.options import FollowForm
from penstock.cli.table_name import TableName, precision_of
from penstock.client.connection import Connection


@dataclass(frozen=True)
class Following:
    """What is followed and how it is shown.

    Args:
        name: of a table or stream.
        children: only these child tables; none: all.
        start: `latest` or `earliest`.
        where: only rows like these.
        rows: end after so many.
        form: how rows are written.
        patience: seconds without a connection after which to give up; None: never.
    """

    name: TableName
    children: tuple[str, ...]
    start: str
    where: str | None
    rows: int | None
    form: FollowForm
    patience: float | None = None


def follow_rows(open_client: Callable[[], Connection], asked: Following) -> None:
    """Show rows as they come. Raises PenstockError."""
    with _printing(asked.form) as printer, open_client() as client:
        followed = source.find(client, asked.name)
        _say(f"following {followed.kind} {asked.name}; Ctrl-C ends it")
        if asked.where is not None:
            found = source.select_rows(
                client, followed, asked.where, asked.start, patience=asked.patience
            )
        else:
            subscription = source.subscribe(
                client, followed, list(asked.children), asked.start, patience=asked.patience
            )
            found = source.pieces(subscription, followed.columns, _say)
        _show_rows(found, printer, asked.rows)


def follow_events(open_client: Callable[[], Connection], asked: Following) -> None:
    """Show window events as they come. Raises PenstockError."""
    with _printing(asked.form) as printer, open_client() as client:
        _show_events(client, asked, printer)


@contextmanager
def _printing(form: FollowForm) -> Iterator[PiecePrinter]:
    """Give what writes rows; Ctrl-C and a reader that has seen enough end it."""
    printer = PiecePrinter(form, sys.stdout)
    try:
        yield printer
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


def _show_events(client: Connection, asked: Following, printer: PiecePrinter) -> None:
    name = asked.name
    source.require_stream(client, name)
    unit = precision_of(client, name.database) or "ms"
    _say(f"following window events of {name}; Ctrl-C ends it")
    left = asked.rows
    children = list(asked.children) or None
    updates = client.subscribe(
        str(name), what="events", tables=children, start=asked.start, patience=asked.patience
    )
    for update in updates:
        items = update.items[:left]
        if asked.form in ("json", "ndjson"):
            printer.write_objects(json.dumps(item, ensure_ascii=False) for item in items)
        else:
            printer.write(events_table(items, unit))
        if left is not None:
            left -= len(items)
            if left <= 0:
                return
