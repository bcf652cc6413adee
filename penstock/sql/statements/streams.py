"""Statements about streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from penstock.sql.plan import Duration, Trigger
from penstock.sql.statements.base import Name, Statement, Value
from penstock.sql.statements.data import Query
from penstock.types import ColumnType


@dataclass(frozen=True)
class StreamOptions:
    """Options as given; None for those that are not."""

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
    #: name of the key that signs requests
    signed_by: str | None = None
    #: which windows are told of
    where: exp.Expr | None = None


@dataclass(frozen=True, kw_only=True)
class CreateStream(Statement):
    """`positions` has the offset of each clause given: fields of StreamOptions, `into`, `columns`,
    `tags`, `subtable`, `as`, `notify`. Without a `target` there is a `notify`. `of_query`: it only
    stands for a SELECT with a window.
    """

    stream: Name
    query: exp.Query
    target: Name | None = None
    if_not_exists: bool = False
    or_replace: bool = False
    options: StreamOptions = StreamOptions()
    target_columns: tuple[TargetColumn, ...] | None = None
    tags: tuple[TargetTag, ...] | None = None
    subtable: exp.Expr | None = None
    notify: NotifyClause | None = None
    of_query: bool = False
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
    """From `begin` to `until`, or without one to the newest row."""

    stream: Name
    begin: Value
    until: Value = None


@dataclass(frozen=True, kw_only=True)
class AlterStream(Statement):
    """`ALTER STREAM name option …`"""

    stream: Name
    options: StreamOptions
