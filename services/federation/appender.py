"""Rows that another deployment sends, into the log of one of our tables, each exactly once.

A producer's rows carry their place in its own log (`_offset`, `_row`). Every record written for it
is stamped with the place of its last row; what a partition of ours holds already is learnt from the
store's positions and the log behind them, so a row that is sent again, after whatever crash of
whichever side, is recognised and left out. The stamps are those of every producer, so readers drop
repeats as well.

Refused: rows that do not fit the table, whole (`E_ROW`); one that no record can hold, too
(`E_ROW_TOO_LARGE`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import polars as pl
import pyarrow as pa

from penstock import readable, segments
from penstock.bus import Admin, Delivery, Publisher, Reader
from penstock.catalog.model import Table
from penstock.codec import TableCodec, schema_ids
from penstock.errors import BusError, PenstockError, SchemaError
from penstock.gate import Gate
from penstock.names import CONTROL_SCHEMA_ID
from penstock.partition import partition as partition_number
from penstock.partition import partition_of
from penstock.records import ControlRecord, decode, encode
from penstock.types import TIME_LIMITS

#: rows of one record, before their size is known
_RECORD_ROWS = 5_000
_RECORD_BYTES = 256 * 1024
_NOWHERE = (-1, -1)
LogPlace = tuple[int, int]


def read_places(
    bootstrap: str, admin: Admin, segments_dir: str, owner: int, table: Table, producer: str
) -> dict[int, LogPlace]:
    """The place of the last row of *producer* in each partition of the table's topic. Reads the log
    from where segments end.
    """
    places: dict[int, LogPlace] = {}
    begin: dict[tuple[str, int], int] = {}
    partitions = [(table.topic, p) for p in range(table.partitions)]
    starts = admin.start_offsets(partitions)
    ends = admin.end_offsets(partitions)
    for topic, partition in partitions:
        position = segments.Position.load(segments_dir, topic, partition, owner)
        if producer in position.producers:
            places[partition] = position.producers[producer]
        offset = max(position.next, starts[topic, partition])
        if offset < ends[topic, partition]:
            begin[topic, partition] = offset
    if not begin:
        return places
    codecs = [TableCodec(table, i) for i in table.schema_ids]
    wanted = producer.encode()
    with Reader(bootstrap, begin, client_id="federation-held") as reader:
        while begin:
            for batch in reader.read():
                ids = schema_ids(batch.values)
                for codec in codecs:
                    mine = [
                        v
                        for v, i in zip(batch.values, ids, strict=True)
                        if i == codec.schema_id and v is not None and wanted in v
                    ]
                    if mine:
                        records = codec.decode(mine).records.filter(pl.col("producer") == producer)
                        for offset, ordinal in records.select("offset", "ordinal").iter_rows():
                            places[batch.partition] = max(
                                places.get(batch.partition, _NOWHERE), (offset, ordinal)
                            )
                for value in (
                    v
                    for v, i in zip(batch.values, ids, strict=True)
                    if i == CONTROL_SCHEMA_ID and v is not None and wanted in v
                ):
                    with contextlib.suppress(SchemaError):
                        control = decode(ControlRecord, value)
                        if control.producer == producer:
                            place = (control.offset, control.ordinal)
                            places[batch.partition] = max(
                                places.get(batch.partition, _NOWHERE), place
                            )
                if batch.next_offset >= ends[batch.topic, batch.partition]:
                    begin.pop((batch.topic, batch.partition), None)
    return places


class LogAppender:
    """Takes the rows of one producer (None: of nobody in particular) for one table. Thread-safe."""

    def __init__(
        self,
        table: Callable[[], Table | None],
        producer: str | None,
        bus: Publisher,
        places: dict[int, LogPlace],
        partitions: int,
        gate: Gate,
    ) -> None:
        """`places`: see `read_places`; they are of a topic with *partitions*."""
        self._table = table
        self._producer = producer
        self._bus = bus
        self._places = places
        self._gate = gate
        self.partitions = partitions
        self._lock = threading.Lock()
        self._under_way: set[Future[int]] = set()
        self.broken: BusError | None = None
        #: a write failed, so that what is there is not what was sent
        self._unknown = False

    def append(self, rows: pa.Table, acked: Callable[[str, int, int], None]) -> Future[int]:
        """Write rows; once all replicas have them the future has the number of those that were not
        there before.

        Args:
            rows: `_op` and `tbname` where known, `_time`, the table's columns by name; of a
                producer also `_offset` and `_row`.
            acked: told topic, partition and offset of each record.

        Raises:
            SchemaError: the rows do not fit.
            BusError: an earlier write of this producer failed, so that what is there has to be
                looked up again.
        """
        with self._lock:
            table = self._current()
            frame = conform(rows, table)
            records, fresh = self._records(table, frame)
            done: Future[int] = Future()
            if not records:
                done.set_result(0)
                return done
            self._begin(table, done)
            left = _Count(len(records), fresh, done, self._fail)
            self._send(table.topic, records, left, acked)
            return done

    def delete(
        self,
        tables: Sequence[str] | None,
        partition: int | None,
        low: int,
        high: int,
        offset: int,
        acked: Callable[[str, int, int], None],
    ) -> Future[int]:
        """A DELETE of a range (low <= time <= high, ticks) that stands at *offset* of the
        producer's log, in its place among the rows.

        Args:
            tables: the child tables it takes from; None: all of *partition*, or (None as well) of
                the table.

        Raises:
            SchemaError: the table is gone.
            BusError: as for `append`.
        """
        with self._lock:
            table = self._current()
            if table.kind != "stable":
                tables = (table.name,)
            if tables is not None:
                where = sorted({partition_number(t, table.partitions) for t in tables})
            else:
                where = list(range(table.partitions)) if partition is None else [partition]
            fresh = [p for p in where if (offset, 0) > self._places.get(p, _NOWHERE)]
            names_ = None if tables is None else tuple(tables)
            control = ControlRecord(
                "delete",
                table=table.id,
                tables=names_,
                low=low,
                high=high,
                producer=self._producer,
                offset=offset,
                ordinal=0,
            )
            done: Future[int] = Future()
            if not fresh:
                done.set_result(0)
                return done
            self._begin(table, done)
            self._send(
                table.topic,
                [(p, encode(control)) for p in fresh],
                _Count(len(fresh), 0, done, self._fail),
                acked,
            )
            if self._producer is not None:
                self._places |= dict.fromkeys(fresh, (offset, 0))
            return done

    def _current(self) -> Table:
        """The table as it is now. Partitions that are new hold what of their tables the ones held
        that these tables were in before.
        """
        table = writable(self._table, self.broken)
        if table.partitions > self.partitions:
            parents = {p: p % self.partitions for p in range(self.partitions, table.partitions)}
            self._places |= {
                p: self._places[parent] for p, parent in parents.items() if parent in self._places
            }
            self.partitions = table.partitions
        return table

    def _begin(self, table: Table, done: Future[int]) -> None:
        """Count a write that is about to go. Raises BusError, and is of no more use, while the
        table's partitions change.
        """
        if not self._gate.enter(table.topic):
            # the peer opens another appender, which looks up what is there
            moving = BusError(
                f"partitions of {table.database} are being changed",
                code="E_MOVING",
                hint="send it again",
                retryable=True,
            )
            self._fail(moving)
            raise moving
        self._under_way.add(done)
        done.add_done_callback(self._under_way.discard)
        done.add_done_callback(lambda _: self._gate.leave(table.topic))

    def _send(
        self,
        topic: str,
        records: Sequence[tuple[int, bytes]],
        left: _Count,
        acked: Callable[[str, int, int], None],
    ) -> None:
        def delivered(result: Delivery | BusError) -> None:
            if not isinstance(result, BusError):
                acked(result.topic, result.partition, result.offset)
            left.delivered(result)

        for partition, value in records:
            try:
                self._bus.send(topic, value, partition=partition, on_delivery=delivered)
            except BusError as error:
                left.delivered(error)

    def _records(self, table: Table, frame: pl.DataFrame) -> tuple[list[tuple[int, bytes]], int]:
        codec = TableCodec(table)
        frame = frame.with_columns(_to=partition_of(frame["tbname"], table.partitions))
        made: list[tuple[int, bytes]] = []
        reached: dict[int, LogPlace] = {}
        fresh = 0
        for partition in sorted(frame["_to"].unique().to_list()):
            part = frame.filter(pl.col("_to") == partition) if table.partitions > 1 else frame
            if self._producer is not None:
                offset, row = self._places.get(partition, _NOWHERE)
                part = part.filter(
                    (pl.col("_offset") > offset)
                    | ((pl.col("_offset") == offset) & (pl.col("_row") > row))
                )
            fresh += part.height
            for piece in part.iter_slices(_RECORD_ROWS):
                made += [(partition, value) for value in self._values(codec, piece)]
            if self._producer is not None and part.height:
                reached[partition] = _place(part, -1)
        self._places |= reached  # only now: a row that no record can hold refuses the frame whole
        return made, fresh

    def _values(self, codec: TableCodec, rows: pl.DataFrame) -> list[bytes]:
        """Records of *rows*, each stamped with the place of its last row, wherever they are cut."""
        stamp: dict[str, int | str | None] = {}
        if self._producer is not None:
            (offset, row), (first, _) = _place(rows, -1), _place(rows, 0)
            stamp = {
                "producer": self._producer,
                "from_offset": first,
                "offset": offset,
                "ordinal": row,
            }
        values = codec.encode(
            rows.drop("_to", "_offset", "_row", strict=False),
            max_bytes=_RECORD_BYTES,
            **stamp,  # type: ignore[arg-type]
        )
        if len(values) < 2 or self._producer is None:
            return values
        half = rows.height // 2
        return [*self._values(codec, rows[:half]), *self._values(codec, rows[half:])]

    def _fail(self, error: BusError) -> None:
        self.broken = error
        self._unknown = True

    def close(self, patience: float) -> dict[int, LogPlace] | None:
        """Take nothing more, and wait until what is under way has an end; what is there then,
        unless a write failed.
        """
        with self._lock:
            self.broken = self.broken or BusError(
                "another connection writes for this producer now", code="E_FENCED"
            )
        for future in list(self._under_way):
            future.exception(patience)
        return None if self._unknown else dict(self._places)


class _Count:
    """Counts deliveries; the last one settles the future."""

    def __init__(
        self, records: int, rows: int, done: Future[int], fail: Callable[[BusError], None]
    ) -> None:
        self._left = records
        self._rows = rows
        self._done = done
        self._fail = fail
        self._error: BusError | None = None
        self._lock = threading.Lock()

    def delivered(self, result: Delivery | BusError) -> None:
        with self._lock:
            if isinstance(result, BusError):
                self._error = self._error or result
                self._fail(result)
            self._left -= 1
            if self._left:
                return
        if self._error is None:
            self._done.set_result(self._rows)
        else:
            self._done.set_exception(self._error)


def _place(rows: pl.DataFrame, at: int) -> LogPlace:
    return int(rows["_offset"][at]), int(rows["_row"][at])


def writable(table: Callable[[], Table | None], broken: PenstockError | None) -> Table:
    """What *table* gives. Raises *broken*, or SchemaError (`E_NO_TABLE`) when it was dropped."""
    if broken is not None:
        raise broken
    found = table()
    if found is None:
        raise SchemaError("the table was dropped", code="E_NO_TABLE")
    return found


def conform(rows: pa.Table, table: Table) -> pl.DataFrame:
    """*rows* in the table's own types, times as ticks; columns that are missing are NULL. Raises
    SchemaError (`E_ROW`).
    """
    given = {name.lower(): name for name in rows.column_names}
    arrays: dict[str, pa.ChunkedArray | pa.Array] = {}
    unknown = (
        set(given)
        - {"_op", "tbname", "_time", "_offset", "_row"}
        - {c.name.lower() for c in (*table.columns, *table.tags)}
    )
    if unknown:
        raise SchemaError(
            f"{table.name} has no column {sorted(unknown)[0]}",
            code="E_ROW",
            hint="was the table altered?",
        )
    for column in (*table.columns, *table.tags):
        name = given.get(column.name.lower()) or (
            given.get("_time") if column == table.columns[0] else None
        )
        if name is None:
            continue
        kind = column.type.arrow(table.precision)
        array = rows.column(name)
        try:
            array = array if array.type == kind else array.cast(kind)
            arrays[column.name] = (
                array.cast(pa.int64()) if column.type.kind == "TIMESTAMP" else array
            )
        except pa.ArrowException as wrong:
            raise SchemaError(
                f'column "{column.name}" is {column.type}', code="E_ROW", detail=str(wrong)[:200]
            ) from None
        readable.check(pl.Series(arrays[column.name]), column, TIME_LIMITS[table.precision])
        if column.type.sized:
            _check_length(
                pl.Series(arrays[column.name]), column.name, column.type.kind, column.type.length
            )
    time = arrays.get(table.time_column)
    if time is None or time.null_count:
        raise SchemaError(f'a row has no time in "{table.time_column}"', code="E_ROW")
    if table.kind == "stable":
        if "tbname" not in given or rows.column(given["tbname"]).null_count:
            raise SchemaError(
                f"rows of supertable {table.name} name their child table in tbname", code="E_ROW"
            )
        tbname = pl.Series(rows.column(given["tbname"]).cast(pa.string()))
    else:
        tbname = pl.repeat(table.name, rows.num_rows, dtype=pl.String, eager=True)
    frame = pl.DataFrame(
        {"tbname": tbname, **{name: pl.Series(array) for name, array in arrays.items()}}
    )
    op = (
        pl.Series(rows.column("_op").cast(pa.int8()))
        if "_op" in given
        else pl.repeat(0, rows.num_rows, dtype=pl.Int8, eager=True)
    )
    frame = frame.with_columns(op.alias("_op"))
    for name in ("_offset", "_row"):
        if name in given:
            frame = frame.with_columns(pl.Series(rows.column(name).cast(pa.int64())).alias(name))
    return frame


def _check_length(values: pl.Series, name: str, kind: str, length: int) -> None:
    sizes = (
        values.bin.size()
        if kind == "VARBINARY"
        else values.str.len_chars()
        if kind == "NCHAR"
        else values.str.len_bytes()
    )
    longest = sizes.max()
    if longest is not None and int(longest) > length:  # type: ignore[arg-type]
        raise SchemaError(
            f'a value of column "{name}" is longer than {kind}({length})',
            code="E_ROW",
            detail=str(longest),
        )
