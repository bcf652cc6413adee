"""Statements that write, read and describe rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from penstock.sql.statements.base import Name, Statement, Value


@dataclass(frozen=True)
class InsertPart:
    """The rows of one table; without `columns` for all columns in order. `row_offsets[i]` is where
    row i stands.
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
    """Rows that a SELECT gives now; without `columns` for all columns in order."""

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
class ShowTags(Statement):
    """`SHOW TAGS FROM child`: the tags of one child table, a row each."""

    table: Name


@dataclass(frozen=True, kw_only=True)
class ShowTableTags(Statement):
    """`SHOW TABLE TAGS [column, …] FROM stable`: the child tables, with their tags as columns. A
    column is a tag, `tbname`, or `_tags` for all tags; without columns it is `tbname, _tags`.
    """

    stable: Name
    columns: tuple[Name, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShowDistribution(Statement):
    """`SHOW TABLE DISTRIBUTED table`: how much there is of it."""

    table: Name


@dataclass(frozen=True, kw_only=True)
class ShowIndexes(Statement):
    """`SHOW INDEXES FROM table`"""

    table: Name


@dataclass(frozen=True, kw_only=True)
class ShowCreate(Statement):
    kind: Literal["database", "stable", "table", "stream", "external stream", "materialized view"]
    name: Name
