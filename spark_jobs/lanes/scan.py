"""The scan of an ingestion topic's partition: rows of its tables, decoded once, to every stream
over them.

Refused, as dead letters with their reason: records that are malformed or of an unknown schema, rows
of another partition's tables, and rows too far ahead of the broker's clock.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock import names, redis_link, traces
from penstock.catalog.model import Table
from penstock.codec import Decoded, TableCodec
from penstock.codec.few_rows import MAX_ROWS
from penstock.errors import StateError
from penstock.few import Few
from penstock.partition import partition as place
from penstock.partition import partition_of
from penstock.records import ControlRecord, DeadLetter
from penstock.sql.plan import TICKS_PER_SECOND, Duration, StreamPlan
from penstock.windows import columnwise
from penstock.windows.calls import SHARED
from penstock.windows.groups import TABLES, Numbers
from penstock.windows.steps import Mask, grown
from spark_jobs.history import StoredHistory, TableHistory
from spark_jobs.input import Records, joined
from spark_jobs.lanes.exchange import Sender
from spark_jobs.lanes.generation import CLOSED, ENDED, inherit
from spark_jobs.lanes.leaving import Leaving
from spark_jobs.lanes.partition import Lane
from spark_jobs.lanes.route import Taken, newest
from spark_jobs.lanes.stream import LiveStream
from spark_jobs.state import Snapshot, StateFiles
from spark_jobs.worker import Worker

_SAMPLE_ROWS = 100
#: records put off that are worked on together at the latest, and their bytes: with many streams
#: most are of tables of their own
_UNREAD = 512
_UNREAD_BYTES = 8 << 20
#: how long the catalog may be behind the topic that it names
_CATALOG_PATIENCE = 20.0


@dataclass(frozen=True)
class _Part:
    """Rows of one schema within a unit: `index[i]` is the place in the unit of the codec's i-th
    record.
    """

    index: Sequence[int]
    decoded: Decoded


class ScanLane(Lane):
    """All streams over the tables of one topic, on one partition."""

    reader = "scan"

    def __init__(
        self,
        worker: Worker,
        directory: str,
        topic: str,
        topic_id: int,
        partition: int,
        first_time: int,
    ) -> None:
        #: by table and the columns that a plan knows of it: a table may have got others since
        self._histories: dict[Hashable, TableHistory] = {}
        #: by a child table's number in `TABLES`: the table that it is of, where it is known to
        #: belong here
        self._home: Numbers = np.empty(0, np.int64)
        self._unread: list[Records] = []
        self._unread_count = self._unread_bytes = 0
        #: under which key, and at which offset, to say that the partition has ended
        self._ending: tuple[str, int] | None = None
        super().__init__(worker, directory, topic, topic_id, partition, first_time)
        self._sender = Sender(self)

    # ---------------------------------------------------------------- data

    def data_unit(self, records: Records) -> None:
        read = {table for stream in self.streams.values() for table in stream.plan.source.table_ids}
        distinct = _distinct(records.ids)
        unasked = [schema_id for schema_id in distinct if self._unasked(schema_id, read)]
        if unasked and not self.suspicious(int(records.offsets[0])):
            if len(unasked) == len(distinct):
                self._put_off(records)
                return
            put_off = np.isin(records.ids, unasked)
            self._put_off(records.chosen(np.flatnonzero(put_off).tolist()))
            records = records.chosen(np.flatnonzero(~put_off).tolist())
        if len(records):
            self._work(records)

    def _unasked(self, schema_id: int, read: set[int]) -> bool:
        """Whether records under *schema_id* are of a table that is known and none of *read*."""
        found = self.worker.catalog.catalog.schema(schema_id)
        return found is not None and found[0].id not in read

    @property
    def puts_off_much(self) -> bool:
        return self._unread_count >= _UNREAD or self._unread_bytes >= _UNREAD_BYTES

    def _put_off(self, records: Records) -> None:
        self._unread.append(records)
        self._unread_count += len(records)
        self._unread_bytes += sum(len(v) for v in records.values if v is not None)

    def settle(self) -> None:
        """Look into the records that no stream reads, most of them the lane's own streams' results
        on their way to the store.

        Alone a record costs as much as dozens do together, and for these nobody waits. But what is
        wrong with them has to be told, and how far their producers are has to be known, before a
        control changes who reads and before a state says that they are done.
        """
        if self._unread:
            records = joined(self._unread)
            self._unread = []
            self._unread_count = self._unread_bytes = 0
            with self.at_work(int(records.offsets[0]), int(records.offsets[-1])):
                self.worker.failpoints.reach("mid_settle")
                if not self._sound(records):
                    self._work(records)

    def _sound(self, records: Records) -> bool:
        """Whether nothing is wrong with records that no stream reads; then all that has to be noted
        of them is.

        Of many tables there may be few records each. Those that look the same are decoded together;
        whatever is found, or cannot be told like this, is for `_work` to judge.
        """
        if CLOSED in self._waiting:
            return False
        distinct = _distinct(records.ids)
        self.worker.catalog.know(distinct)
        alike: dict[Hashable, list[TableCodec]] = {}
        for schema_id in distinct:
            codec = self.worker.codec(schema_id)
            if codec is None or codec.reads_like is None:
                return False
            alike.setdefault((codec.reads_like, codec.table.database), []).append(codec)
        stamps: list[tuple[int, str, int, int]] = []
        for codecs in alike.values():
            ids = sorted(c.schema_id for c in codecs)
            chosen = np.flatnonzero(np.isin(records.ids, ids))
            others = [i for i in ids if i != codecs[0].schema_id]
            decoded = codecs[0].decode([records.values[i] for i in chosen.tolist()], others)
            if decoded.bad:
                return False
            if decoded.rows.height:
                of_record = chosen[decoded.rows.get_column("_record").to_numpy()]
                tables = np.array([t for _, t in sorted((c.schema_id, c.table.id) for c in codecs)])
                owners = tables[np.searchsorted(ids, records.ids[of_record])]
                earliest = int(records.timestamps[chosen].min())
                table = codecs[0].table
                latest: int = decoded.rows.get_column(table.time_column).max()  # type: ignore[assignment]
                if self._misplaced(decoded.rows, owners, table) is not None or self._ahead(
                    latest, table, earliest
                ):
                    return False
            stamps += [(int(chosen[i]), *stamp) for i, *stamp in decoded.stamps]  # type: ignore[misc]
        for _, producer, offset, ordinal in sorted(stamps):
            self.repeated(producer, offset, ordinal)
        return True

    def _work(self, records: Records) -> None:
        first = int(records.offsets[0])
        last = int(records.offsets[-1])
        parts: dict[int, list[_Part]] = {}
        tables: dict[int, Table] = {}
        distinct = _distinct(records.ids)
        self.worker.catalog.know(distinct)
        for schema_id in distinct:
            index: Sequence[int] = (
                range(len(records))
                if len(distinct) == 1
                else np.flatnonzero(records.ids == schema_id).tolist()
            )
            codec = self.worker.codec(schema_id)
            if codec is None:
                if self.worker.catalog.catalog.was_dropped(schema_id):
                    continue
                reason = (
                    f"no table has schema id {schema_id}"
                    if schema_id >= 0
                    else "not framed: no zero byte and schema id in front"
                )
                for i in index:
                    self.bury(records, i, "E_UNKNOWN_SCHEMA", reason)
                continue
            decoded = codec.decode(
                records.values if len(index) == len(records) else [records.values[i] for i in index]
            )
            for i, reason in decoded.bad:
                self.bury(records, index[i], "E_MALFORMED", reason)
            tables[codec.table.id] = codec.table
            parts.setdefault(codec.table.id, []).append(_Part(index, decoded))
        taken = []
        for table_id, found in parts.items():
            table = tables[table_id]
            few = self._few(table, records, found[0]) if len(found) == 1 else None
            rows = self._rows(table, records, found) if few is None else few
            if len(rows):
                taken.append(Taken(table_id, table.time_column, rows, _newest_trace(found)))
        self._to_streams(taken, first, last)

    def _few(self, table: Table, records: Records, part: _Part) -> Few | None:
        """`_rows` as values; None: they are not few, or something about them has to be looked
        into.
        """
        few = part.decoded.few
        if (
            few is None
            or len(few) > MAX_ROWS
            or CLOSED in self._waiting
            or part.decoded.stamps
            or part.decoded.traced
        ):
            return None
        owners, *_ = columns = list(few.columns.values())
        if not owners:
            return None
        tables = few.columns["tbname"]
        times = few.columns[table.time_column]
        if table.partitions > 1 and not all(self._is_home(name, table.id) for name in set(tables)):
            return None
        factor = TICKS_PER_SECOND[table.precision] // 1000
        places = [part.index[owner] for owner in owners]
        came = [records.timestamps.item(i) * factor for i in places]
        if self._ahead(max(times), table, came[0] // factor):
            return None
        steps, *others = columns[1:]
        stamps = {
            "_step": steps,
            "_offset": [records.offsets.item(i) for i in places],
            "_now": came,
        }
        names_of = list(few.layout)[2:]
        types = list(few.layout.values())[2:]
        layout = {
            "_step": pl.UInt32,
            "_offset": pl.Int64,
            "_now": pl.Int64,
            **dict(zip(names_of, types, strict=True)),
        }
        return Few({**stamps, **dict(zip(names_of, others, strict=True))}, layout)

    def _is_home(self, name: str, table_id: int) -> bool:
        """Whether a child table is known to be one of *table_id* that belongs here."""
        number = TABLES.met(name)
        return 0 <= number < len(self._home) and self._home.item(number) == table_id

    def _rows(self, table: Table, records: Records, parts: list[_Part]) -> pl.DataFrame:
        """The unit's rows of one table in the kernels' input layout."""
        frames = []
        for part in parts:
            rows = part.decoded.rows
            if CLOSED in self._waiting:  # the store has made dead letters of what came too late
                results = [] if ENDED in self._waiting else [r for r, *_ in part.decoded.stamps]
                rows = rows.filter(pl.col("_record").is_in(results))
            repeats = [
                r
                for r, producer, offset, ordinal in part.decoded.stamps
                if self.repeated(producer, offset, ordinal)
            ]
            if repeats:
                rows = rows.filter(~pl.col("_record").is_in(repeats))
            if len(parts) > 1:  # records of two versions of the table: put them back in order
                place = np.asarray(part.index, dtype=np.uint32)[rows["_record"].to_numpy()]
                rows = rows.with_columns(_record=pl.Series(place, dtype=pl.UInt32))
            frames.append(rows)
        rows = frames[0]
        if len(frames) > 1:
            rows = pl.concat(frames).sort("_record", maintain_order=True)
            step = pl.struct("_record", "_write").rle_id()
            rows = rows.with_columns(_write=step.cast(pl.UInt32))
            index: Sequence[int] = range(len(records))
        else:
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

    def _in_place(self, table: Table, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows whose tables belong to this partition; others are dead letters."""
        mask = self._misplaced(rows, np.broadcast_to(table.id, rows.height), table)
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

    def _misplaced(self, rows: pl.DataFrame, owners: Numbers, table: Table) -> Mask | None:
        """Which rows belong to another partition, None if all are in place.

        *owners*: id of each row's table. *table*: any of these, which are of one topic.
        """
        if table.partitions == 1:
            return None
        numbers = TABLES.numbers(rows)
        self._home = grown(self._home, len(TABLES), -1)  # type: ignore[assignment]
        elsewhere = self._home.take(numbers) != owners
        if not elsewhere.any():
            return None
        unknown, first = np.unique(numbers[elsewhere], return_index=True)
        here = partition_of(TABLES.names(unknown), table.partitions).to_numpy() == self.partition
        self._home[unknown[here]] = owners[elsewhere][first[here]]
        if here.all():
            return None
        wrong: Mask = np.isin(numbers, unknown[~here])
        return wrong

    def _in_bounds(self, table: Table, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows that are not too far in the future; others are dead letters."""
        if not rows.height:
            return rows
        latest: int = rows.get_column(table.time_column).max()  # type: ignore[assignment]
        if not (
            ahead := self._ahead(
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

    def _ahead(self, latest: int | None, table: Table, earliest: int) -> Duration | None:
        """How far ahead of its arrival a row may be, if the *latest* of those that came from
        *earliest* (ms) on may be further.
        """
        database = self.worker.catalog.catalog.database(table.database)
        if database is None or latest is None:
            return None
        bound = earliest * TICKS_PER_SECOND[table.precision] // 1000 + database.max_ahead.ticks(
            table.precision
        )
        return database.max_ahead if latest > bound else None

    def _bury_rows(self, table: Table, rows: pl.DataFrame, code: str, reason: str) -> None:
        for (offset,), part in rows.group_by("_offset", maintain_order=True):
            sample = (
                part.head(_SAMPLE_ROWS).drop("_step", "_now", "_offset").write_ndjson().encode()
            )
            came = int(part["_now"][0]) * 1000 // TICKS_PER_SECOND[table.precision]
            reason_of_all = f"{part.height} rows: {reason}"
            self.post(
                DeadLetter(
                    self.topic,
                    self.partition,
                    int(str(offset)),
                    self.reader,
                    code,
                    reason_of_all,
                    came,
                    value=sample,
                )
            )

    def _to_streams(self, taken: Sequence[Taken], first: int, last: int) -> None:
        streams = [s for s in self.streams.values() if s.status != "failed"]
        leaving = Leaving()
        for part in taken:
            reading = [
                s
                for s in streams
                if s.plan.path == "scan" and s.plan.source.table_id == part.table_id
            ]
            if (few := part.few) is not None:
                reading = [s for s in reading if not s.take(few, first, last)]
            if reading:
                with SHARED.among(part.rows):
                    for stream in reading:
                        stream.apply(part.rows, first, last, leaving, newest([part]))
        leaving.go()
        for stream in streams:
            if stream.plan.path == "exchange":
                self._sender.rows(stream, taken, first, last)

    # ---------------------------------------------------------------- generations

    def inherited(self) -> Snapshot | None:
        """The part of the state of an earlier generation's partition that belongs to this one."""
        if names.generation(self.topic) == 1:
            return None
        self.worker.await_catalog(lambda c: bool(c.begins(self.topic)), _CATALOG_PATIENCE)
        catalog = self.worker.catalog.catalog
        home = catalog.database_of_topic(self.topic)
        begins = catalog.begins(self.topic)
        if home is None or self.partition not in begins:
            raise StateError(
                f"{self.topic}[{self.partition}]: the catalog does not say what it took the"
                " place of"
            )
        (_, partitions), (former, number) = catalog.lineage(self.topic)[:2]
        directory = names.state_directory(
            self.settings.state_dir, str(home.id), former, self.partition % number
        )
        parent = StateFiles(directory).load()
        if parent is None:
            self.log.error(
                "the state to go on with is gone: restore it, or create the streams again",
                former=former,
            )
            return None
        counts = self.partition < number
        made = inherit(
            parent,
            self.worker.plan,
            self.partition,
            partitions,
            begins[self.partition],
            counts=counts,
        )
        self.log.info("state taken over", former=former, next=made.next)
        return made

    def turned(self, control: ControlRecord, offset: int) -> bool:
        # what an earlier database of this name has left there is not about this one
        own = control.id == names.move(self.topic_id, names.generation(self.topic) + 1)
        if control.kind == "close" and own:
            self._waiting.setdefault(CLOSED, [str(offset)])
        elif control.kind == "end" and own:
            self._ending = (control.id, int(self._waiting.setdefault(ENDED, [str(offset)])[0]))
        elif control.kind == "begin":
            self._begin(offset)
            self._sender.control(control, offset)
        # what a closed partition may still do is to let results through, and barriers behind them
        return control.kind in ("close", "end", "begin") or (
            CLOSED in self._waiting and control.kind != "barrier"
        )

    def _begin(self, offset: int) -> None:
        """All streams are live here; what the old partition said of them is said by this one
        now.
        """
        former, number = self.worker.catalog.catalog.lineage(self.topic)[1]
        for stream in self.streams.values():
            self.report_live(stream.id, offset)
            self.worker.report_streams([stream.progress()])
            if self.partition < number:
                key = names.stream_status(stream.id)
                field = f"{names.STATS}{former}:{self.partition}"
                self.worker.report(lambda r, k=key, f=field: r.hdel(k, f))  # type: ignore[misc]

    def _advance(self, unit: Records) -> None:
        super()._advance(unit)
        if self._ending is not None:
            (key, offset), self._ending = self._ending, None
            self.keep()
            self.worker.report_ended(key, f"{self.reader}:{self.partition}", offset)

    # ---------------------------------------------------------------- the rest of a lane's answers

    def forward(self, control: ControlRecord, offset: int) -> None:
        self._sender.control(control, offset)

    def barrier(self, control: ControlRecord, offset: int) -> None:
        self._sender.control(control, offset)
        self.outbox.then(
            lambda _: self.worker.report_barrier(
                control.id, f"{self.reader}:{self.topic}:{self.partition}", offset
            )
        )

    def plans(self) -> list[StreamPlan]:
        tables = {t.id for t in self.worker.catalog.catalog.tables_of_topic(self.topic)}
        return [
            s.plan
            for s in self.worker.catalog.catalog.streams()
            if tables.intersection(s.plan.source.table_ids)
        ]

    def outputs(self, plan: StreamPlan) -> dict[str, int]:
        if plan.path == "exchange":
            return {names.EXCHANGE: names.BUILT_IN_TOPICS[names.EXCHANGE]}
        table = self.worker.catalog.catalog.table_by_id(plan.target.table_id)
        target = {} if table is None else {table.topic: table.partitions}
        return {**target, names.EVENTS: names.BUILT_IN_TOPICS[names.EVENTS]}

    def begun(self, stream: LiveStream, offset: int) -> None:
        if not stream.plan.fill_history:
            return
        if stream.history is not None:
            self.hold(stream, offset)
            self.begin_history(stream, stream.history.mark(), offset)
        else:
            self._sender.begun(stream, offset)

    def tables(self, table_id: int) -> set[str]:
        """Tables of a supertable that this partition is known to hold rows of."""
        found = {
            str(n) for n, _ in redis_link.hash_items(self.worker.redis, names.children(table_id))
        }
        partitions = self.worker.catalog.catalog.topics().get(self.topic, 1)
        mine = {n for n in found if place(n, partitions) == self.partition}
        return mine | set(TABLES.names(np.flatnonzero(self._home == table_id)).to_list())

    def ended(self, stream_id: int) -> None:
        """Histories are of tables, not of streams: they stay."""

    def history(self, plan: StreamPlan) -> StoredHistory | None:
        return None if plan.path == "exchange" else self.stored(plan)

    def stored(self, plan: StreamPlan) -> TableHistory | None:
        source = plan.source
        if source.kind == "virtual":
            return None
        key = (source.table_id, source.columns, source.tags)
        if key not in self._histories:
            held = self.worker.stored_names(source.table_id)
            self._histories[key] = TableHistory(
                self.worker, source, self.topic, lambda: {self.partition: self.next}, stored=held
            )
        return self._histories[key]

    def concerns(self, stream: LiveStream, control: ControlRecord) -> bool:
        if control.kind == "tick":
            return stream.timed and stream.plan.path == "scan"
        return control.table is None or control.table == stream.plan.source.table_id


def _newest_trace(parts: Sequence[_Part]) -> tuple[int, str] | None:
    """Of the unit's records of one table, the last that has a trace: its place in the unit, and the
    id.
    """
    found: list[tuple[int, str]] = []
    for part in parts:
        if not part.decoded.traced:
            continue
        meta = part.decoded.records
        if (last := traces.newest(meta.get_column("trace"))) is not None:
            found.append((part.index[int(meta["_record"][last[0]])], last[1]))
    return max(found, default=None)


def _distinct(ids: npt.NDArray[np.int64]) -> list[int]:
    """Those that there are, in order of first appearance."""
    return (
        [int(ids[0])]
        if len(ids) == 1 or (ids == ids[0]).all()
        else list(dict.fromkeys(ids.tolist()))
    )
