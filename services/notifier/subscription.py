"""What one subscriber has had and gets next: pure decisions, no sockets and no Kafka.

A subscription turns slices into messages. It drops what it has had (by offset) and what a restarted
stream published twice (by producer and position), so a subscriber that comes back with its last
token sees every row or event exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from penstock.catalog.model import StreamEntry, Table
from penstock.codec import TableCodec
from penstock.errors import SchemaError
from penstock.feeds.cursor import Cursor
from penstock.feeds.slices import Slice
from penstock.records import EventsRecord, decode
from penstock.rows.versions import without_clears
from services.notifier.event_filter import passing
from services.notifier.message import events_of

#: what became of a row, by its `_op`
_OPS = pl.Series(["upsert", "delete", "merge"])


@dataclass(frozen=True)
class SubscriberMessage:
    """One message to the subscriber: `payload` is a JSON array of rows or events, `count` how
    many; `skipped` came before them and are left out. `traces` are those of the writes behind the
    events of `stream`.
    """

    kind: str
    payload: str
    count: int
    skipped: int = 0
    stream: str = ""
    traces: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowForm:
    """How a subscriber wants rows."""

    #: of a message only the newest so many; None: all
    limit: int | None = None
    #: whole numbers of 64 bits as text, for who reads JSON's numbers as doubles
    exact: bool = False

    def count_of(self, rows: int) -> int:
        """Return how many of *rows* come."""
        return rows if self.limit is None else min(rows, self.limit)


@dataclass(frozen=True)
class WorkCount:
    """Told of the rows that are decoded and written: once for all who follow them. From any
    thread.
    """

    decoded: Callable[[int], None] = lambda rows: None
    written: Callable[[int], None] = lambda rows: None


@dataclass(frozen=True)
class _Rows:
    """The rows of one table in a slice, decoded once for all who listen. `at` is each line's
    record, counted in the slice.
    """

    rows: pl.DataFrame
    at: pl.Series
    #: record, producer, offset and ordinal of what streams published
    stamps: list[tuple[int, str, int, int]]


#: of a slice in which no record is the table's
_NO_ROWS = _Rows(pl.DataFrame(), pl.Series("_at", [], dtype=pl.UInt32), [])


class _Codecs:
    """Codecs of one table's versions, kept as long as its definition stays."""

    def __init__(self) -> None:
        self._table: Table | None = None
        self._made: dict[int, TableCodec] = {}

    def of(self, table: Table, schema_id: int) -> TableCodec:
        if table is not self._table:
            self._table = table
            self._made = {}
        if schema_id not in self._made:
            self._made[schema_id] = TableCodec(table, schema_id)
        return self._made[schema_id]


class RowSubscription:
    """Rows of one table (a stream's result or any other); `tables` narrows to child tables."""

    def __init__(
        self,
        cursor: Cursor,
        table: Callable[[], Table | None],
        tables: Sequence[str] | None = None,
        form: RowForm | None = None,
        work: WorkCount | None = None,
    ) -> None:
        """`table` gives the present definition: columns added while subscribed show up by
        themselves.
        """
        self._work = work or WorkCount()
        self.cursor = cursor
        self._form = form or RowForm()
        self._table = table
        self._tables = [t.lower() for t in tables] if tables is not None else None
        self._codecs = _Codecs()

    def take(self, piece: Slice) -> SubscriberMessage | None:
        """The message for a slice, or None when nothing in it concerns this subscription. Moves the
        cursor.
        """
        start = self.cursor.offsets.get(piece.partition, piece.first)
        self.cursor.offsets[piece.partition] = max(piece.next, start)
        table = self._table()
        if table is None:
            return None
        key = (table.id, table.schema_ids)
        found = piece.share(("rows", *key), lambda: self._decode(piece, table))
        offsets = piece.batch.offsets
        had = [
            record
            for record, producer, offset, ordinal in found.stamps
            if offsets[record] >= start
            and self.cursor.check_seen(piece.partition, producer, offset, ordinal)
        ]
        rows = found.rows
        whole = True
        if had or start > piece.first:
            first = int(np.searchsorted(offsets, start))
            rows = rows.filter((found.at >= first) & ~found.at.is_in(had))
            whole = False
        if self._tables is not None:
            rows = rows.filter(pl.col("tbname").str.to_lowercase().is_in(self._tables))
            whole = False
        if not rows.height:
            return None
        form = self._form
        if whole:
            text = piece.share(("text", form, *key), lambda: self._write(rows))
        else:
            text = self._write(rows)
        count = form.count_of(rows.height)
        return SubscriberMessage("rows", text, count, rows.height - count)

    def _decode(self, piece: Slice, table: Table) -> _Rows:
        found = _decode(piece, table, self._codecs)
        self._work.decoded(found.rows.height)
        return found

    def _write(self, rows: pl.DataFrame) -> str:
        self._work.written(self._form.count_of(rows.height))
        return _text(rows, self._form)


def _text(rows: pl.DataFrame, form: RowForm) -> str:
    """*rows* as JSON. Through a handle of its own: polars locks the frame while it writes and asks
    for the GIL meanwhile; a thread with the same slice for another client may ask for that lock
    with the GIL in its hand, and both would wait for ever.
    """
    shown = rows.clone() if form.limit is None else rows.tail(form.limit)
    if form.exact:
        shown = shown.with_columns(pl.col(pl.Int64, pl.UInt64).cast(pl.String))
    return shown.write_json()


def _decode(piece: Slice, table: Table, codecs: _Codecs) -> _Rows:
    """Rows of *table* in a slice, as clients get them."""
    values = piece.batch.values
    frames = []
    stamps = []
    for schema_id, indexes in _runs(piece.ids.tolist(), table.schema_ids):
        decoded = codecs.of(table, schema_id).decode([values[i] for i in indexes])
        place = np.asarray(indexes, dtype=np.uint32)
        stamps += [
            (int(place[r]), producer, offset, ordinal)
            for r, producer, offset, ordinal in decoded.stamps
        ]
        rows = without_clears(decoded.rows)
        at = pl.Series("_at", place[rows["_record"].to_numpy()], dtype=pl.UInt32)
        frames.append(pl.DataFrame([*_readable(rows, table), at]))
    if not frames:
        return _NO_ROWS
    rows = pl.concat(frames) if len(frames) > 1 else frames[0]
    at = rows.drop_in_place("_at")
    return _Rows(rows, at, stamps)


class EventSubscription:
    """Window events of one stream that pass its NOTIFY clause; `tables` narrows to child tables of
    the result.
    """

    def __init__(
        self, cursor: Cursor, stream: StreamEntry, tables: Sequence[str] | None = None
    ) -> None:
        self.cursor = cursor
        self._stream = stream
        self._tables = {t.lower() for t in tables} if tables is not None else None

    def take(self, piece: Slice) -> SubscriberMessage | None:
        start = self.cursor.offsets.get(piece.partition, piece.first)
        self.cursor.offsets[piece.partition] = max(piece.next, start)
        found: list[dict[str, Any]] = []
        carried: dict[str, None] = {}
        for at, record, events in _events_of_stream(piece, self._stream):
            if at < start:
                continue
            if not self.cursor.check_seen(
                piece.partition, record.producer, record.offset, record.ordinal
            ):
                mine = [
                    e
                    for e in events
                    if self._tables is None or str(e.get("tableName")).lower() in self._tables
                ]
                found += mine
                if mine and record.trace is not None:
                    carried[record.trace] = None
        if not found:
            return None
        text = json.dumps(found, separators=(",", ":"))
        name = f"{self._stream.database}.{self._stream.name}"
        return SubscriberMessage("events", text, len(found), stream=name, traces=tuple(carried))


#: offset, record and events of a record of events
_FoundEvents = tuple[int, EventsRecord, list[dict[str, Any]]]


def _events_of_stream(piece: Slice, stream: StreamEntry) -> list[_FoundEvents]:
    """Return the records of one stream with the events that its NOTIFY clause lets through, worked
    out once for all who listen.
    """
    every = piece.share("events", lambda: list(_events(piece)))
    return piece.share(
        ("events", stream.id),
        lambda: [
            (at, record, passing(stream.plan, events))
            for at, record, events in every
            if record.stream == stream.id
        ],
    )


def _events(piece: Slice) -> Iterator[_FoundEvents]:
    """Offset, record and events of each record of events; others on the topic are skipped."""
    for offset, value in zip(piece.batch.offsets.tolist(), piece.batch.values, strict=True):
        try:
            record = decode(EventsRecord, value)
            yield offset, record, events_of(record)
        except (SchemaError, ValueError):
            continue


def _runs(ids: Sequence[int], wanted: Container[int]) -> list[tuple[int, list[int]]]:
    """Consecutive records of one schema id, in order; only those of *wanted* ids."""
    runs: list[tuple[int, list[int]]] = []
    for i, schema_id in enumerate(ids):
        if schema_id not in wanted:
            continue
        if runs and runs[-1][0] == schema_id:
            runs[-1][1].append(i)
        else:
            runs.append((schema_id, [i]))
    return runs


def _readable(rows: pl.DataFrame, table: Table) -> list[pl.Series]:
    """Columns as JSON can have them; `op` says upsert, delete or merge. Times stay ticks of the
    table's precision.

    Column by column: a query costs more than all of them where rows come one by one.
    """
    return [
        rows.get_column("tbname"),
        _OPS[rows.get_column("_op")].alias("op"),
        *(_as_json(rows.get_column(column.name)) for column in (*table.columns, *table.tags)),
    ]


def _as_json(column: pl.Series) -> pl.Series:
    if column.dtype == pl.Binary:
        return column.bin.encode("base64")
    return column.cast(pl.String) if isinstance(column.dtype, pl.Decimal) else column
