"""From the log to the tails: one thread that reads every ingestion topic, decodes, and cuts tails
into segments in time.

Reads from where the segments end, so a restart repeats nothing that is durable and loses nothing
that is not. A record that cannot be used is a dead letter and the next one goes on. Flushing works
beside the reading (one at a time), so a slow disk delays nobody's rows.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl
import redis

from penstock import moves, names, redis_link, segments
from penstock.bus import Admin, Batch, Publisher, Reader
from penstock.catalog.model import Table
from penstock.catalog.reader import CatalogReader
from penstock.catalog.stored import written
from penstock.codec import Decoded, TableCodec, schema_ids
from penstock.errors import BusError, PenstockError
from penstock.log import get
from penstock.partition import partition_of
from penstock.records import DROPPED, ControlRecord, DeadLetter, decode, encode
from penstock.segments import Position, RangeDelete
from penstock.sql.plan import TICKS_PER_SECOND
from services.store import flush
from services.store.flush import Newest
from services.store.latest import LatestRows
from services.store.moving import Moving
from services.store.partitions import Partitions, layout_of
from services.store.retention import Retention
from services.store.settings import StoreSettings
from services.store.tail import Frozen, Tail

log = get(__name__)

#: how often latest rows go to Redis
LATEST_SECONDS = 0.5
_READER = "store"
#: after a read of fewer records than this it rests for that many times what they took, so that
#: others gather: taken one by one, a thousand records a second cost a core; unless a query waits
#: for a record
_FEW = 1000
_REST = 15
_LONGEST_REST = 0.2


Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Flushing:
    tail: Tail
    done: Future[Position]


class LogIntake(threading.Thread):
    """Runs until `stop`; `failed` holds what ended it early."""

    def __init__(
        self,
        settings: StoreSettings,
        catalog: CatalogReader,
        partitions: Partitions,
        client: redis.Redis,
        on_read: Callable[[int, float], None],
    ) -> None:
        super().__init__(name="intake", daemon=True)
        self._settings = settings
        self._catalog = catalog
        self._partitions = partitions
        self._redis = client
        self._on_read = on_read
        self._latest = LatestRows(client)
        self._codecs: dict[int, TableCodec] = {}
        self._halt = threading.Event()
        self._flusher = ThreadPoolExecutor(1, "flush")
        self._moving = Moving(catalog, partitions, client, self._flusher)
        self._flushing: dict[tuple[str, int], _Flushing] = {}
        self._latest_at = 0.0
        #: what Redis has yet to be told of controls, in their order
        self._owed: deque[Callable[[], None]] = deque()
        #: partitions being read, and whose topic each is
        self._reading: dict[tuple[str, int], int] = {}
        #: catalog revision whose topics are all being read
        self._followed = -1
        #: catalog revision whose dropped topics are read no more
        self._left = -1
        self._dead = Publisher(settings.kafka_bootstrap, client_id="store-deadletter")
        self._admin = Admin(settings.kafka_bootstrap, client_id="store-admin")
        self._retention = Retention(settings, catalog, partitions, self._admin)
        self._swept_at = time.monotonic()
        self._sweeping: Future[None] | None = None
        self.caught_up = threading.Event()
        self.failed: BaseException | None = None

    def stop(self) -> None:
        """Flush what is there, then end."""
        self._halt.set()
        self.join(timeout=30)

    def run(self) -> None:
        try:
            # while it rests it fetches nothing: else the broker would answer for every single
            # record
            with Reader(
                self._settings.kafka_bootstrap, {}, client_id="store", queue_records=1
            ) as reader:
                while not self._halt.is_set():
                    self._follow(reader)
                    batches = reader.read(20_000, 0.05)
                    begun = time.monotonic()
                    for batch in batches:
                        self._take(batch)
                    self._housekeep()
                    if 0 < sum(map(len, batches)) < _FEW:
                        self._partitions.awaited.wait(
                            min((time.monotonic() - begun) * _REST, _LONGEST_REST)
                        )
                self._flush_all()
        except BaseException as error:  # noqa: B036  the room must see it and end
            log.exception("intake ended")
            self.failed = error

    # ---------------------------------------------------------------- following topics

    def _follow(self, reader: Reader) -> None:
        """Begin with partitions that are new in the catalog, leave those that are gone."""
        catalog = self._catalog.catalog
        revision = catalog.revision
        if revision == self._followed:
            return
        wanted = {
            (t, p): catalog.topic_owner(t)
            for t, n in (catalog.former_topics() | catalog.topics()).items()
            for p in range(n)
        }
        there = self._admin.topics()
        if all(p < there.get(t, 0) for t, p in wanted):
            self._followed = revision
        wanted = {(t, p): owner for (t, p), owner in wanted.items() if p < there.get(t, 0)}
        gone = {k for k, owner in self._reading.items() if wanted.get(k) != owner}
        if gone:
            reader.remove(gone)
            for key in gone:
                del self._reading[key]
                self._partitions.close(*key)
        if revision != self._left:
            self._left = revision
            self._owed.append(partial(self._say_left, revision))
            self._pay()
        for topic, partition in wanted.keys() - self._reading.keys():
            self._begin(reader, topic, partition)
            self._reading[topic, partition] = wanted[topic, partition]
        self.caught_up.set()

    def _begin(self, reader: Reader, topic: str, partition: int) -> None:
        tail = self._partitions.open(topic, partition)
        for table in self._catalog.catalog.tables_of_topic(topic):
            flush.remove_leftovers(self._partitions.root, table.id, partition, tail.next, topic)
        start = max(tail.next, self._admin.start_offsets([(topic, partition)])[topic, partition])
        if start > tail.next:
            log.error(
                "records were deleted before they were stored",
                topic=topic,
                partition=partition,
                first_missing=tail.next,
                next=start,
            )
        reader.add({(topic, partition): start})

    # ---------------------------------------------------------------- taking records

    def _take(self, batch: Batch) -> None:
        """Append one partition's records to its tail, whole and in order."""
        tail = self._partitions.open(batch.topic, batch.partition)
        ids = schema_ids(batch.values)
        self._catalog.know(np.unique(ids).tolist())
        frames: dict[int, list[pl.DataFrame]] = {}
        deletes: list[RangeDelete] = []
        after: list[Callable[[], None]] = []
        controls = np.flatnonzero(ids == names.CONTROL_SCHEMA_ID).tolist()
        for low, high in pairwise([-1, *controls, len(ids)]):
            for table, rows in self._stretch(batch, tail, ids, low + 1, high):
                frames.setdefault(table.id, []).append(rows)
                self._latest.note(table, rows)
            if high < len(ids):
                self._controls(batch, tail, (high,), deletes, after)
        joined = {
            table: pl.concat(parts, how="diagonal_relaxed") for table, parts in frames.items()
        }
        tail.append(batch.next_offset, joined, deletes, time.monotonic())
        at_once = not self._owed
        self._owed.extend(after)
        if at_once:
            self._pay()
        self._on_read(sum(f.height for f in joined.values()), float(batch.timestamps[-1]))

    def _stretch(
        self, batch: Batch, tail: Tail, ids: Ids, low: int, high: int
    ) -> Iterator[tuple[Table, pl.DataFrame]]:
        """The rows of each table in the records low..high, none of which is a control; in log
        order.
        """
        found: dict[int, tuple[Table, list[pl.DataFrame]]] = {}
        for schema_id in dict.fromkeys(ids[low:high].tolist()):
            places = np.flatnonzero(ids[low:high] == schema_id) + low
            codec = self._codec(schema_id)
            if codec is not None:
                rows = self._rows(batch, tail, codec, places)
                if rows.height:
                    found.setdefault(codec.table.id, (codec.table, []))[1].append(rows)
            elif not self._catalog.catalog.was_dropped(schema_id):
                for i in places.tolist():
                    self._bury(batch, i, "E_UNKNOWN_SCHEMA", f"no table has schema id {schema_id}")
        for table, parts in found.values():
            # of two versions of a table each was decoded apart
            yield (
                table,
                (
                    parts[0]
                    if len(parts) == 1
                    else pl.concat(parts, how="diagonal_relaxed").sort("_offset", "_row")
                ),
            )

    def _rows(self, batch: Batch, tail: Tail, codec: TableCodec, places: Ids) -> pl.DataFrame:
        decoded = codec.decode(
            batch.values
            if len(places) == len(batch)
            else [batch.values[i] for i in places.tolist()]
        )
        for index, reason in decoded.bad:
            self._bury(batch, int(places[index]), "E_MALFORMED", reason)
        rows = decoded.rows
        unwanted = self._repeats(tail, decoded)
        if tail.over:
            unwanted += self._late(batch, tail, places, decoded)
        if unwanted:
            rows = rows.filter(~pl.col("_record").is_in(unwanted))
        rows = _in_place(codec.table, batch.partition, rows)
        rows = self._near(codec.table, rows, batch.timestamps[places], decoded)
        record = rows["_record"].to_numpy()
        starts = np.flatnonzero(np.diff(record, prepend=-1))
        place = np.arange(len(record)) - np.repeat(starts, np.diff([*starts, len(record)]))
        if renamed := written(codec.table.stored_names):
            rows = rows.rename(renamed)
        return rows.drop("_record", "_write").with_columns(
            _offset=pl.Series(batch.offsets[places][record]),
            _row=pl.Series(place.astype(np.uint32)),
        )

    def _near(self, table: Table, rows: pl.DataFrame, came: Ids, decoded: Decoded) -> pl.DataFrame:
        """Rows that are not further ahead of their arrival than MAX_AHEAD; the scan makes dead
        letters of the others.

        Results of streams have the times of their windows.
        """
        database = self._catalog.catalog.database(table.database)
        if database is None or not rows.height:
            return rows
        ahead = database.max_ahead.ticks(table.precision)
        per_ms = TICKS_PER_SECOND[table.precision] // 1000
        times = rows[table.time_column].to_numpy()
        far = times > came[rows["_record"].to_numpy()] * per_ms + ahead
        if not far.any():
            return rows
        results = {record for record, *_ in decoded.stamps}
        mine = rows["_record"].is_in(list(results)).to_numpy()
        return rows.filter(pl.Series(~far | mine))

    def _repeats(self, tail: Tail, decoded: Decoded) -> list[int]:
        """Records of producers (streams) that were had already: a restarted operator may publish
        them again.
        """
        return [
            r
            for r, producer, offset, ordinal in decoded.stamps
            if tail.seen(producer, offset, ordinal)
        ]

    def _late(self, batch: Batch, tail: Tail, places: Ids, decoded: Decoded) -> list[int]:
        """Records that came when the partition was closed: streams may still bring their results
        until it has ended, nobody else.
        """
        results = set() if tail.ended else {r for r, *_ in decoded.stamps}
        late = [r for r in range(len(places)) if r not in results]
        home = self._catalog.catalog.database_of_topic(batch.topic)
        now = "" if home is None else home.topic if home.move is None else home.next_topic
        for r in late:
            self._bury(
                batch,
                int(places[r]),
                "E_MOVED",
                f"the partitions of the database have changed: publish to {now}",
            )
        return late

    def _codec(self, schema_id: int) -> TableCodec | None:
        found = self._catalog.catalog.schema(schema_id)
        if found is None:
            return None
        codec = self._codecs.get(schema_id)
        if codec is None or codec.table != found[0]:
            codec = self._codecs[schema_id] = TableCodec(found[0], schema_id)
        return codec

    def _controls(
        self,
        batch: Batch,
        tail: Tail,
        indexes: Iterable[int],
        deletes: list[RangeDelete],
        after: list[Callable[[], None]],
    ) -> None:
        for i in indexes:
            offset = int(batch.offsets[i])
            try:
                control = decode(ControlRecord, batch.values[i])
            except PenstockError as error:
                self._bury(batch, i, error.code, str(error))
                continue
            # what an earlier database of this name has left there is not about this one
            own = control.id == names.move(tail.owner, names.generation(batch.topic) + 1)
            if control.kind == "close" and own:
                tail.close()
            elif control.kind == "end" and own:
                first = tail.end(offset)
                after.append(lambda c=control, o=first: self._say_ended(c.id, batch, o))  # type: ignore[misc]
            if tail.ended and control.kind != "barrier":
                continue
            if control.producer is not None and tail.seen(
                control.producer, control.offset, control.ordinal
            ):
                continue
            if control.kind == "delete" and control.table is not None:
                deletes.append(
                    RangeDelete(control.table, offset, control.tables, control.low, control.high)
                )
                after.append(lambda c=control: self._refresh_latest(c))  # type: ignore[misc]
                if control.id:
                    after.append(lambda c=control, o=offset: self._echo(c.id, batch, o))  # type: ignore[misc]
            elif control.kind == "tag" and control.table is not None:
                for child in control.tables or ():
                    tail.set_tags(control.table, child, json.loads(control.body))
            elif control.kind == "barrier":
                after.append(lambda c=control, o=offset: self._echo(c.id, batch, o))  # type: ignore[misc]

    def _pay(self) -> None:
        """Tell Redis what is owed. While it does not answer, the rest stays owed."""
        try:
            while self._owed:
                self._owed[0]()
                self._owed.popleft()
        except redis.RedisError as error:
            log.warning(
                "latest rows and barriers wait for redis", error=str(error), owed=len(self._owed)
            )

    def _say_left(self, revision: int) -> None:
        self._redis.set(names.store_followed(), revision)

    def _echo(self, barrier: str, batch: Batch, offset: int) -> None:
        key = names.barrier(barrier)
        self._redis.hset(key, f"{_READER}:{batch.topic}:{batch.partition}", offset)
        self._redis.expire(key, 3600)

    def _say_ended(self, key: str, batch: Batch, offset: int) -> None:
        moves.say(self._redis, key, f"{_READER}:{batch.partition}", offset)

    def _refresh_latest(self, control: ControlRecord) -> None:
        """LAST_ROW after a delete is the latest of what is left."""
        table = self._catalog.catalog.table_by_id(control.table or 0)
        if table is None:
            return
        left = self.live(table, control.tables)
        children = list(control.tables) if control.tables is not None else self._children(table)
        self._latest.replace(table, children, left, dropped=control.body == DROPPED)

    def _children(self, table: Table) -> list[str]:
        keys = {
            k
            for k, _ in redis_link.hash_items(
                self._redis, names.last_row(table.database, table.name)
            )
        }
        return [k if isinstance(k, str) else k.decode() for k in keys]

    def live(self, table: Table, children: tuple[str, ...] | None) -> pl.DataFrame:
        """The live rows of a table, in ticks; for corrections, not for queries."""
        layout = layout_of(table)
        parts = []
        for partition, view in self._partitions.views(table.topic).items():
            found = segments.segments(
                segments.directory(self._partitions.root, table.id, partition, table.topic),
                view.position.next,
            )
            stored = segments.read(found, time_column=table.time_column, tables=children)
            some = [flush.to_ticks(stored, layout)] if stored is not None else []
            some += [
                f if children is None else f.filter(pl.col("tbname").is_in(list(children)))
                for f in view.frames.get(table.id, ())
            ]
            if some:
                deletes = [d for d in view.deletes if d.table_id == table.id]
                parts.append(
                    segments.live(pl.concat(some, how="diagonal_relaxed"), layout.keys, deletes)
                )
        schema = {"tbname": pl.String, table.time_column: pl.Int64, "_op": pl.Int8}
        return pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame(schema=schema)

    def _bury(self, batch: Batch, index: int, code: str, reason: str) -> None:
        letter = DeadLetter.of(batch, index, _READER, code, reason)
        log.warning(
            "dead letter",
            topic=letter.topic,
            partition=letter.partition,
            offset=letter.offset,
            reason=reason,
        )
        self._dead.send(names.DEAD_LETTER, encode(letter))

    # ---------------------------------------------------------------- flushing

    def _housekeep(self) -> None:
        now = time.monotonic()
        if now - self._latest_at >= LATEST_SECONDS:
            self._latest_at = now
            for table_id in self._latest.tables():
                if self._catalog.catalog.table_by_id(table_id) is None:
                    self._latest.forget(table_id)
            self._pay()
            try:
                self._latest.write()
            except redis.RedisError as error:
                log.warning("latest rows wait for redis", error=str(error))
        if now - self._swept_at >= self._settings.sweep_seconds and (
            self._sweeping is None or self._sweeping.done()
        ):
            self._swept_at = now
            self._sweeping = self._flusher.submit(self._retention.sweep)
        self._moving.step(self._cut)
        for key, tail in self._partitions.tails().items():
            old = tail.oldest() and now - tail.oldest() >= self._settings.flush_seconds
            if (old or tail.rows >= self._settings.flush_rows) and key not in self._flushing:
                self._begin_flush(key, tail)
        for key in [k for k, f in self._flushing.items() if f.done.done()]:
            self._end_flush(key, self._flushing.pop(key))

    def _cut(self, topic: str, partition: int) -> None:
        """Have a tail cut into segments now."""
        if (topic, partition) not in self._flushing:
            self._begin_flush((topic, partition), self._partitions.open(topic, partition))

    def _begin_flush(self, key: tuple[str, int], tail: Tail) -> None:
        frozen = tail.freeze()
        if frozen is not None:
            self._flushing[key] = _Flushing(
                tail,
                self._flusher.submit(
                    self._flush, key, frozen, tail.owner, self._partitions.newest[key]
                ),
            )

    def _flush(
        self, key: tuple[str, int], frozen: Frozen, owner: int, newest: dict[int, Newest]
    ) -> Position:
        topic, partition = key
        tables = {t.id: t for t in self._catalog.catalog.tables_of_topic(topic)}
        layouts = {i: layout_of(t) for i, t in tables.items()}
        position = flush.flush(
            self._partitions.root,
            topic,
            partition,
            self._partitions.open(topic, partition).owner,
            frozen,
            layouts,
            self._partitions.newest[key],
        )
        for table_id in frozen.frames:
            if table_id in layouts:
                flush.merge(
                    self._partitions.root, layouts[table_id], partition, position.next, topic=topic
                )
        return position

    def _end_flush(self, key: tuple[str, int], flushing: _Flushing) -> None:
        error = flushing.done.exception()
        if error is not None:
            why = "flush failed; the rows stay in memory and in kafka, and it is tried again"
            log.error(why, topic=key[0], partition=key[1], error=str(error))
            flushing.tail.unfreeze()
        else:
            flushing.tail.thaw(flushing.done.result())

    def _flush_all(self) -> None:
        for key, tail in self._partitions.tails().items():
            if key not in self._flushing:
                self._begin_flush(key, tail)
        for key, flushing in self._flushing.items():
            self._end_flush(key, flushing)
        try:
            self._latest.write()
        except redis.RedisError as error:
            log.warning("latest rows were not written", error=str(error))
        self._flusher.shutdown()
        try:
            self._dead.close()
        except BusError as error:
            log.warning("dead letters were not sent", error=str(error))


def _in_place(table: Table, partition: int, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows whose tables belong to this partition; of the others the scan makes dead letters."""
    if table.partitions == 1:
        return rows
    found = rows["tbname"].unique()
    wrong = found.filter(partition_of(found, table.partitions) != partition)
    return rows.filter(~pl.col("tbname").is_in(wrong.implode())) if len(wrong) else rows
