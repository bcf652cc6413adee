"""Changes of the catalog: rules from `penstock.catalog.changes`, topics made before tables,
children told in band.

Owns the one thread in which this gateway changes the catalog, and what has to happen in Kafka and
Redis around a change. Only the holder of the catalog's lease changes it; a gateway that does not
hold it says who does (`Elsewhere`), and its front forwards the statement.
"""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import redis

from gateway import children as tags_text
from gateway.children import Children
from gateway.intake import database_of, layout_of
from gateway.rows import Layout
from penstock import log, names, nodes
from penstock.bus import Admin, Delivery, Publisher
from penstock.catalog import changes
from penstock.catalog.changes import Change, NewId
from penstock.catalog.model import Child, Database, Table
from penstock.catalog.principals import owner
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.catalog.writer import CatalogWriter
from penstock.errors import BusError, CatalogError, LeaseLost, RemoteError
from penstock.partition import partition
from penstock.records import DROPPED, ControlRecord, encode
from penstock.redis_link import ask
from penstock.sql.plan import Column

_log = log.get("gateway.ddl")
T = TypeVar("T")
#: ticks that no time lies beyond
_ALL_TIME = (-(2**63), 2**63 - 1)


class Elsewhere(Exception):
    """Another gateway holds the catalog's lease; `address` is where."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


class Definer:
    """Runs DDL. Methods without `async` run in the DDL thread."""

    def __init__(
        self,
        reader: CatalogReader,
        writer: CatalogWriter,
        admin: Admin,
        bus: Publisher,
        client: redis.Redis,
        children: Children,
        *,
        live_timeout: float,
        wait_for_jobs: bool,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._admin = admin
        self._bus = bus
        self._redis = client
        self._children = children
        self._live_timeout = live_timeout
        self._wait_for_jobs = wait_for_jobs
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ddl")
        #: for whom the DDL thread works at the moment; they own what they make
        self._user = ""
        #: brings to an end what an earlier leader has left half-done, before anything else is done
        self.settle: Callable[[], None] = lambda: None
        #: told what was written, before the statement is over
        self.committed: Callable[[Change], None] = lambda _: None

    @property
    def catalog(self) -> Catalog:
        return self._reader.catalog

    @property
    def user(self) -> str:
        """The user for whom the DDL thread works at the moment."""
        return self._user

    def close(self) -> None:
        self._thread.shutdown()

    async def run(self, action: Callable[[], T], user: str = "") -> T:
        """Run *action* in the DDL thread, as the catalog's leader. Raises Elsewhere when another
        gateway is that.

        Args:
            user: gets all rights on what the action makes.
        """

        def lead() -> T:
            self._user = user
            for last in (False, True):
                self._lead()
                try:
                    self.settle()
                    return action()
                except LeaseLost:
                    if last:
                        raise
            raise AssertionError("unreachable")

        return await asyncio.get_running_loop().run_in_executor(self._thread, lead)

    def _lead(self) -> None:
        if self._writer.leading or self._writer.lead():
            return
        holder = self._writer.leader()
        if holder is None:
            raise RemoteError(
                "no gateway leads the catalog at the moment",
                code="E_LEASE_HELD",
                hint="try again in a second",
            )
        raise Elsewhere(holder.address)

    def commit(self, change: Change) -> int:
        """Make topics that the change needs, then write it."""
        wanted = {e.topic: e.partitions for e in change.puts if isinstance(e, Table)}
        wanted |= {e.topic: e.partitions for e in change.puts if isinstance(e, Database)}
        missing = {t: n for t, n in wanted.items() if t not in self.catalog.topics()}
        for replica, topics in self._by_replica(change, missing).items():
            self._clear_way(topics)
            self._admin.ensure_topics(topics, replication=replica)
        for table in (e for e in change.puts if isinstance(e, Table) and e.topic in missing):
            # also when it is not wanted: the topic may be one that a dropped table has left
            if table.replicated is not None:
                self._admin.set_flush(table.topic, 1 if table.replicated.flush_mode else None)
        puts = (*change.puts, *owner(self.catalog, change.puts, self._user))
        if not puts and not change.removes:
            return self.catalog.revision
        revision = self._writer.commit(puts, change.removes)
        self.committed(Change(puts, change.removes))
        return revision

    def make_topics(self, topics: dict[str, int], database: Database) -> None:
        """Make topics of a database, unless they are there."""
        self._admin.ensure_topics(
            topics, replication=database.replica if database.replica > 1 else -1
        )

    def _clear_way(self, topics: dict[str, int]) -> None:
        """A topic that something dropped has left stays, so that offsets in it stay what they were,
        until its name is wanted with another number of partitions: then it is deleted, once the
        stream jobs and the store have left it. One that we have not dropped is not ours to delete.
        """
        there = self._admin.topics()
        other = [t for t, partitions in topics.items() if there.get(t, partitions) != partitions]
        if not other:
            return
        self.delete_topics(
            ask(lambda: [t for t in other if self._redis.sismember(names.topics_dropped(), t)])
        )

    def delete_topics(self, topics: list[str]) -> None:
        """Delete topics that the catalog no longer knows, once the stream jobs and the store have
        left them.
        """
        if not topics:
            return
        store = self.runs("store")
        beats = [names.query_heartbeat(t) for t in topics]
        revision = self.catalog.revision

        def left() -> bool:
            read = self._wait_for_jobs and self._redis.exists(*beats)
            return not read and (
                not store or int(self._redis.get(names.store_followed()) or 0) >= revision
            )

        self.wait(
            left,
            f"topic {topics[0]} of what was dropped is still being read",
            "send it again; `penstock status` shows who lags",
        )
        self._admin.delete_topics(topics)

    def _left(self, topics: Iterable[str]) -> None:
        """Remember topics that what was dropped has left."""
        gone = sorted(
            set(topics) - self.catalog.topics().keys() - self.catalog.former_topics().keys()
        )
        try:
            if gone:
                self._redis.sadd(names.topics_dropped(), *gone)
        except redis.RedisError as down:
            _log.warning(
                "topics cannot be made again with other partitions", topics=gone, reason=str(down)
            )

    def _by_replica(self, change: Change, topics: dict[str, int]) -> dict[int, dict[str, int]]:
        """Topics to make by the number of copies their database asks for; -1: what Kafka does by
        itself.
        """
        made = {e.name.lower(): e for e in change.puts if isinstance(e, Database)}
        found: dict[int, dict[str, int]] = {}
        for topic, partitions in topics.items():
            name = names.database_of(topic)
            database = made.get(name) or self.catalog.database(name)
            replica = database.replica if database is not None and database.replica > 1 else -1
            found.setdefault(replica, {})[topic] = partitions
        if found and max(found) > 1 and (brokers := self._admin.brokers()) < max(found):
            raise CatalogError(
                f"Kafka has {brokers} broker{'s' if brokers > 1 else ''}, REPLICA {max(found)}"
                f" needs {max(found)}",
                code="E_BAD_OPTION",
                hint="`penstock up` runs one broker; PENSTOCK_KAFKA_BOOTSTRAP can name a cluster",
            )
        return found

    def create_snode(self, dnode: int) -> None:
        """CREATE SNODE ON DNODE: the node must be there."""
        known = self.nodes()
        found = next((n for n in known if n.id == dnode), None)
        if found is None:
            listed = ", ".join(str(n.id) for n in known) or "none"
            raise CatalogError(
                f"there is no dnode {dnode}",
                code="E_NO_DNODE",
                detail=f"nodes heard of: {listed}",
                hint="SHOW DNODES",
            )
        if "snode" not in found.rooms:
            raise CatalogError(
                f"no snode room runs on dnode {dnode}",
                code="E_NO_DNODE",
                hint="start it there: `penstock up --rooms …,snode`",
            )
        self.decide(lambda c, i: changes.create_snode(c, i, dnode, created=time.time_ns() // 10**6))

    def nodes(self) -> list[nodes.Node]:
        """The nodes of the mesh."""
        return ask(lambda: nodes.read(self._redis, time.time()))

    def decide(self, rule: Callable[[Catalog, NewId], Change]) -> Change:
        """Apply one of the rules of `penstock.catalog.changes` and write what it says."""
        change = rule(self.catalog, self._writer.new_id)
        self.commit(change)
        return change

    def new_id(self) -> int:
        return self._writer.new_id()

    def wait_read(self, topic: str) -> None:
        """Return when a query reads *topic* (spark_jobs keeps a heartbeat): only then is it of use.
        Any thread.
        """
        if not self._wait_for_jobs:
            return
        self.wait(
            lambda: bool(self._redis.exists(names.query_heartbeat(topic))),
            f"nothing reads topic {topic} yet",
            "is spark_jobs running?",
        )

    def forget_pause(self, view_id: int) -> None:
        """What the federation room said of the view holds no longer: a PAUSE to come waits for an
        answer of its own.
        """
        ask(lambda: self._redis.hset(names.view_status(view_id), "state", "starting"))

    def wait_paused(self, view_id: int) -> None:
        """Return when no row of the view comes any more. Any thread."""
        self.wait(
            lambda: self._redis.hget(names.view_status(view_id), "state") == b"paused",
            "rows of the view are still on their way",
            "it is paused once the target has answered; `penstock logs federation` says what it"
            " waits for",
        )

    def wait(self, done: Callable[[], bool], message: str, hint: str) -> None:
        """Ask Redis until *done*, less often as time goes by. Raises BusError (`E_NOT_LIVE`)."""
        waited = 0.0
        pause = 0.002
        never = threading.Event()
        while not ask(done):
            if waited > self._live_timeout:
                raise BusError(
                    message,
                    code="E_NOT_LIVE",
                    detail=f"waited {self._live_timeout:g} s",
                    hint=hint,
                    retryable=True,
                )
            never.wait(pause)
            waited += pause
            pause = min(pause * 1.3, 0.1)

    # ---------------------------------------------------------------- controls

    def send(
        self, topic: str, partitions: Sequence[int], control: ControlRecord, timeout: float = 10.0
    ) -> dict[int, int]:
        """Write *control* to partitions of a topic; its offset in each, once Kafka has it."""
        value = encode(control)
        sent = {p: self._bus.publish(topic, value, partition=p) for p in partitions}
        found: dict[int, int] = {}
        for p, future in sent.items():
            try:
                delivery: Delivery = future.result(timeout)
            except TimeoutError:
                raise BusError(
                    "Kafka does not confirm a control record",
                    topic=topic,
                    partition=p,
                    retryable=True,
                ) from None
            found[p] = delivery.offset
        return found

    # ---------------------------------------------------------------- child tables

    def create_child(
        self, database: str, name: str, stable: str, values: dict[str, Any], if_not_exists: bool
    ) -> None:
        """CREATE TABLE … USING: an entry in the catalog and word of it in band, at the place where
        the child's rows go.
        """
        found = self._seen(database, name)
        if found is not None and self.catalog.child(database, name) is None:
            if if_not_exists:
                return
            raise CatalogError(
                f"table {database}.{found[1]} exists already",
                code="E_TABLE_EXISTS",
                detail="its rows made it known",
            )
        change = self.decide(
            lambda c, i: changes.create_child(
                c, i, database, name, stable, values, if_not_exists=if_not_exists
            )
        )
        for entry in change.puts:
            if isinstance(entry, Child):
                self._tell(entry, "child")

    def set_tags(self, database: str, name: str, values: dict[str, Any]) -> None:
        """ALTER TABLE child SET TAG."""
        layout, spelling, held = self._child(database, name)
        merged = dict(zip((t.name for t in layout.tags), held, strict=True))
        for tag, value in values.items():
            column = next((t for t in layout.tags if t.name.lower() == tag.lower()), None)
            merged[column.name if column else tag] = value
        change = self.decide(
            lambda c, i: changes.set_tags(c, i, database, spelling, layout.table, merged)
        )
        for entry in change.puts:
            if isinstance(entry, Child):
                self._tell(entry, "tag")

    def drop_table(self, database: str, name: str, if_exists: bool) -> None:
        """DROP TABLE or STABLE. A child's rows go too, at their place in the log."""
        table = self.catalog.table(database, name)
        if table is None and (child := self._seen(database, name)) is not None:
            self._drop_child(database, child[0], child[1])
            return
        self.decide(lambda c, _: changes.drop_table(c, database, name, if_exists=if_exists))
        if table is not None:
            self._forget(table)
            self._empty_log(table)
            self._left([table.topic])

    def _drop_child(self, database: str, layout: Layout, name: str) -> None:
        """Its rows first, its name last: a DROP that fails half-way can be sent again. The store
        names in Redis what it sees in rows, so the name goes when the store has taken the delete,
        not before.
        """
        change = changes.drop_child(self.catalog, self._writer.new_id, database, name, layout.table)
        drop = secrets.token_hex(8)
        where = self.delete_rows(layout, (name,), *_ALL_TIME, body=DROPPED, echo=drop)
        if self.runs("store"):
            wanted = {f"store:{topic}:{p}" for topic, p in where}
            self.wait(
                lambda: (
                    wanted <= {tags_text.text(k) for k in self._redis.hkeys(names.barrier(drop))}
                ),
                f"the store has not taken the drop of {name} yet",
                "send it again; `penstock status` shows who lags",
            )
        self._children.forget_child(layout, name)
        self.commit(change)

    def runs(self, room: str) -> bool:
        """Whether a process of *room* has been heard of lately."""
        return any(room in n.rooms for n in self.nodes())

    def log_ends(self, topic: str, partitions: int) -> dict[tuple[str, int], int]:
        """Where a topic ends."""
        return self._admin.end_offsets([(topic, p) for p in range(partitions)])

    def log_end(self, topic: str) -> int:
        """Where the log of a stream table ends."""
        return self._admin.end_offsets([(topic, 0)])[topic, 0]

    def _empty_log(self, table: Table) -> None:
        """A stream table's rows go with it. The topic stays, so that offsets in it stay what they
        were.
        """
        if table.replicated is None:
            return
        try:
            self._admin.delete_records(self._admin.end_offsets([(table.topic, 0)]))
        except BusError as error:
            _log.warning(
                "records of a dropped stream table stay in Kafka",
                topic=table.topic,
                reason=str(error),
            )

    def drop_database(self, name: str, if_exists: bool) -> None:
        """DROP DATABASE: its streams are told to stop; its topics stay, so that offsets in them
        stay what they were.
        """
        tables = self.catalog.tables(name)
        topics_before = self.catalog.former_topics() | self.catalog.topics()
        streams = {s.id: self.catalog.source_topics(s.plan) for s in self.catalog.streams(name)}
        self.decide(lambda c, _: changes.drop_database(c, name, if_exists=if_exists))
        for stream_id, topics in streams.items():
            for topic, partitions in topics.items():
                self.send(topic, range(partitions), ControlRecord("stream_off", stream=stream_id))
        for table in tables:
            self._forget(table)
            self._empty_log(table)
        self._left(topics_before)

    def delete_rows(
        self,
        layout: Layout,
        tables: tuple[str, ...] | None,
        low: int,
        high: int,
        body: str = "",
        echo: str = "",
    ) -> dict[tuple[str, int], int]:
        """Write a delete to the partitions that may hold such rows; where it was written.

        Args:
            echo: as the id of a barrier, under which the store says that it has taken it.
        """
        table = self.catalog.table_by_id(layout.table_id)
        if table is not None:  # its partitions may have changed since somebody looked
            layout = dataclasses.replace(layout, topic=table.topic, partitions=table.partitions)
        where = (
            range(layout.partitions)
            if tables is None
            else sorted({partition(t, layout.partitions) for t in tables})
        )
        control = ControlRecord(
            "delete", id=echo, table=layout.table_id, tables=tables, low=low, high=high, body=body
        )
        return {(layout.topic, p): o for p, o in self.send(layout.topic, where, control).items()}

    def find_table(self, database: str, name: str) -> tuple[Table, str | None] | None:
        """See `penstock.catalog.virtual.Find`."""
        if self.catalog.database(database) is None:
            return None
        if (table := self.catalog.table(database, name)) is not None:
            return table, None
        found = self._seen(database, name)
        table = self.catalog.table_by_id(found[0].table_id) if found is not None else None
        return (table, found[1]) if table is not None and found is not None else None

    def stable_of(self, database: str, name: str) -> int | None:
        """Id of the supertable of a child table that rows have made known."""
        found = self._seen(database, name) if self.catalog.database(database) is not None else None
        return found[0].table_id if found is not None else None

    def _child(self, database: str, name: str) -> tuple[Layout, str, tuple[Any, ...]]:
        found = self._seen(database, name)
        if found is None:
            raise CatalogError(f"there is no child table {database}.{name}", code="E_NO_TABLE")
        return found

    def _seen(self, database: str, name: str) -> tuple[Layout, str, tuple[Any, ...]] | None:
        """A child table by name, from the catalog or from rows."""
        home = database_of(self.catalog, database)
        for table in self.catalog.tables(database):
            if table.kind != "stable":
                continue
            layout = layout_of(home, table)
            known = self.catalog.child(database, name)
            if known is not None and known.stable_id != table.id:
                continue
            found = self._children.find(layout, name, self.catalog)
            if found is not None:
                return layout, found[0], found[1]
        return None

    def _tell(self, child: Child, kind: str) -> None:
        table = self.catalog.table_by_id(child.stable_id)
        home = self.catalog.database(child.database)
        if table is None or home is None:
            return
        layout = layout_of(home, table)
        values = (*child.tags, *(None,) * (len(table.tags) - len(child.tags)))
        control = ControlRecord(
            kind, table=table.id, tables=(child.name,), body=tags_text.to_json(values, layout)
        )
        self.send(table.topic, [partition(child.name, table.partitions)], control)

    def tags_changed(self, table: Table) -> None:
        """Tags of the supertable were added, dropped or renamed."""
        self._children.forget(table.id)

    def _forget(self, table: Table) -> None:
        self._children.forget(table.id)
        try:
            self._redis.unlink(names.children(table.id), names.last_row(table.database, table.name))
        except redis.RedisError as down:
            _log.warning(
                "what Redis held of a dropped table stays", table=table.name, reason=str(down)
            )

    # ---------------------------------------------------------------- tables that rows make

    def missing(
        self, database: str, name: str, columns: Sequence[Column], tags: Sequence[Column]
    ) -> bool:
        """Whether line protocol needs columns that the table does not have."""
        table = self.catalog.table(database, name)
        if table is None:
            return True
        have = {c.name.lower(): c.type for c in (*table.columns, *table.tags)}
        return any(self._grows(have.get(c.name.lower()), c) for c in (*columns, *tags))

    @staticmethod
    def _grows(have: Any, want: Column) -> bool:
        return have is None or (have.sized and want.type.sized and want.type.length > have.length)

    def widen(
        self,
        database: str,
        name: str,
        time: Column,
        columns: Sequence[Column],
        tags: Sequence[Column],
    ) -> None:
        """Make the supertable *name*, or widen it, so that it has these columns and tags."""
        if self.catalog.table(database, name) is None:
            self.decide(
                lambda c, i: changes.create_table(
                    c, i, database, name, (time, *columns), tags, if_not_exists=True
                )
            )
            return
        for column, tag in [*((c, False) for c in columns), *((t, True) for t in tags)]:
            table = self.catalog.table(database, name)
            assert table is not None
            have = {c.name.lower(): c.type for c in (table.tags if tag else table.columns)}
            self._widen_one(database, name, column, tag, have.get(column.name.lower()))

    def _widen_one(self, database: str, name: str, column: Column, tag: bool, have: Any) -> None:
        if have is None:
            self.decide(lambda c, i: changes.add_column(c, i, database, name, column, tag=tag))
        elif self._grows(have, column):
            wider = Column(column.name, type(have)(have.kind, column.type.length))
            self.decide(lambda c, i: changes.modify_column(c, i, database, name, wider, tag=tag))
