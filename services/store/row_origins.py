"""Where the rows of a window select come from: a table, or a subquery. Both are known when a query
is bound, and found when it is written for the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import polars as pl
from sqlglot import exp

from penstock.sql.planning.view import SchemaView
from penstock.sql.relational import Derived, QueryPlan, Scan, TableColumns
from services.store.plans import Translated
from services.store.resolve import ResolvedTable
from services.store.scope import RowCondition


class QueryNames(Protocol):
    """A query that is being bound."""

    def resolve(self, table: exp.Table) -> ResolvedTable: ...

    def view(self) -> SchemaView: ...

    def bind(self, tree: exp.Query) -> QueryPlan:
        """Return the plan of *tree*, which is of the query. Raises SqlError."""
        ...

    def new_name(self) -> str:
        """Return a name that no relation has."""
        ...

    def name_rows(self, columns: TableColumns) -> str:
        """Return the name of a relation that trees may name. It has no rows yet."""
        ...


class QueryTables(QueryNames, Protocol):
    """A query that is being written for its engine."""

    def relation(self, prefix: str, found: ResolvedTable, condition: RowCondition) -> str:
        """Return the SQL of the rows of a table, at least those of which *condition* is true, that
        are registered under names with *prefix*.
        """
        ...

    def let_call(self, plan: QueryPlan) -> None:
        """Let the engine call the functions of *plan*, which is of no tree of the query."""
        ...

    def write(self, plan: QueryPlan) -> Translated:
        """Return what the engine gets for *plan*, whose tables become relations."""
        ...


class QueryEngine(QueryTables, Protocol):
    """A query that is being executed."""

    def fetch(self, text: str) -> pl.DataFrame:
        """Return the rows of the engine's *text*."""
        ...

    def add_view(self, name: str, text: str) -> None:
        """Let a relation have the rows of the engine's *text*."""
        ...

    def add_frame(self, name: str, frame: pl.DataFrame) -> None:
        """Let a relation have the rows of *frame*."""
        ...


@dataclass(frozen=True)
class PlacedRows:
    """Rows that the engine can read: their SQL, and the node that is what they are in a plan.
    `view` is a relation that the SQL reads and its text, which has to be made before.
    """

    sql: str
    node: Scan | Derived
    view: tuple[str, str] | None = None


@dataclass(frozen=True)
class ScannedRows:
    """The rows of a table that windows are cut from."""

    node: Scan
    found: ResolvedTable
    condition: RowCondition

    def place(self, queries: QueryTables) -> PlacedRows:
        """Find the rows of the table."""
        rows = queries.relation(self.node.relation, self.found, self.condition)
        return PlacedRows(rows, self.node)


@dataclass(frozen=True)
class SubqueryRows:
    """The rows of a subquery that windows are cut from. `name` is that of a view of them, `shown`
    what is selected from it.
    """

    node: Derived
    name: str
    shown: str

    def place(self, queries: QueryTables) -> PlacedRows:
        """Find the rows of the subquery's tables."""
        done = queries.write(self.node.query)
        node = replace(self.node, query=done.placed)
        return PlacedRows(self.shown, node, (self.name, done.text))
