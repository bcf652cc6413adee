"""`Catalog`: everything the log says, looked up by name (in any case), id or schema id.

One thread applies changes, any number look things up: every lookup is consistent by itself and
returns frozen entries or a list of its own. It holds what it is given and judges nothing; rules are
in `penstock.catalog.changes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from penstock.catalog.model import (
    Child,
    CompatibilityLevel,
    Database,
    Entry,
    External,
    Role,
    Snode,
    StreamEntry,
    Table,
    TableVersion,
    User,
    View,
)
from penstock.catalog.name_index import NameIndex
from penstock.names import FIRST_TABLE_SCHEMA_ID, database_of, generation
from penstock.sql.plan import StreamPlan
from penstock.udf.function import UserFunction

#: child tables that are looked at together
_AT_LEAST = 1_000


class Catalog:
    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        #: offset of the next record of the log; grows with every change
        self.revision = 0
        #: highest epoch of a catalog lease seen in the log
        self.epoch = 0
        #: every id below was given out at some time
        self.next_id = FIRST_TABLE_SCHEMA_ID
        #: grows with every change of a user or role: what was worked out from them is old then
        self.principals = 0
        self._names = NameIndex()
        #: supertable → how often a child table of it has gone since this process reads the log
        self._gone: dict[int, int] = {}
        self._ids: dict[int, Entry] = {}
        self._versions: dict[int, tuple[Table, TableVersion]] = {}
        for entry in entries:
            self.put(entry)

    # ---------------------------------------------------------------- changes (one thread)

    def put(self, entry: Entry) -> Entry | None:
        """Add *entry* or replace the one of its id, which is returned."""
        old = self._ids.get(entry.id)
        if old is not None and (old.name, type(old)) != (entry.name, type(entry)):
            self.remove(entry.id)
        self._ids[entry.id] = entry
        index, key = self._names.slot(entry)
        index[key] = entry
        highest = entry.id
        if isinstance(entry, Table):
            self._versions.update({v.schema_id: (entry, v) for v in entry.versions})
            highest = max((highest, *entry.schema_ids))
        elif isinstance(entry, User | Role):
            self.principals += 1
        if highest >= self.next_id:
            self.next_id = highest + 1
        return old

    def remove(self, entry_id: int) -> Entry | None:
        """Forget the entry of this id and return it."""
        old = self._ids.pop(entry_id, None)
        if old is None:
            return None
        index, key = self._names.slot(old)
        known = index.get(key)
        if known is not None and known.id == old.id:
            del index[key]  # else one that replaces it has the name already
        if isinstance(old, Child):
            self._gone[old.stable_id] = self._gone.get(old.stable_id, 0) + 1
        elif isinstance(old, Table):
            for version in old.versions:
                self._versions.pop(version.schema_id, None)
        elif isinstance(old, User | Role):
            self.principals += 1
        return old

    # ---------------------------------------------------------------- lookups (any thread)

    def by_id(self, entry_id: int) -> Entry | None:
        return self._ids.get(entry_id)

    def database(self, name: str) -> Database | None:
        return self._names.databases.get(name.lower())

    def databases(self) -> list[Database]:
        return sorted(self._names.databases.copy().values(), key=lambda d: d.name)

    def table(self, database: str, name: str) -> Table | None:
        """The supertable or plain table *name*."""
        return self._names.tables.get((database.lower(), name.lower()))

    def table_by_id(self, table_id: int) -> Table | None:
        found = self._ids.get(table_id)
        return found if isinstance(found, Table) else None

    def tables(self, database: str | None = None) -> list[Table]:
        """Return supertables and plain tables of *database*, or of all, by name."""
        found = self._names.tables.copy().values()
        return sorted(
            (t for t in found if database is None or t.database.lower() == database.lower()),
            key=lambda t: (t.database, t.name),
        )

    def tables_of_topic(self, topic: str) -> list[Table]:
        return [t for t in self._names.tables.copy().values() if t.topic == topic]

    def topics(self) -> dict[str, int]:
        """Every ingestion topic that should exist, and its partitions."""
        found = {d.topic: d.partitions for d in self._names.databases.copy().values()}
        return found | {t.topic: t.partitions for t in self._names.tables.copy().values()}

    def former_topics(self) -> dict[str, int]:
        """Topics of earlier generations, and their partitions: what comes there now comes too
        late.
        """
        return {
            t: n for d in self._names.databases.copy().values() for t, n in d.former_topics.items()
        }

    def database_of_topic(self, topic: str) -> Database | None:
        """The database whose tables share *topic*, whichever generation it is of, the next one too
        while it is made.
        """
        found = self.database(database_of(topic))
        if found is None:
            return None
        known = (
            found.topic,
            *found.former_topics,
            *((found.next_topic,) if found.move is not None else ()),
        )
        return found if topic in known else None

    def is_halted(self, topic: str) -> bool:
        """Return True when nothing may be written to *topic*, because its partitions are being
        changed or have been.
        """
        found = self.database_of_topic(topic)
        if found is None or topic != found.topic:
            return found is not None
        return found.move is not None and found.move.halted

    def begins(self, topic: str) -> dict[int, int]:
        """Return where partitions of a topic begin that took the place of others; there are no
        records below.
        """
        found = self.database_of_topic(topic)
        number = generation(topic)
        if found is None or not 1 < number <= found.generation:
            return {}
        ends = found.former[number - 2]
        partitions = found.lineage[number - 1][1]
        return {q: ends[q % len(ends)] + 1 for q in range(partitions)}

    def ends(self, topic: str) -> dict[int, int]:
        """Return where partitions of a topic ended that others have taken the place of: records
        behind do not count.
        """
        found = self.database_of_topic(topic)
        return (
            dict(enumerate(found.former[generation(topic) - 1]))
            if found is not None and topic in found.former_topics
            else {}
        )

    def lineage(self, topic: str) -> list[tuple[str, int]]:
        """A topic and those it took the place of, the newest first, each with its partitions."""
        home = self.database_of_topic(topic)
        return (
            home.lineage[: generation(topic)][::-1]
            if home is not None
            else [(topic, self.topics().get(topic, 0))]
        )

    def is_scanned(self, topic: str) -> bool:
        """Return True when a query reads the topic: a stream table's own one only while a stream
        does, because its rows go other ways, too.
        """
        tables = self.tables_of_topic(topic)
        if not tables or any(t.replicated is None for t in tables):
            return True
        return any(self.readers_of(t.id) for t in tables)

    def topic_owner(self, topic: str) -> int:
        """Id of the database or table that an ingestion topic was made for; 0 when there is none. A
        topic that was dropped and made again under the same name has another owner: nothing kept
        about the old one's offsets holds for it.
        """
        home = self.database_of_topic(topic)
        return (
            home.id
            if home is not None
            else next((t.id for t in self._names.tables.copy().values() if t.topic == topic), 0)
        )

    def databases_behind(self, database: str, name: str) -> set[str]:
        """Databases whose rows a query over the table *name* reads: more than its own when it is
        virtual.
        """
        entry = self.table(database, name) or self.child(database, name)
        table = self.table_by_id(entry.stable_id) if isinstance(entry, Child) else entry
        if entry is None or table is None or table.kind != "virtual":
            return {database}
        parts = [entry, *(self.children(table.id) if entry is table else ())]
        return {database, *(o.database for part in parts for o in part.origins)}

    def child(self, database: str, name: str) -> Child | None:
        """The child table *name*, if it was made by CREATE TABLE (others are known to the
        store).
        """
        return self.children_by_name(database).get(name.lower())

    def children_by_name(self, database: str) -> Mapping[str, Child]:
        """The child tables of a database that were made by CREATE TABLE, by lower-case name."""
        return self._names.children.get(database.lower(), {})

    def children(self, stable_id: int) -> list[Child]:
        table = self.table_by_id(stable_id)
        found = (
            self._names.children.get(table.database.lower(), {}).copy().values() if table else ()
        )
        return [c for c in found if c.stable_id == stable_id]

    def some_children(self, stable: Table, most: int) -> list[Child]:
        """Return child tables of a supertable that CREATE TABLE made, no more than *most*, and look
        at few others for it.
        """
        children = self._names.children.get(stable.database.lower(), {})
        size = max(most, _AT_LEAST)
        while True:
            # in one step of the interpreter, so that nobody changes the dict meanwhile
            looked_at = list(islice(children.values(), size))
            found = [c for c in looked_at if c.stable_id == stable.id]
            if len(found) >= most or len(looked_at) < size:
                return found[:most]
            size *= 4

    def child_removals(self, stable_id: int) -> int:
        """Return a number that grows when a child table of the supertable goes: whatever was
        remembered of its child tables is old then.
        """
        return self._gone.get(stable_id, 0)

    def stream(self, database: str, name: str) -> StreamEntry | None:
        return self._names.streams.get((database.lower(), name.lower()))

    def stream_by_id(self, stream_id: int) -> StreamEntry | None:
        found = self._ids.get(stream_id)
        return found if isinstance(found, StreamEntry) else None

    def streams(self, database: str | None = None) -> list[StreamEntry]:
        found = self._names.streams.copy().values()
        return sorted(
            (s for s in found if database is None or s.database.lower() == database.lower()),
            key=lambda s: s.id,
        )

    def snodes(self) -> list[Snode]:
        return sorted(self._names.snodes.copy().values(), key=lambda s: s.dnode)

    def snode(self, dnode: int) -> Snode | None:
        return self._names.snodes.get(dnode)

    def function(self, name: str) -> UserFunction | None:
        return self._names.functions.get(name.lower())

    def functions(self) -> list[UserFunction]:
        return sorted(self._names.functions.copy().values(), key=lambda f: f.name)

    def readers_of(self, table_id: int) -> list[StreamEntry]:
        """Streams whose source is this table (or a child of it)."""
        return [s for s in self.streams() if s.plan.source.table_id == table_id]

    def streams_fed_by(self, table_id: int) -> list[StreamEntry]:
        """Streams that see the records of this table: its readers, and those over virtual tables
        that take columns from it.
        """
        return [s for s in self.streams() if table_id in s.plan.source.table_ids]

    def sources_of(self, plan: StreamPlan) -> list[Table]:
        """Tables whose topics carry the rows of a plan's source; those of a virtual one that are
        dropped are left out.
        """
        found = (self.table_by_id(i) for i in plan.source.table_ids)
        return [t for t in found if t is not None]

    def source_topics(self, plan: StreamPlan) -> dict[str, int]:
        """Topics that carry the rows of a plan's source, and how many partitions each has."""
        return {t.topic: t.partitions for t in self.sources_of(plan)}

    def writers_of(self, table_id: int) -> list[StreamEntry]:
        """Streams whose results go into this table."""
        return [s for s in self.streams() if s.plan.target.table_id == table_id]

    def external(self, database: str, name: str) -> External | None:
        return self._names.externals.get((database.lower(), name.lower()))

    def externals(self, database: str | None = None) -> list[External]:
        found = self._names.externals.copy().values()
        return sorted(
            (e for e in found if database is None or e.database.lower() == database.lower()),
            key=lambda e: e.id,
        )

    def view(self, database: str, name: str) -> View | None:
        """The materialized view *name*."""
        return self._names.views.get((database.lower(), name.lower()))

    def views(self, database: str | None = None) -> list[View]:
        found = self._names.views.copy().values()
        return sorted(
            (v for v in found if database is None or v.database.lower() == database.lower()),
            key=lambda v: v.id,
        )

    def views_of(self, entry_id: int) -> list[View]:
        """Views that read or write this table or external stream."""
        return [v for v in self.views() if entry_id in (v.source_id, v.target_id)]

    def user(self, name: str) -> User | None:
        return self._names.users.get(name.lower())

    def users(self) -> list[User]:
        return sorted(self._names.users.copy().values(), key=lambda u: u.name)

    def role(self, name: str) -> Role | None:
        return self._names.roles.get(name.lower())

    def roles(self) -> list[Role]:
        return sorted(self._names.roles.copy().values(), key=lambda r: r.name)

    def compatibility(self, table_id: int) -> CompatibilityLevel | None:
        """The registry's level of a table's subject; of EVERY_TABLE the one for all others."""
        return self._names.levels.get(table_id)

    def schema(self, schema_id: int) -> tuple[Table, TableVersion] | None:
        """The table and the version whose records carry *schema_id*."""
        return self._versions.get(schema_id)

    def was_dropped(self, schema_id: int) -> bool:
        """Return True when *schema_id* was given out once and its table is gone: its records are
        skipped, not dead-lettered.
        """
        return FIRST_TABLE_SCHEMA_ID <= schema_id < self.next_id and schema_id not in self._versions

    def is_undecided(self, schema_id: int) -> bool:
        """Return True when *schema_id* may be of a table whose definition is not here yet."""
        return (
            schema_id >= FIRST_TABLE_SCHEMA_ID
            and schema_id not in self._versions
            and not self.was_dropped(schema_id)
        )
