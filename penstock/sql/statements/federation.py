"""Statements about external streams and materialized views."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from penstock.sql.statements.base import Name, Statement
from penstock.sql.statements.tables import ColumnDef


@dataclass(frozen=True, kw_only=True)
class CreateExternalStream(Statement):
    """`settings` as written, keys in lower case; without `columns` they are the other side's."""

    stream: Name
    settings: tuple[tuple[str, str], ...]
    columns: tuple[ColumnDef, ...] | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class CreateView(Statement):
    """Without `target` rows go to a table of the view's own, called as the view is."""

    view: Name
    query: exp.Query
    target: Name | None = None
    if_not_exists: bool = False
    #: what becomes of a row that the target does not take; by default it is tried again for ever
    on_error: Literal["drop", "stop"] | None = None
    #: where the SELECT begins in the text
    query_offset: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class SteerView(Statement):
    """SYSTEM PAUSE and RESUME of a materialized view."""

    view: Name
    action: Literal["pause", "resume"]
