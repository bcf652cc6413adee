"""What a query is bound to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from penstock.sql.compile import Functions, nothing
from penstock.sql.relational.query_plan import ComputedRows
from penstock.sql.relational.relations import TableColumns
from penstock.sql.source import Source


def _nothing_computed(table: exp.Table) -> ComputedRows | None:
    return None


@dataclass(frozen=True)
class QueryScope:
    """What a query is bound to: its text, its tables, its functions and its zone."""

    source: Source
    #: the columns of a table that FROM names; raises SqlError where there is none
    tables: Callable[[exp.Table], TableColumns]
    timezone: str = "UTC"
    functions: Functions = field(default=nothing)
    #: the computed rows that a name of FROM means; None: it means a table
    computed: Callable[[exp.Table], ComputedRows | None] = field(default=_nothing_computed)
