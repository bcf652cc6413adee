"""What the catalog holds: frozen dataclasses of databases, tables with all their versions, child
tables, streams, users and roles.

Names keep the spelling they were created with; who looks them up compares case-insensitively
(`penstock.catalog.view`). Nothing here knows Kafka or Avro: entries become records in
`penstock.catalog.entries`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, cast

from penstock.catalog.stored import StoredNames, collect_names
from penstock.names import ingest_topic
from penstock.sql.plan import Column, Duration, Precision, StreamPlan
from penstock.udf.function import UserFunction

TableKind = Literal["stable", "plain", "virtual"]
StreamStatus = Literal["running", "paused", "failed"]


@dataclass(frozen=True)
class Move:
    """A database on its way to a topic of the next generation with so many partitions; what is
    false or empty has yet to happen.
    """

    partitions: int
    #: writers of ours hold what they get
    halted: bool = False
    #: of each partition of the old topic, the offset of the control record that ends it
    ended: tuple[int, ...] = ()


@dataclass(frozen=True)
class Database:
    """`keep` None: rows are kept for ever. `max_ahead`: how far in the future a row's time may lie.

    `dot_to_underscore`: measurements of line protocol with dots become tables with underscores;
    otherwise they are refused.
    """

    id: int
    name: str
    precision: Precision = "ms"
    keep: Duration | None = None
    partitions: int = 4
    max_ahead: Duration = Duration(1, "d")
    #: copies that Kafka keeps of its rows
    replica: int = 1
    options: Mapping[str, str] = field(default_factory=dict)
    #: where each partition of the topics of earlier generations ended, the first one's first
    former: tuple[tuple[int, ...], ...] = ()
    #: how many of those are not there any more
    removed: int = 0
    move: Move | None = None
    dot_to_underscore: bool = False

    @property
    def generation(self) -> int:
        """Grows when the number of partitions does."""
        return len(self.former) + 1

    @property
    def topic(self) -> str:
        """Carries the rows of all tables that have no topic of their own."""
        return ingest_topic(self.name, generation=self.generation)

    @property
    def next_topic(self) -> str:
        """Topic of the next generation."""
        return ingest_topic(self.name, generation=self.generation + 1)

    @property
    def former_topics(self) -> dict[str, int]:
        """Topics of earlier generations that are still there, the first one's first, and how many
        partitions each has.
        """
        return {t: n for t, n in self.lineage[self.removed : -1]}

    @property
    def lineage(self) -> list[tuple[str, int]]:
        """Topics of all generations, the first one's first, and how many partitions each had."""
        counts = [*map(len, self.former), self.partitions]
        return [(ingest_topic(self.name, generation=i), n) for i, n in enumerate(counts, 1)]


@dataclass(frozen=True)
class TableVersion:
    """The columns and tags of a table between two ALTERs; records written then carry
    `schema_id`.
    """

    schema_id: int
    columns: tuple[Column, ...]
    tags: tuple[Column, ...] = ()
    #: (old, new) names of what was renamed since the version before.
    renamed: tuple[tuple[str, str], ...] = ()
    #: (name, stored name) of columns whose names in segments differ from their own
    #: (`penstock.catalog.stored`)
    stored: tuple[tuple[str, str], ...] = ()


#: second column of every stream table: a row's index, which is its offset in subscriptions too
ROW_ID = "row_id"
#: option of a plain table that is filled from a topic of another Kafka (`penstock.foreign`)
FOREIGN = "kafka"


#: which rows of a keyed stream table are taken: the first of each key, newer ones by time, or all
#: of them, each told new from update
KeyRule = Literal["first", "latest", "changelog"]


@dataclass(frozen=True)
class Purge:
    """When rows leave memory by a time in them: rows older than `keep_ms` against the newest, once
    the oldest is older than `every_ms`.
    """

    column: str
    every_ms: int
    keep_ms: int


@dataclass(frozen=True)
class Replicated:
    """What a table of a raft group was made with. `asked_limit` is the cache limit before it was
    lowered to what is possible.
    """

    group: int
    cache_limit: int
    asked_limit: int
    retention_minutes: float = 1440
    key_columns: tuple[str, ...] = ()
    filter_column: str | None = None
    timestamp_column: str | None = None
    pre_cache: int | None = None
    key_rule: KeyRule = "first"
    #: what says which of two rows with the same key is newer
    time_columns: tuple[str, ...] = ()
    #: filled by the leader of a changelog: N for a new key, U for one that is there
    status_column: str | None = None
    async_write: bool = False
    compress: bool = True
    #: 1: Kafka syncs each record to disk before it acks
    flush_mode: int = 0
    purge: Purge | None = None


@dataclass(frozen=True)
class VirtualColumn:
    """Where a column of a virtual table comes from, by name: whoever bears the name when somebody
    asks.
    """

    column: str
    database: str
    table: str
    source: str


def _names(option: str | None) -> tuple[str, ...]:
    return tuple(name for name in (option or "").split("\x1f") if name)


@dataclass(frozen=True)
class Table:
    """A supertable or a plain table. `versions` holds every definition it ever had, the newest
    last.

    A `virtual` one has no rows of its own: with tags it is a supertable of virtual tables, else its
    columns are its `origins`.
    """

    id: int
    database: str
    name: str
    kind: TableKind
    topic: str
    partitions: int
    precision: Precision
    versions: tuple[TableVersion, ...]
    key_column: str | None = None
    #: id of the stream whose result this table is (None: nobody's).
    result_of: int | None = None
    #: None: what the database says.
    keep: Duration | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    origins: tuple[VirtualColumn, ...] = ()

    @property
    def replicated(self) -> Replicated | None:
        """Set for a stream table kept by a raft group: its rows are written by the group's leader
        only.
        """
        if "raft_group" not in self.options:
            return None
        o = self.options
        return Replicated(
            int(o["raft_group"]),
            int(o["cache_limit"]),
            int(o["asked_limit"]),
            float(o["retention_minutes"]),
            _names(o.get("key_column")),
            o.get("filter_column") or None,
            o.get("timestamp_column") or None,
            int(o["pre_cache"]) if "pre_cache" in o else None,
            cast(KeyRule, o.get("key_rule", "first")),
            _names(o.get("time_column")),
            o.get("status_column"),
            o.get("async_write") == "true",
            o.get("compress") != "false",
            int(o.get("flush_mode", "0")),
            Purge(
                o["cache_purge_time_column"],
                int(o["cache_purge_interval"]),
                int(o["cache_retention_time"]),
            )
            if "cache_purge_time_column" in o
            else None,
        )

    @property
    def foreign(self) -> bool:
        """Whether it is filled from a topic of another Kafka: rows for it are written there."""
        return FOREIGN in self.options

    @property
    def newest(self) -> TableVersion:
        return self.versions[-1]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.newest.columns

    @property
    def tags(self) -> tuple[Column, ...]:
        return self.newest.tags

    @property
    def schema_id(self) -> int:
        return self.newest.schema_id

    @property
    def schema_ids(self) -> tuple[int, ...]:
        return tuple(v.schema_id for v in self.versions)

    @cached_property
    def stored_names(self) -> StoredNames:
        """Names that columns and tags have in segments."""
        return collect_names(self.versions)

    @property
    def time_column(self) -> str:
        return self.columns[0].name

    @property
    def subject(self) -> str:
        """Name of the table's schemas in the registry view."""
        return f"{self.topic}-{self.name}"

    def version(self, schema_id: int) -> TableVersion:
        """The version with *schema_id*; KeyError when it is not one of this table's."""
        for version in self.versions:
            if version.schema_id == schema_id:
                return version
        raise KeyError(schema_id)


@dataclass(frozen=True, slots=True)
class Child:
    """A child table made by CREATE TABLE … USING. `tags[i]` is the value of the supertable's i-th
    tag when it was set; tags added to the supertable later are missing at the end and count as
    NULL. Values are JSON's: TIMESTAMP as ticks, DECIMAL as text, VARBINARY as hex digits.
    """

    id: int
    database: str
    stable_id: int
    name: str
    tags: tuple[object, ...] = ()
    #: of a virtual child table
    origins: tuple[VirtualColumn, ...] = ()


@dataclass(frozen=True)
class StreamEntry:
    """A stream. `created` is epoch milliseconds; `reason` says why `status` is failed.

    `maker` is the user whose rights say whom its NOTIFY may tell; empty: made before that was kept.
    """

    id: int
    plan: StreamPlan
    status: StreamStatus = "running"
    created: int = 0
    reason: str = ""
    maker: str = ""

    @property
    def database(self) -> str:
        return self.plan.database

    @property
    def name(self) -> str:
        return self.plan.name


@dataclass(frozen=True)
class External:
    """A table of another deployment under a name of ours. Its password is a secret file, never here
    (`penstock.link.external`).
    """

    id: int
    database: str
    name: str
    #: `penstock` (also written `timeplus`)
    type: str
    #: each shard's replicas, `host:port`
    shards: tuple[tuple[str, ...], ...]
    remote_database: str
    remote_name: str
    columns: tuple[Column, ...]
    tags: tuple[Column, ...] = ()
    precision: Precision = "ms"
    key_column: str | None = None
    user: str = "default"
    secure: bool = False
    #: certificates to trust besides the system's
    ca_file: str = ""
    #: of the table's topic over there, so that a mirror has as many
    partitions: int = 1
    #: ids that the table had at each shard when it was looked at
    remote_ids: tuple[int, ...] = ()
    #: epoch milliseconds
    created: int = 0
    #: a stream table over there: its leader fills ROW_ID
    numbered: bool = False
    #: the user who made it, whose rights say where it may connect to; empty: made before that was
    #: kept
    maker: str = ""

    @property
    def time_column(self) -> str:
        return self.columns[0].name


@dataclass(frozen=True)
class View:
    """A materialized view: `sql` is its SELECT, which filters and projects rows of the source into
    the target, each exactly once.
    """

    id: int
    database: str
    name: str
    sql: str
    #: id of a Table or an External
    source_id: int
    target_id: int
    #: the target was made for it and goes with it
    owns_target: bool = False
    status: Literal["running", "paused"] = "running"
    #: a token for each shard of the source: the first row that counts
    begin: tuple[str, ...] = ()
    #: epoch milliseconds
    created: int = 0
    timezone: str = "UTC"
    #: made by Penstock itself, so that a stream can compute over an external stream
    mirror: bool = False
    #: what becomes of a row that the target does not take: it is tried again for ever, it stops the
    #: view, or it is a dead letter
    on_error: Literal["retry", "stop", "drop"] = "retry"
    #: how often RESUME was said: one more, and a view that stopped at a row goes on
    resumed: int = 0


#: what may be granted; the last two only on everything
Right = Literal["READ", "WRITE", "CREATE", "ALTER", "DROP", "FUNCTION", "ADMIN"]


@dataclass(frozen=True)
class Grant:
    """One right on the database, table or stream of an id (ids are never used again), or on
    everything: 0.
    """

    right: Right
    object_id: int = 0


@dataclass(frozen=True)
class Role:
    """Rights under a name, for users to have."""

    id: int
    name: str
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True)
class User:
    """Somebody who may log in. `password` is an argon2 hash and is shown nowhere; `generation`
    outdates the tokens given out before.
    """

    id: int
    name: str
    password: str = field(repr=False)
    enabled: bool = True
    roles: tuple[int, ...] = ()
    grants: tuple[Grant, ...] = ()
    #: epoch milliseconds
    created: int = 0
    generation: int = 0


@dataclass(frozen=True)
class Snode:
    """A node that keeps backups of what the stream jobs need to go on elsewhere. `created` is epoch
    milliseconds.
    """

    id: int
    dnode: int
    created: int = 0

    @property
    def name(self) -> str:
        return f"snode{self.dnode}"


Principal = User | Role
Entry = (
    Database | Table | Child | StreamEntry | External | View | User | Role | Snode | UserFunction
)
