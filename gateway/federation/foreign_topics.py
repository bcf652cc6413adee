"""External streams that are topics of another Kafka: CREATE looks at the topic, INSERT writes
messages into it.

Owns a producer for each such topic that is written to. Its rows come back through the federation
service, which reads the topic into the table that bears the stream's name; nothing is written into
that table from here.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import polars as pl

from gateway import row_checks
from gateway.coalescer import PendingWrite
from gateway.ddl.definer import Definer
from gateway.row_batches import frame_of
from penstock import foreign
from penstock.bus import Admin, Delivery, Publisher
from penstock.catalog import changes
from penstock.catalog.model import Table
from penstock.errors import BusError, CatalogError
from penstock.foreign import MESSAGE_ID, Brokers, Messages, SchemaRegistry, Topic
from penstock.link import external
from penstock.outbound.reach import Outbound, Reach
from penstock.runtime.clock import Clock
from penstock.sql import statements as st
from penstock.sql.plan import TICKS_PER_SECOND, Column
from penstock.types import ColumnType

_CONNECT_S = 5.0
#: how old an answer of the other Kafka may be to who it is
_CHECK_S = 2.0


class ForeignTopics:
    """`create` runs in the DDL thread; `write` blocks and runs in any."""

    def __init__(
        self,
        definer: Definer,
        admin: Admin,
        clock: Clock,
        data_dir: Path,
        outbound: Outbound,
        timeout: float,
    ) -> None:
        """
        Args:
            definer: runs DDL.
            admin: of the mesh's own Kafka, which no topic may be at.
            clock: of the mesh.
            data_dir: of the deployment.
            outbound: where topics may be.
            timeout: seconds after which a message that is not acknowledged has failed.
        """
        self._definer = definer
        self._clock = clock
        self._data_dir = data_dir
        self._outbound = outbound
        self._timeout = timeout
        self._home = foreign.Home(admin.cluster)
        self._lock = threading.Lock()
        self._writers: dict[int, _Writer] = {}

    def create(self, statement: st.CreateExternalStream, database: str) -> None:
        """Look at the topic, keep the password, and note the rest in the catalog."""
        catalog = self._definer.catalog
        name = statement.stream.name
        found = catalog.table(database, name)
        if found is not None and found.foreign and statement.if_not_exists:
            return
        if statement.columns is None:
            hint = f"CREATE EXTERNAL STREAM {name} (ts TIMESTAMP, …) SETTINGS …"
            raise statement.error(
                "a topic has no columns: name those that are wanted",
                statement.stream,
                code="E_BAD_OPTION",
                hint=hint,
            )
        topic, password, start = foreign.read_settings(dict(statement.settings), self._data_dir)
        key = _key_of(statement, topic)
        topic = dataclasses.replace(topic, maker=self._definer.user)
        brokers = self._reach(topic, password)
        option = foreign.at(topic, _begin(topic, brokers, start)).option()
        columns = [Column(c.name, c.type) for c in statement.columns]
        change = changes.create_foreign(
            catalog,
            self._definer.new_id,
            database,
            name,
            columns,
            Column(MESSAGE_ID, ColumnType("BIGINT")),
            option,
            key_column=key,
        )
        (table,) = change.puts
        external.keep_secret(self._data_dir, table.id, password)
        try:
            self._definer.commit(change)
        except BaseException:
            external.forget_secret(self._data_dir, table.id)
            raise

    def forget(self, table: Table) -> None:
        """Forget a stream that was dropped; the topic stays as it is."""
        external.forget_secret(self._data_dir, table.id)
        with self._lock:
            writer = self._writers.pop(table.id, None)
        if writer is not None:
            writer.close()

    def write(self, write: PendingWrite) -> int:
        """Write a message for each row and wait until the brokers have them. Raises SchemaError,
        BusError, RemoteError.
        """
        layout = write.layout
        table = self._definer.catalog.table_by_id(layout.table_id)
        topic = foreign.of(table) if table is not None else None
        if table is None or topic is None:
            raise CatalogError(f'external stream "{layout.table}" was dropped', code="E_NO_STREAM")
        _check_writable(layout.table, topic)
        frame = frame_of(layout, write)
        now = self._clock.now() * TICKS_PER_SECOND[layout.precision] // 10**9
        row_checks.check(layout, frame, now)
        with self._lock:
            writer = self._writers.get(table.id)
            if writer is None or writer.schema_id != table.schema_id:
                if writer is not None:
                    writer.close()
                password = external.secret(self._data_dir, table.id)
                reach = self._outbound.reach(topic.maker)
                writer = self._writers[table.id] = _Writer(
                    table, topic, password, self._reach(topic, password), reach, self._timeout
                )
        sent = writer.send(frame)
        for future in sent:
            try:
                with foreign.quiet(topic):
                    future.result(self._timeout + 1)
            except TimeoutError:
                raise BusError(
                    "the other Kafka does not confirm messages", topic=topic.topic, retryable=True
                ) from None
        return len(sent)

    def _reach(self, topic: Topic, password: str) -> Brokers:
        """Connect to the brokers of *topic*. Raises CatalogError, BusError."""
        reach = self._outbound.reach(topic.maker)
        return foreign.reach_brokers(
            topic, password, reach, self._home, client_id="penstock", timeout=_CONNECT_S
        )

    def close(self) -> None:
        with self._lock:
            for writer in self._writers.values():
                writer.close()
            self._writers.clear()


class _Writer:
    """The producer of one topic."""

    def __init__(
        self,
        table: Table,
        topic: Topic,
        password: str,
        brokers: Brokers,
        reach: Reach,
        timeout: float,
    ) -> None:
        self.schema_id = table.schema_id
        self._topic = topic
        self._lock = threading.Lock()
        self._brokers = brokers
        self._checked = time.monotonic()
        self._registry = SchemaRegistry(topic.registry, reach) if topic.registry else None
        columns = [c for c in table.columns if c.name != MESSAGE_ID]
        assert topic.format != "protobuf"
        self._messages = Messages(topic.format, columns, table.precision, self._registry)
        self._bus = Publisher(
            brokers.bootstrap,
            client_id="penstock",
            timeout=timeout,
            options=topic.options(password),
        )

    def send(self, frame: pl.DataFrame) -> list[Future[Delivery]]:
        with self._lock:
            if time.monotonic() - self._checked > _CHECK_S:
                self._brokers.check()
                self._checked = time.monotonic()
            values = self._messages.encode(frame, f"{self._topic.topic}-value")
        return [self._bus.publish(self._topic.topic, value) for value in values]

    def close(self) -> None:
        self._bus.close()
        if self._registry is not None:
            self._registry.close()


def _key_of(statement: st.CreateExternalStream, topic: Topic) -> str | None:
    """Return the name of the column that tells rows apart. Raises SqlSemanticError."""
    key = next((c for c in statement.columns or () if c.composite_key), None)
    if topic.changes and key is None:
        raise statement.error(
            "rows that change need a key column",
            statement.stream,
            code="E_BAD_KEY",
            hint=f"CREATE EXTERNAL STREAM {statement.stream.name} "
            "(ts TIMESTAMP, id BIGINT PRIMARY KEY, …) SETTINGS …",
        )
    if key is not None and not topic.changes:
        raise statement.error(
            "messages are told apart by their place in the topic",
            key.offset,
            code="E_BAD_KEY",
            hint="leave out PRIMARY KEY; data_format='DebeziumJSON' or 'DebeziumAvro' needs it",
        )
    return key.name if key is not None else None


def _begin(topic: Topic, brokers: Brokers, start: str) -> dict[int, int]:
    """Return where each partition begins to count. Raises CatalogError when there is no such topic,
    BusError when nobody answers.
    """
    with foreign.quiet(topic):
        partitions = brokers.admin.topics().get(topic.topic)
        if partitions is None:
            raise CatalogError(
                f"there is no topic {topic.topic} at {topic.brokers}", code="E_NO_TOPIC"
            )
        if start == "earliest":
            return {}
        return {
            p: offset
            for (_, p), offset in brokers.admin.end_offsets(
                (topic.topic, p) for p in range(partitions)
            ).items()
        }


def _check_writable(table: str, topic: Topic) -> None:
    """Raise CatalogError if messages of *topic* are only read."""
    if topic.changes:
        raise CatalogError(
            f"{table} follows a table of a database and cannot be written to",
            code="E_UNSUPPORTED_STATEMENT",
            hint="change the row in that database",
        )
    if topic.format == "protobuf":
        raise CatalogError(
            f"{table} is a topic of Protobuf and is only read",
            code="E_UNSUPPORTED_STATEMENT",
            hint="write its messages with the serializer of your language",
        )
