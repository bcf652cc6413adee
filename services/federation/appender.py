"""Rows that another deployment sends, into the log of one of our tables, each exactly once.

A producer's rows carry their place in its own log (`_offset`, `_row`). Every record written for it
is stamped with the place of its last row; what a partition of ours holds already is learnt from the
store's positions and the log behind them, so a row that is sent again, after whatever crash of
whichever side, is recognised and left out. The stamps are those of every producer, so readers drop
repeats as well.

Rows that do not fit the table are refused whole (`E_ROW`), and so is a row that no record can hold
(`E_ROW_TOO_LARGE`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future

import polars as pl
import pyarrow as pa

from penstock.bus import Delivery, Publisher
from penstock.catalog.model import Table
from penstock.codec import TableCodec
from penstock.errors import BusError, PenstockError, SchemaError
from penstock.records import ControlRecord, encode
from penstock.repartition.write_gate import Gate
from penstock.rows.partition import partition as partition_number
from penstock.rows.partition import partition_of
from penstock.rows.versions import CLEAR
from services.federation.conform import conform
from services.federation.places import NOWHERE, LogPlace

#: rows of one record, before their size is known
_RECORD_ROWS = 5_000
_RECORD_BYTES = 256 * 1024


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
        """Write a DELETE of a range (low <= time <= high, ticks) that stands at *offset* of the
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
            where = self._partitions_of(table, tables, partition)
            fresh = [p for p in where if (offset, 0) > self._places.get(p, NOWHERE)]
            control = ControlRecord(
                "delete",
                table=table.id,
                tables=None if tables is None else tuple(tables),
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

    @staticmethod
    def _partitions_of(
        table: Table, tables: Sequence[str] | None, partition: int | None
    ) -> list[int]:
        """Return the partitions that a DELETE concerns: those of the child tables that it names,
        else the one it names, else all.
        """
        if tables is not None:
            return sorted({partition_number(t, table.partitions) for t in tables})
        return list(range(table.partitions)) if partition is None else [partition]

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
        def settle(result: Delivery | BusError) -> None:
            if not isinstance(result, BusError):
                acked(result.topic, result.partition, result.offset)
            left.settle(result)

        for partition, value in records:
            try:
                self._bus.send(topic, value, partition=partition, on_delivery=settle)
            except BusError as error:
                left.settle(error)

    def _records(self, table: Table, frame: pl.DataFrame) -> tuple[list[tuple[int, bytes]], int]:
        codec = TableCodec(table)
        frame = frame.with_columns(_to=partition_of(frame["tbname"], table.partitions))
        made: list[tuple[int, bytes]] = []
        reached: dict[int, LogPlace] = {}
        fresh = 0
        for partition in sorted(frame["_to"].unique().to_list()):
            part = frame.filter(pl.col("_to") == partition) if table.partitions > 1 else frame
            if self._producer is not None:
                offset, row = self._places.get(partition, NOWHERE)
                part = part.filter(
                    (pl.col("_offset") > offset)
                    | ((pl.col("_offset") == offset) & (pl.col("_row") > row))
                )
            fresh += part.height
            for piece in _pieces(part, _RECORD_ROWS):
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
        half = _end(rows, 0, rows.height // 2)
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

    def settle(self, result: Delivery | BusError) -> None:
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


def _pieces(rows: pl.DataFrame, size: int) -> Iterator[pl.DataFrame]:
    """Yield *rows* in pieces of *size*, or one more where a CLEAR would lose its merge."""
    begin = 0
    while begin < rows.height:
        end = _end(rows, begin, begin + size)
        yield rows[begin:end]
        begin = end


def _end(rows: pl.DataFrame, begin: int, end: int) -> int:
    """Return where a piece ends that begins at *begin*: at *end*, or behind the merge there whose
    CLEAR is the row before.
    """
    end = min(end, rows.height)
    return end + (begin < end < rows.height and rows["_op"][end - 1] == CLEAR)


def _place(rows: pl.DataFrame, at: int) -> LogPlace:
    return int(rows["_offset"][at]), int(rows["_row"][at])


def writable(table: Callable[[], Table | None], broken: PenstockError | None) -> Table:
    """Return the table. Raises *broken* if there is one, or SchemaError (`E_NO_TABLE`) when the
    table was dropped.
    """
    if broken is not None:
        raise broken
    found = table()
    if found is None:
        raise SchemaError("the table was dropped", code="E_NO_TABLE")
    return found
