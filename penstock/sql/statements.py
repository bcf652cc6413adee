"""Every statement of the dialect as frozen data. Positions, source text and notices do not count in
comparisons.

A statement says what was written, not what it means: names are unbound, nothing is checked against
the catalog. Expressions are sqlglot trees (`exp.Expr`, see `penstock.sql.nodes`); literals in
INSERT and TAGS are plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.plan import Duration, Trigger
from penstock.sql.source import Source
from penstock.types import ColumnType


@dataclass(frozen=True)
class Name:
    """`[database.]name`, spelled as written; `offset` is where it stands."""

    name: str
    database: str | None = None
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class RelativeTime:
    """`now + 1s`: `base` is `now`, `today`, a number of ticks or an ISO string; each step is a sign
    and a duration.
    """

    base: str | int
    steps: tuple[tuple[Literal[1, -1], Duration], ...] = ()
    #: whether `base` is a string literal (else the words now and today, or ticks).
    literal: bool = False


#: A literal. Numbers that a float cannot hold exactly are Decimal; times are converted when the
#: column is known.
Value = None | bool | int | float | Decimal | str | RelativeTime


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Base: where the statement stands in which text."""

    source: Source = field(default=Source(), compare=False, repr=False)
    start: int = field(default=0, compare=False, repr=False)
    end: int = field(default=0, compare=False, repr=False)
    #: options that were accepted and do nothing here, as one sentence each.
    notices: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def text(self) -> str:
        """The statement as written, without the semicolon."""
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        return self.source.locate(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.locate(self.start)[1]

    def error(
        self,
        message: str,
        at: int | exp.Expr | Name | None = None,
        *,
        code: str | None = None,
        detail: str = "",
        hint: str = "",
    ) -> SqlSemanticError:
        """A semantic error (to raise) that points at an offset, a name or an expression; else at
        the statement.
        """
        if isinstance(at, Name):
            return self.source.semantic_error(
                message, at.offset, len(at.name), code=code, detail=detail, hint=hint
            )
        return self.source.semantic_error(
            message, self.start if at is None else at, code=code, detail=detail, hint=hint
        )


# ---------------------------------------------------------------- databases


@dataclass(frozen=True)
class DatabaseOptions:
    """None: not given."""

    precision: Literal["ms", "us", "ns"] | None = None
    keep: Duration | None = None
    partitions: int | None = None
    max_ahead: Duration | None = None
    replica: int | None = None
    dot_to_underscore: bool | None = None


@dataclass(frozen=True, kw_only=True)
class CreateDatabase(Statement):
    name: str
    if_not_exists: bool = False
    options: DatabaseOptions = DatabaseOptions()


@dataclass(frozen=True, kw_only=True)
class AlterDatabase(Statement):
    name: str
    options: DatabaseOptions = DatabaseOptions()


@dataclass(frozen=True, kw_only=True)
class UseDatabase(Statement):
    name: str


# ---------------------------------------------------------------- tables


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
class StreamTableOptions:
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
    options: StreamTableOptions
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
    table (None: SET NULL).
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


# ---------------------------------------------------------------- data


@dataclass(frozen=True)
class InsertPart:
    """The rows of one table. `columns` None: all columns in order. `row_offsets[i]` is where row i
    stands.
    """

    table: Name
    rows: tuple[tuple[Value, ...], ...]
    columns: tuple[str, ...] | None = None
    stable: Name | None = None
    tag_names: tuple[str, ...] | None = None
    tag_values: tuple[Value, ...] = ()
    row_offsets: tuple[int, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Insert(Statement):
    parts: tuple[InsertPart, ...]


@dataclass(frozen=True, kw_only=True)
class InsertSelect(Statement):
    """Rows that a SELECT gives now. `columns` None: all columns in order."""

    table: Name
    select: Query
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Delete(Statement):
    table: Name
    where: exp.Expr | None = None


@dataclass(frozen=True, kw_only=True)
class Query(Statement):
    """A SELECT or a UNION of them."""

    query: exp.Query


# ---------------------------------------------------------------- information


@dataclass(frozen=True, kw_only=True)
class Describe(Statement):
    table: Name


@dataclass(frozen=True, kw_only=True)
class Show(Statement):
    """`SHOW [database.]what [LIKE 'pattern']`; `what` upper case, e.g. STREAMS."""

    what: str
    database: str | None = None
    like: str | None = None


@dataclass(frozen=True, kw_only=True)
class ShowCreate(Statement):
    kind: Literal["database", "stable", "table", "stream", "external stream", "materialized view"]
    name: Name


# ---------------------------------------------------------------- streams


@dataclass(frozen=True)
class StreamOptions:
    """None: not given."""

    trigger: Trigger | None = None
    watermark: Duration | None = None
    ignore_expired: bool | None = None
    ignore_update: bool | None = None
    delete_mark: Duration | None = None
    fill_history: bool | None = None
    fill_history_async: bool = False
    idle_timeout: Duration | None = None
    on_error: Literal["drop", "stop"] | None = None
    #: result rows a second, megabytes of state; 0: as many as there are
    max_results: int | None = None
    max_state: int | None = None


@dataclass(frozen=True)
class TargetColumn:
    name: str
    composite_key: bool = False
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class TargetTag:
    """TAGS item: with a type in the defining form, without one where the table exists."""

    name: str
    type: ColumnType | None = None
    comment: str | None = None
    offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class NotifyClause:
    """`urls` empty: our own subscribers only. Events as written, upper case."""

    urls: tuple[str, ...]
    on: tuple[str, ...]
    history: bool | None = None
    on_failure: Literal["drop", "pause"] | None = None
    url_offsets: tuple[int, ...] = field(default=(), compare=False, repr=False)
    on_offsets: tuple[int, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class CreateStream(Statement):
    """`positions` has the offset of each clause given: fields of StreamOptions, `into`, `columns`,
    `tags`, `subtable`, `as`, `notify`.
    """

    stream: Name
    target: Name
    query: exp.Query
    if_not_exists: bool = False
    or_replace: bool = False
    options: StreamOptions = StreamOptions()
    target_columns: tuple[TargetColumn, ...] | None = None
    tags: tuple[TargetTag, ...] | None = None
    subtable: exp.Expr | None = None
    notify: NotifyClause | None = None
    positions: Mapping[str, int] = field(
        default_factory=dict, compare=False, repr=False, hash=False
    )


@dataclass(frozen=True, kw_only=True)
class Explain(Statement):
    """EXPLAIN of a CREATE STREAM or a query."""

    statement: CreateStream | Query


@dataclass(frozen=True, kw_only=True)
class PauseStream(Statement):
    stream: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class ResumeStream(Statement):
    stream: Name
    if_exists: bool = False
    ignore_untreated: bool = False


@dataclass(frozen=True, kw_only=True)
class FlushStream(Statement):
    stream: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class RecalculateStream(Statement):
    """From `begin` to `until` (None: to the newest row)."""

    stream: Name
    begin: Value
    until: Value = None


@dataclass(frozen=True, kw_only=True)
class AlterStream(Statement):
    """`ALTER STREAM name option …`"""

    stream: Name
    options: StreamOptions


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


@dataclass(frozen=True, kw_only=True)
class CreateSnode(Statement):
    dnode: int


# ---------------------------------------------------------------- other deployments


@dataclass(frozen=True, kw_only=True)
class CreateExternalStream(Statement):
    """`settings` as written, keys in lower case; `columns` None: as the other side says."""

    stream: Name
    settings: tuple[tuple[str, str], ...]
    columns: tuple[ColumnDef, ...] | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class CreateView(Statement):
    """`target` None: a table of the view's own, called as the view is."""

    view: Name
    query: exp.Query
    target: Name | None = None
    if_not_exists: bool = False
    #: what becomes of a row that the target does not take; None: it is tried again for ever
    on_error: Literal["drop", "stop"] | None = None
    #: where the SELECT begins in the text
    query_offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class SteerView(Statement):
    """SYSTEM PAUSE and RESUME of a materialized view."""

    view: Name
    action: Literal["pause", "resume"]


# ---------------------------------------------------------------- users


@dataclass(frozen=True, kw_only=True)
class CreateUser(Statement):
    name: str
    password: str = field(repr=False)
    enabled: bool = True
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class AlterUser(Statement):
    """None: as it was."""

    name: str
    password: str | None = field(default=None, repr=False)
    enabled: bool | None = None


@dataclass(frozen=True, kw_only=True)
class CreateRole(Statement):
    name: str
    if_not_exists: bool = False


GrantKind = Literal["all", "database", "table", "stream"]


@dataclass(frozen=True, kw_only=True)
class Grant(Statement):
    """GRANT, or with `take` REVOKE; `name` None: everything."""

    rights: tuple[str, ...]
    kind: GrantKind
    name: Name | None
    grantee: str
    take: bool = False


@dataclass(frozen=True, kw_only=True)
class GrantRole(Statement):
    """GRANT ROLE, or with `take` REVOKE ROLE."""

    role: str
    grantee: str
    take: bool = False


@dataclass(frozen=True, kw_only=True)
class RevokeTokens(Statement):
    user: str
