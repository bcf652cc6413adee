"""Takes rows out of the records of an ingestion topic's partition.

What cannot be used becomes a dead letter with its reason: records that are malformed or of an
unknown schema, rows of another partition's tables, and rows too far ahead of the broker's clock.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock import tuning
from penstock.catalog.model import Table
from penstock.codec import Decoded, TableCodec
from penstock.records import DeadLetter
from penstock.rows.partition import partition as place
from penstock.rows.rows import Rows
from penstock.runtime import traces
from penstock.sql.plan import TICKS_PER_SECOND, Duration
from penstock.windows.rows import columnwise
from spark_jobs.input import Records
from spark_jobs.processor.json_rows import letter_values
from spark_jobs.processor.placement import Placement
from spark_jobs.processor.processor import PartitionProcessor
from spark_jobs.processor.route import Taken

#: what a kernel knows of a row's record, and the decoder's columns that it stands for
_HEAD = {"_step": pl.UInt32, "_offset": pl.Int64, "_now": pl.Int64}
_DECODED = ("_record", "_write")


@dataclass(frozen=True)
class _Part:
    """Rows of one schema within a chunk: `index[i]` is the place in the chunk of the codec's i-th
    record.
    """

    index: Sequence[int]
    decoded: Decoded


#: place in the chunk, producer, offset and ordinal of a record with a position
_Stamp = tuple[int, str, int, int]


class Intake:
    """The rows of one partition's records, in the kernels' input layout."""

    def __init__(self, processor: PartitionProcessor) -> None:
        self._processor = processor
        self._worker = processor.worker
        self._positions = processor.positions
        self._pending = processor.pending
        self.placement = Placement(processor.place.partition, processor.worker.kernels.tables)

    def check_only(self, records: Records) -> bool:
        """Return True if nothing is wrong with records that no stream reads; then all that has to
        be noted of them is.

        Of many tables there may be few records each. Those that look the same are decoded together;
        whatever is found, or cannot be told like this, is for `take` to judge.
        """
        if self._pending.closed:
            return False
        groups = self._group_alike(distinct(records.ids))
        if groups is None:
            return False
        stamps: list[_Stamp] = []
        for codecs in groups:
            found = self._check_alike(codecs, records)
            if found is None:
                return False
            stamps += found
        for _, producer, offset, ordinal in sorted(stamps):
            self._positions.is_repeat(producer, offset, ordinal)
        return True

    def _group_alike(self, schema_ids: Sequence[int]) -> Iterable[list[TableCodec]] | None:
        """Return decoders of the same database whose records look the same, group by group; None
        if there are records that can only be judged by themselves.
        """
        self._worker.catalog.know(schema_ids)
        alike: dict[Hashable, list[TableCodec]] = {}
        for schema_id in schema_ids:
            codec = self._worker.codecs.decoder(schema_id)
            if codec is None or codec.reads_like is None:
                return None
            alike.setdefault((codec.reads_like, codec.table.database), []).append(codec)
        return alike.values()

    def _check_alike(self, codecs: Sequence[TableCodec], records: Records) -> list[_Stamp] | None:
        """Return the producers' positions in those of *records* that *codecs* read, which look the
        same; None if anything may be wrong with them.
        """
        ids = sorted(c.schema_id for c in codecs)
        chosen = np.flatnonzero(np.isin(records.ids, ids))
        others = [i for i in ids if i != codecs[0].schema_id]
        decoded = codecs[0].decode([records.values[i] for i in chosen.tolist()], others)
        if decoded.bad:
            return None
        if decoded.rows.height:
            of_record = chosen[decoded.rows.get_column("_record").to_numpy()]
            tables = np.array([t for _, t in sorted((c.schema_id, c.table.id) for c in codecs)])
            owners = tables[np.searchsorted(ids, records.ids[of_record])]
            earliest = int(records.timestamps[chosen].min())
            table = codecs[0].table
            latest: int = decoded.rows.get_column(table.time_column).max()  # type: ignore[assignment]
            if self.placement.find_misplaced(decoded.rows, owners, table) is not None:
                return None
            if self._bound_passed(latest, table, earliest):
                return None
        return [(int(chosen[i]), *stamp) for i, *stamp in decoded.stamps]  # type: ignore[misc]

    def take(self, records: Records) -> list[Taken]:
        """Return the rows of a chunk's records, table by table."""
        parts: dict[int, list[_Part]] = {}
        tables: dict[int, Table] = {}
        schema_ids = distinct(records.ids)
        self._worker.catalog.know(schema_ids)
        for schema_id in schema_ids:
            index: Sequence[int] = range(len(records))
            if len(schema_ids) > 1:
                index = np.flatnonzero(records.ids == schema_id).tolist()
            codec = self._worker.codecs.decoder(schema_id)
            if codec is None:
                self._bury_unknown(records, index, schema_id)
                continue
            tables[codec.table.id] = codec.table
            parts.setdefault(codec.table.id, []).append(self._decode(records, index, codec))
        taken = []
        for table_id, found in parts.items():
            table = tables[table_id]
            rows = self._few(table, records, found[0]) if len(found) == 1 else None
            if rows is None:
                rows = Rows.of_frame(self._rows(table, records, found))
            if len(rows):
                taken.append(Taken(table_id, table.time_column, rows, _newest_trace(found)))
        return taken

    def _decode(self, records: Records, index: Sequence[int], codec: TableCodec) -> _Part:
        values = records.values
        if len(index) != len(records):
            values = [values[i] for i in index]
        decoded = codec.decode(values)
        for i, reason in decoded.bad:
            self._processor.bury(records, index[i], "E_MALFORMED", reason)
        return _Part(index, decoded)

    def _bury_unknown(self, records: Records, index: Sequence[int], schema_id: int) -> None:
        """Bury records under a schema id of no table, unless the table was dropped."""
        if self._worker.catalog.catalog.was_dropped(schema_id):
            return
        reason = "not framed: no zero byte and schema id in front"
        if schema_id >= 0:
            reason = f"no table has schema id {schema_id}"
        for i in index:
            self._processor.bury(records, i, "E_UNKNOWN_SCHEMA", reason)

    def _few(self, table: Table, records: Records, part: _Part) -> Rows | None:
        """Do what `_rows` does, without a frame; return None if the rows are not few, or something
        about them has to be looked into.
        """
        rows = part.decoded.given
        if not rows.few or not 0 < len(rows) <= tuning.ROWS_KEPT_AS_VALUES:
            return None
        if self._pending.closed or part.decoded.stamps or part.decoded.traced:
            return None
        if table.partitions > 1 and not self._are_home(rows.column("tbname"), table.id):
            return None
        factor = TICKS_PER_SECOND[table.precision] // 1000
        places = [part.index[record] for record in rows.column("_record")]
        came = [records.timestamps.item(i) * factor for i in places]
        latest = max(rows.column(table.time_column))
        if self._bound_passed(latest, table, came[0] // factor):
            return None
        head = {
            "_step": rows.column("_write"),
            "_offset": [records.offsets.item(i) for i in places],
            "_now": came,
        }
        return rows.with_head(head, _HEAD, without=_DECODED)

    def _are_home(self, tables: Iterable[str], table_id: int) -> bool:
        return all(self.placement.is_home(name, table_id) for name in set(tables))

    def _rows(self, table: Table, records: Records, parts: list[_Part]) -> pl.DataFrame:
        """Return the chunk's rows of one table in the kernels' input layout."""
        frames = [self._new_rows(part) for part in parts]
        if len(parts) > 1:
            rows = _in_order(frames, parts)
            index: Sequence[int] = range(len(records))
        else:
            rows = frames[0]
            index = parts[0].index
        if not rows.height:
            return rows
        place = rows["_record"].to_numpy()
        if len(index) != len(records):
            place = np.asarray(index)[place]
        factor = TICKS_PER_SECOND[table.precision] // 1000
        numbers, *columns = rows.get_columns()[1:]
        # put together from columns: a query engine's plan would cost a single record more than all
        # the rest of this
        came = pl.Series("_now", records.timestamps[place] * factor)
        stamps = [numbers.alias("_step"), pl.Series("_offset", records.offsets[place]), came]
        rows = columnwise.beside([*stamps, *columns])
        return self._in_bounds(table, self._in_place(table, rows))

    def _new_rows(self, part: _Part) -> pl.DataFrame:
        """Return the rows that count and that no producer has sent before."""
        rows = part.decoded.rows
        if self._pending.closed:  # the store has made dead letters of what came too late
            results = [] if self._pending.ended else [r for r, *_ in part.decoded.stamps]
            rows = rows.filter(pl.col("_record").is_in(results))
        repeats = [
            r
            for r, producer, offset, ordinal in part.decoded.stamps
            if self._positions.is_repeat(producer, offset, ordinal)
        ]
        if repeats:
            rows = rows.filter(~pl.col("_record").is_in(repeats))
        return rows

    def _in_place(self, table: Table, rows: pl.DataFrame) -> pl.DataFrame:
        """Keep the rows whose tables belong to this partition, and bury the others."""
        mask = self.placement.find_misplaced(rows, np.broadcast_to(table.id, rows.height), table)
        if mask is None:
            return rows
        name = rows.item(int(mask.argmax()), "tbname")
        there = place(name, table.partitions)
        reason = (
            f"rows of {name} belong to partition {there}: publish with partitioner murmur2_random"
            " and the table's name as key"
        )
        self._bury_rows(table, columnwise.kept(rows, mask), "E_WRONG_PARTITION", reason)
        return columnwise.kept(rows, ~mask)

    def _in_bounds(self, table: Table, rows: pl.DataFrame) -> pl.DataFrame:
        """Keep the rows that are not too far in the future, and bury the others."""
        if not rows.height:
            return rows
        latest: int = rows.get_column(table.time_column).max()  # type: ignore[assignment]
        if not (
            ahead := self._bound_passed(
                latest, table, rows.item(0, "_now") * 1000 // TICKS_PER_SECOND[table.precision]
            )
        ):
            return rows
        far = rows[table.time_column] > rows["_now"] + ahead.ticks(table.precision)
        self._bury_rows(
            table,
            rows.filter(far),
            "E_TOO_FAR_AHEAD",
            f"time lies more than {ahead} ahead of its arrival",
        )
        return rows.filter(~far)

    def _bound_passed(self, latest: int | None, table: Table, earliest: int) -> Duration | None:
        """Return how far ahead of its arrival a row may be, if the *latest* of those that came from
        *earliest* (ms) on may be further; else None.
        """
        database = self._worker.catalog.catalog.database(table.database)
        if database is None or latest is None:
            return None
        bound = earliest * TICKS_PER_SECOND[table.precision] // 1000 + database.max_ahead.ticks(
            table.precision
        )
        return database.max_ahead if latest > bound else None

    def _bury_rows(self, table: Table, rows: pl.DataFrame, code: str, reason: str) -> None:
        """Keep *rows*, which are in no table, whole among the dead letters."""
        for (offset,), part in rows.group_by("_offset", maintain_order=True):
            came = int(part["_now"][0]) * 1000 // TICKS_PER_SECOND[table.precision]
            for count, value in letter_values(part.drop("_step", "_now", "_offset")):
                self._processor.post(
                    DeadLetter(
                        self._processor.place.topic,
                        self._processor.place.partition,
                        int(str(offset)),
                        self._processor.reader,
                        code,
                        f"{count} rows: {reason}",
                        came,
                        value=value,
                    )
                )


def _in_order(frames: Sequence[pl.DataFrame], parts: Sequence[_Part]) -> pl.DataFrame:
    """Put records of several versions of a table back in the chunk's order."""
    placed = []
    for rows, part in zip(frames, parts, strict=True):
        place = np.asarray(part.index, dtype=np.uint32)[rows["_record"].to_numpy()]
        placed.append(rows.with_columns(_record=pl.Series(place, dtype=pl.UInt32)))
    together = pl.concat(placed).sort("_record", maintain_order=True)
    step = pl.struct("_record", "_write").rle_id()
    return together.with_columns(_write=step.cast(pl.UInt32))


def _newest_trace(parts: Sequence[_Part]) -> tuple[int, str] | None:
    """Return the place in the chunk and the trace id of the last of a table's records that has
    one.
    """
    found: list[tuple[int, str]] = []
    for part in parts:
        if not part.decoded.traced:
            continue
        meta = part.decoded.records
        if (last := traces.newest(meta.get_column("trace"))) is not None:
            found.append((part.index[int(meta["_record"][last[0]])], last[1]))
    return max(found, key=traces.rank, default=None)


def distinct(ids: npt.NDArray[np.int64]) -> list[int]:
    """Return those that there are, in order of first appearance."""
    if len(ids) == 1 or (ids == ids[0]).all():
        return [int(ids[0])]
    return list(dict.fromkeys(ids.tolist()))
