"""Tables with all their versions, and child tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, cast

from penstock.catalog.stored import StoredNames, collect_names
from penstock.sql.plan import Column, Duration, Precision

TableKind = Literal["stable", "plain", "virtual"]


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
    """Removal of rows from memory by a time in them: rows older than `keep_ms` against the newest,
    once the oldest is older than `every_ms`.
    """

    column: str
    every_ms: int
    keep_ms: int


@dataclass(frozen=True)
class Replicated:
    """Options of a table of a raft group. `asked_limit` is the cache limit before it was
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
    """The origin of a column of a virtual table, by name: the table that bears the name when a
    query asks.
    """

    column: str
    database: str
    table: str
    source: str


def _split_names(option: str | None) -> tuple[str, ...]:
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
    #: id of the stream whose result this table is, if it is one
    result_of: int | None = None
    #: by default what the database says
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
            _split_names(o.get("key_column")),
            o.get("filter_column") or None,
            o.get("timestamp_column") or None,
            int(o["pre_cache"]) if "pre_cache" in o else None,
            cast(KeyRule, o.get("key_rule", "first")),
            _split_names(o.get("time_column")),
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
        """True when it is filled from a topic of another Kafka: rows for it are written there."""
        return FOREIGN in self.options

    @cached_property
    def timeless(self) -> bool:
        """True when all its rows have the same time, that of `fixed_time`: none gets old."""
        return bool(json.loads(self.options.get(FOREIGN, "{}")).get("fixed_time"))

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
