"""Statements about tables and user-defined functions, and DROP."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.sql.plan import Duration
from penstock.sql.statements.base import Name, Statement, Value
from penstock.types import ColumnType


@dataclass(frozen=True)
class ColumnDef:
    """A column or tag. `origin` = (table, column) of a virtual table's column."""

    name: str
    type: ColumnType
    composite_key: bool = False
    comment: str | None = None
    origin: tuple[Name, str] | None = None
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class TableOptions:
    comment: str | None = None
    keep: Duration | None = None
    #: WITH (topic='own', partitions=n)
    own_topic: bool = False
    partitions: int | None = None


@dataclass(frozen=True, kw_only=True)
class CreateStable(Statement):
    table: Name
    columns: tuple[ColumnDef, ...]
    tags: tuple[ColumnDef, ...]
    if_not_exists: bool = False
    options: TableOptions = TableOptions()
    virtual: bool = False


@dataclass(frozen=True, kw_only=True)
class CreateTable(Statement):
    """A plain table; `stream` when it was written `CREATE STREAM name (columns)`, `virtual` for
    CREATE VTABLE.
    """

    table: Name
    columns: tuple[ColumnDef, ...]
    if_not_exists: bool = False
    options: TableOptions = TableOptions()
    stream: bool = False
    virtual: bool = False


@dataclass(frozen=True)
class StreamTableSettings:
    """WITH (raft_group=…, …) of a stream table; `raft_group` is an id or an alias, as it was
    written.

    The last three go together: rows leave memory by the time in a column, once the oldest is older
    than the interval.
    """

    raft_group: int | str
    cache_limit: int
    key_column: tuple[str, ...] = ()
    retention_minutes: float = 1440
    pre_cache: int | None = None
    filter_column: str | None = None
    timestamp_column: str | None = None
    key_rule: str = "first"
    time_column: tuple[str, ...] = ()
    status_column: str | None = None
    async_write: bool = False
    compress: bool = True
    flush_mode: int = 0
    cache_purge_time_column: str | None = None
    cache_purge_interval: Duration | None = None
    cache_retention_time: Duration | None = None


@dataclass(frozen=True, kw_only=True)
class CreateStreamTable(Statement):
    """A stream table kept by a raft group."""

    table: Name
    columns: tuple[ColumnDef, ...]
    options: StreamTableSettings
    if_not_exists: bool = False


@dataclass(frozen=True)
class ChildDef:
    """`table USING stable [(tag_names)] TAGS (tag_values)`; `origins` = (column, (table, column))
    of a virtual child.
    """

    table: Name
    stable: Name
    tag_names: tuple[str, ...] | None
    tag_values: tuple[Value, ...]
    if_not_exists: bool = False
    origins: tuple[tuple[str, tuple[Name, str]], ...] = ()


@dataclass(frozen=True, kw_only=True)
class CreateChildren(Statement):
    children: tuple[ChildDef, ...]
    virtual: bool = False


AlterAction = Literal[
    "add_column",
    "drop_column",
    "modify_column",
    "add_tag",
    "drop_tag",
    "rename_tag",
    "modify_tag",
    "set_tag",
    "set_origin",
    "options",
]


@dataclass(frozen=True, kw_only=True)
class AlterTable(Statement):
    """`definition` for add and modify, `name` for drop and rename (with `new_name`), `values` for
    SET TAG, `options` for KEEP, COMMENT; `name` and `origin` for ALTER COLUMN … SET of a virtual
    table (no origin for SET NULL).
    """

    table: Name
    action: AlterAction
    stable: bool = False
    definition: ColumnDef | None = None
    name: str | None = None
    new_name: str | None = None
    values: tuple[tuple[str, Value], ...] = ()
    options: TableOptions | None = None
    origin: tuple[Name, str] | None = None


DropKind = Literal[
    "database",
    "table",
    "stable",
    "stream",
    "snode",
    "function",
    "external stream",
    "materialized view",
    "user",
    "role",
]


@dataclass(frozen=True, kw_only=True)
class Drop(Statement):
    """`names` has several only for tables: each with its own IF EXISTS."""

    kind: DropKind
    names: tuple[Name, ...]
    if_exists: tuple[bool, ...]


@dataclass(frozen=True, kw_only=True)
class CreateFunction(Statement):
    """`CREATE [AGGREGATE] FUNCTION name (parameter type, …) RETURNS type LANGUAGE PYTHON AS
    'code'`
    """

    name: str
    parameters: tuple[tuple[str, ColumnType], ...]
    returns: ColumnType
    code: str
    aggregate: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
