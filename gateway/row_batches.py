"""Writes of one table, made into the records that Kafka gets.

Owns checking rows together and finding the write to blame, the codecs, and how records are cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from gateway import named_nulls, row_checks, rows
from gateway.children import Children
from gateway.coalescer import PendingWrite
from gateway.layout import RowLayout
from penstock.catalog.view import Catalog
from penstock.codec import TableCodec
from penstock.errors import BusError, CatalogError, PenstockError, SchemaError
from penstock.runtime import log, traces, vital
from penstock.sql.plan import TICKS_PER_SECOND

_log = log.get("gateway.publisher")
#: a record of rows stays below this; single rows are at most a quarter of it
RECORD_BYTES = 256 * 1024
_NOTHING = pl.DataFrame()


@dataclass
class CheckedRows:
    """The rows of good writes one after the other, how many each has, and the errors of the
    others.
    """

    frame: pl.DataFrame
    writes: list[PendingWrite]
    counts: list[int]
    refused: list[tuple[PendingWrite, PenstockError]]


class RowBatches:
    """Used by the one thread that prepares rows."""

    def __init__(self, children: Children) -> None:
        self._children = children
        self._codecs: dict[tuple[int, int], TableCodec] = {}

    def check(self, group: list[PendingWrite], now: int, catalog: Catalog) -> CheckedRows:
        """Check the rows of a group: all at once when all are good, one by one to find the bad
        ones. *now* in nanoseconds.
        """
        try:
            frame, counts = self._frame(group, now, catalog)
            return CheckedRows(frame, group, counts, [])
        except PenstockError as error:
            if len(group) == 1:
                return CheckedRows(_NOTHING, [], [], [(group[0], error)])
        except vital.FAULTS:
            if len(group) == 1:
                raise
        return self._check_each(group, now, catalog)

    def _check_each(self, group: list[PendingWrite], now: int, catalog: Catalog) -> CheckedRows:
        frames: list[pl.DataFrame] = []
        good: list[PendingWrite] = []
        bad: list[tuple[PendingWrite, PenstockError]] = []
        for write in group:
            try:
                frames.append(self._frame([write], now, catalog)[0])
                good.append(write)
            except PenstockError as error:
                bad.append((write, error))
            except vital.FAULTS as bug:
                _log.exception("a write failed", rows=write.rows)
                bad.append((write, internal_error(bug)))
        whole = pl.concat(frames, how="diagonal") if frames else _NOTHING
        return CheckedRows(whole, good, [f.height for f in frames], bad)

    def _frame(
        self, group: list[PendingWrite], now: int, catalog: Catalog
    ) -> tuple[pl.DataFrame, list[int]]:
        """Return the rows of all writes, and how many each has."""
        layout = group[0].layout
        if len(group) > 1 and _are_alike(group):
            bodies = [_objects(w) for w in group]
            whole = rows.from_objects(
                layout,
                [row for body in bodies for row in body],
                child=group[0].child,
                tz=group[0].tz,
            )
            counts = [len(body) for body in bodies]
        else:
            parts = [frame_of(layout, w) for w in group]
            whole = pl.concat(parts, how="diagonal") if len(parts) > 1 else parts[0]
            counts = [p.height for p in parts]
        row_checks.check(layout, whole, now * TICKS_PER_SECOND[layout.precision] // 10**9)
        return self._children.settle(layout, whole, catalog), counts

    def encode(
        self, layout: RowLayout, checked: CheckedRows, catalog: Catalog
    ) -> Sequence[tuple[int, bytes]]:
        """Return the records of good writes, with their partitions."""
        codec = self._codec(layout, catalog)
        claim = checked.writes[0].claim
        mark = claim.trace if claim else ""
        trace = traces.stamp(traces.chosen(w.trace for w in checked.writes), mark)
        # records are cut as if nobody followed them: a retry may come without a trace
        room = RECORD_BYTES + len(trace or "") - len(mark)
        partitions = layout.partitions
        if claim is not None and claim.partitions:
            partitions = claim.partitions
        versions, sizes = named_nulls.spell_out(checked.frame, layout.values, checked.counts)
        records = codec.encode_partitioned(
            versions, partitions, writes=sizes, trace=trace, max_bytes=room
        )
        if claim is not None:
            records = claim.rest(records)
        if partitions != layout.partitions:
            # the first try was cut for the partitions that there were then
            left = codec.decode([value for _, value in records]).rows.drop("_record", "_write")
            records = codec.encode_partitioned(left, layout.partitions, trace=trace, max_bytes=room)
        return records

    def _codec(self, layout: RowLayout, catalog: Catalog) -> TableCodec:
        codec = self._codecs.get((layout.table_id, layout.schema_id))
        if codec is None:
            table = catalog.table_by_id(layout.table_id)
            if table is None:
                raise CatalogError(f'table "{layout.table}" was dropped', code="E_NO_TABLE")
            codec = self._codecs[layout.table_id, layout.schema_id] = TableCodec(
                table, layout.schema_id
            )
        return codec


def internal_error(bug: BaseException) -> BusError:
    """Return what a client is told of a fault of ours."""
    return BusError("the rows could not be written", code="E_INTERNAL", detail=type(bug).__name__)


def frame_of(layout: RowLayout, write: PendingWrite) -> pl.DataFrame:
    """Return the rows of a write. Raises SchemaError."""
    body = write.body
    if isinstance(body, pl.DataFrame):
        return body
    try:
        if isinstance(body, pa.Table):
            return rows.from_arrow(layout, body, child=write.child)
        return rows.from_objects(layout, list(body), child=write.child, tz=write.tz)
    except PenstockError:
        raise
    except vital.FAULTS as wrong:
        _log.exception("rows could not be read", table=f"{layout.database}.{layout.table}")
        raise SchemaError(
            "the rows cannot be read", code="E_BODY", detail=type(wrong).__name__
        ) from None


def _are_alike(group: Sequence[PendingWrite]) -> bool:
    """Tell whether all writes are JSON objects that are read in the same way."""
    first = group[0]
    return all(
        isinstance(w.body, list) and (w.child, w.tz) == (first.child, first.tz) for w in group
    )


def _objects(write: PendingWrite) -> list[Mapping[str, object]]:
    assert isinstance(write.body, list)
    return write.body
