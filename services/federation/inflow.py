"""A topic of another Kafka, read into the table that bears its external stream's name: each message
one row, or one change of a row, exactly once.

What is there already is learnt from the table's own log, as for a view's target, so a restart of
anybody repeats and loses nothing. A message that cannot be read is a dead letter, and the next one
goes on; what somebody else deleted before it was read is said and left out.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import polars as pl

from penstock import foreign, names
from penstock.bus import Batch, Publisher, Reader
from penstock.bus.dead_letters import bury
from penstock.catalog.model import Table
from penstock.errors import BusError, PenstockError, RemoteError, SchemaError
from penstock.foreign import Brokers, MessageDecoder, SchemaRegistry
from penstock.link import external
from penstock.outbound.reach import Outbound
from penstock.records import DeadLetter
from penstock.runtime.log import get
from services.federation.appenders import AnyAppender, Appenders
from services.federation.persistent import Persistent
from services.federation.settings import FederationSettings

log = get(__name__)
#: how often new partitions of the topic, and its ends, are looked for
_LOOK_SECONDS = 2.0
#: one look for messages lasts so long: while rows are under way to the table, and while none are
_SETTLE_SECONDS = 0.02
_REST_SECONDS = 1.0


class Inflow(Persistent):
    """Runs until `stop`."""

    def __init__(
        self,
        table: Table,
        present: Callable[[], Table | None],
        settings: FederationSettings,
        appenders: Appenders,
        dead: Publisher,
        outbound: Outbound,
        home: foreign.Home,
    ) -> None:
        """
        Args:
            table: that the topic is read into.
            present: the table as it is now; None: it was dropped.
            settings: of the service.
            appenders: write into tables.
            dead: takes dead letters.
            outbound: where topics may be.
            home: the mesh's own Kafka.
        """
        shown = f"{table.database}.{table.name}"
        super().__init__(f"inflow-{shown}", settings, stream=shown)
        topic = foreign.of(table)
        assert topic is not None
        self._topic = topic
        self._stream = shown
        self._id = table.id
        self._present = present
        self._all = appenders
        self._dead = dead
        self._reach = outbound.reach(topic.maker)
        self._home = home
        # of one connection
        self._appenders: dict[int, AnyAppender] = {}
        self._next: dict[int, int] = {}
        self._under_way: deque[Future[int]] = deque()
        #: of a version of the table
        self._decoder: tuple[int, MessageDecoder] | None = None

    def passes(self, error: PenstockError) -> bool:
        return isinstance(error, RemoteError) or (isinstance(error, BusError) and error.retryable)

    # ---------------------------------------------------------------- one connection

    def work(self) -> None:
        topic = self._topic
        settings = self._settings
        password = external.secret(settings.data_dir, self._id)
        client = "penstock-federation"
        options = topic.options(password)
        brokers = foreign.reach_brokers(
            topic,
            password,
            self._reach,
            self._home,
            client_id=client,
            timeout=settings.connect_seconds,
        )
        registry = SchemaRegistry(topic.registry, self._reach) if topic.registry else None
        self._appenders = {}
        self._next = {}
        self._decoder = None
        self._under_way.clear()
        try:
            with Reader(brokers.bootstrap, {}, client_id=client, options=options) as reader:
                looked = -_LOOK_SECONDS
                while not self._halt.is_set():
                    if time.monotonic() - looked >= _LOOK_SECONDS:
                        looked = time.monotonic()
                        self._look(brokers, reader)
                    with foreign.quiet(topic):
                        batches = reader.read(
                            settings.frame_rows,
                            _SETTLE_SECONDS if self._under_way else _REST_SECONDS,
                        )
                    for batch in batches:
                        self._send(batch, self._wanted(batch), registry)
                        self._next[batch.partition] = batch.next_offset
                    self._settle()
        finally:
            if registry is not None:
                registry.close()

    def _look(self, brokers: Brokers, reader: Reader) -> None:
        """Begin with partitions that are new, each behind its last message in our log; and see how
        far behind we are.
        """
        brokers.check()
        name = self._topic.topic
        admin = brokers.admin
        with foreign.quiet(self._topic):
            count = admin.topics().get(name)
        if count is None:
            raise BusError(
                f"there is no topic {name} at {self._topic.brokers}",
                code="E_NO_TOPIC",
                retryable=True,
            )
        new = [p for p in range(count) if p not in self._appenders]
        with foreign.quiet(self._topic):
            oldest = admin.start_offsets((name, p) for p in new)
        for p in new:
            self._next[p] = self._begin(p, oldest[name, p])
        reader.add({(name, p): self._next[p] for p in new})
        with foreign.quiet(self._topic):
            ends = admin.end_offsets((name, p) for p in self._next)
        self.report.lag = sum(max(end - self._next[p], 0) for (_, p), end in ends.items())
        self.report.state = "running"

    def _begin(self, partition: int, oldest: int) -> int:
        table = self._table()
        producer = names.foreign_producer(table.id, partition)
        self._appenders[partition], places = self._all.open(
            table, producer, table.id, self._present
        )
        if 0 not in places:
            return max(dict(self._topic.begin).get(partition, 0), oldest)
        following = places[0][0] + 1
        if oldest > following:
            log.error(
                "messages were deleted before they were read",
                stream=self._stream,
                partition=partition,
                first=following,
                next=oldest,
            )
        # a change may be two rows, of which one is there: the appender knows which
        return max(following - self._topic.changes, oldest)

    def _table(self) -> Table:
        table = self._present()
        if table is None:
            raise SchemaError("the external stream was dropped", code="E_NO_TABLE")
        return table

    # ---------------------------------------------------------------- messages

    def _wanted(self, batch: Batch) -> list[int]:
        """Places of messages that say something: a tombstone tells of a change only."""
        changes = self._topic.changes
        return [i for i, value in enumerate(batch.values) if changes or value is not None]

    def _send(self, batch: Batch, indexes: Sequence[int], registry: SchemaRegistry | None) -> None:
        """All of *indexes* at once; when they are refused each half by itself, until the bad
        message is alone.
        """
        if not indexes:
            return
        try:
            rows = self._rows(batch, indexes, registry)
            if rows.height:
                self._under_way.append(
                    self._appenders[batch.partition].append(
                        rows.to_arrow(compat_level=pl.CompatLevel.oldest()), lambda *_: None
                    )
                )
        except SchemaError as error:
            if error.code == "E_NO_TABLE":
                raise
            if len(indexes) == 1:
                self._bury(batch, indexes[0], error)
                return
            half = len(indexes) // 2
            self._send(batch, indexes[:half], registry)
            self._send(batch, indexes[half:], registry)

    def _rows(
        self, batch: Batch, indexes: Sequence[int], registry: SchemaRegistry | None
    ) -> pl.DataFrame:
        table = self._table()
        if self._decoder is None or self._decoder[0] != table.schema_id:
            self._decoder = (table.schema_id, foreign.rows_of(table, self._topic, registry))
        return self._decoder[1].decode(batch, indexes)

    def _bury(self, batch: Batch, index: int, error: SchemaError) -> None:
        """Make a dead letter of a message that cannot be read."""
        reason = error.message + (f": {error.detail}" if error.detail else "")
        bury(self._dead, DeadLetter.of(batch, index, "federation", error.code, reason))

    def _settle(self) -> None:
        """Count what is in our log; wait for the oldest while many are on their way."""
        while self._under_way and (
            self._under_way[0].done() or len(self._under_way) > self._settings.window
        ):
            try:
                self.report.rows += self._under_way[0].result(self._settings.ack_seconds)
            except TimeoutError:
                raise BusError(
                    "our own log does not confirm rows", code="E_TIMEOUT", retryable=True
                ) from None
            self._under_way.popleft()
        if not self._under_way:
            self.report.error = ""
            if not self.report.lag:
                self.report.level_at = time.time()
