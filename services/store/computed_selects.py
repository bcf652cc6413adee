"""SELECTs whose rows are computed before DuckDB reads them: those with a window clause, and those
with RANGE. When a query is bound, a SELECT from computed rows stands in their place. The rows are
found when it is written for DuckDB, and computed when it is executed, if the answer needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.relational import ComputedRows, Derived, QueryPlan, computed_in, queries_inside
from services.store import interp
from services.store.plan_notes import DUCKDB, RowEngine
from services.store.point_rows import PointReader, PointRows
from services.store.query_relations import QueryRelations, QueryRequest
from services.store.row_origins import QueryEngine
from services.store.window_limits import keep_limits
from services.store.window_rows import WindowSelectRows
from services.store.windowed import BoundWindows, bind_windows

#: clauses that rows are computed for
_CLAUSES = (nodes.WindowClause, nodes.Range)


class RowQueries(QueryEngine, PointReader, interp.QueryRows, Protocol):
    """What computing rows needs of the query around it."""


class ComputedSelects:
    """The windows of one query, and its values between rows."""

    def __init__(
        self,
        queries: RowQueries,
        relations: QueryRelations,
        request: QueryRequest,
        moment: int,
    ) -> None:
        self._queries = queries
        self._relations = relations
        self._request = request
        self._moment = moment
        #: name of a relation → its rows
        self._rows: dict[str, WindowSelectRows | PointRows] = {}

    @property
    def engines(self) -> Mapping[str, RowEngine]:
        """Who computes the rows, by the names of their relations."""
        return {name: rows.engine for name, rows in self._rows.items()}

    @property
    def clauses(self) -> Mapping[str, list[str]]:
        """The clauses that are not DuckDB's to compute, by who computes them."""
        found: dict[str, list[str]] = {}
        for rows in self._rows.values():
            if rows.engine.name != DUCKDB:
                found.setdefault(rows.engine.name, []).append(to_sql(rows.node.clause))
        return found

    @property
    def are_filled(self) -> bool:
        """Whether the query reads rows that are there for this run of it alone."""
        return any(rows.is_filled for rows in self._rows.values())

    def find(self, table: exp.Table) -> ComputedRows | None:
        """Return the computed rows that *table* means, if it means such."""
        rows = None if table.db else self._rows.get(table.name)
        return None if rows is None else rows.node

    # ---------------------------------------------------------------- binding

    def bind_in(self, query: exp.Query, *, most_rows: int) -> exp.Query:
        """Return *query* with SELECTs from computed rows in place of those that give them, the
        innermost first; itself where there are none. Raises SqlError.

        Args:
            most_rows: that an answer may have.
        """
        if query.find(*_CLAUSES) is None:
            return query
        tree = query.copy()
        for select in list(tree.find_all(exp.Select))[::-1]:
            if select.args.get("window") is not None:
                tree = _put_in_place(tree, select, self._bind_windows(select))
            elif select.args.get("range") is not None:
                tree = _put_in_place(tree, select, self._bind_points(select, most_rows))
        return tree

    def _bind_windows(self, select: exp.Select) -> exp.Select:
        """Bind a window select; HAVING, ORDER BY and LIMIT stay outside."""
        statement = self._request.statement
        timezone = self._request.timezone
        bound = bind_windows(self._queries, statement, select, timezone, self._moment)
        name = self._relations.new_name()
        self._rows[name] = WindowSelectRows(bound, name, self._moment)
        return _around(select, bound, name)

    def _bind_points(self, select: exp.Select, most_rows: int) -> exp.Select:
        """Bind a SELECT with RANGE."""
        name = self._relations.new_name()
        bound = interp.bind_points(
            self._queries,
            self._request.statement,
            select,
            self._request.timezone,
            name=name,
            most_points=most_rows,
        )
        self._rows[name] = PointRows(select, bound, name)
        return bound.outer

    # ---------------------------------------------------------------- writing and executing

    def place(self, node: ComputedRows) -> ComputedRows:
        """Find what computed rows are made of; return them as they are in a plan whose tables are
        relations.
        """
        rows = self._rows[node.relation]
        placed = rows.place(self._queries)
        self._relations.add_computed(node.relation, rows.sql)
        return placed

    def fill(self, plan: QueryPlan, *, compute: bool = True) -> None:
        """Compute the rows that *plan* reads, the innermost first. A query that gives no row
        because of its LIMIT gets none. Raises PenstockError, duckdb.Error.

        Args:
            plan: whose tables are relations.
            compute: else there are no rows, and nothing is read.
        """
        compute = compute and not _is_empty(plan)
        for node in computed_in(plan):
            if isinstance(node.source, Derived):
                self.fill(node.source.query, compute=compute)
            self._rows[node.relation].fill(self._queries, compute=compute)
        for inner in queries_inside(plan):
            self.fill(inner, compute=compute)


def _is_empty(plan: QueryPlan) -> bool:
    """Tell if the limits of *plan* leave no row."""
    counts = (plan.limits.rows, plan.limits.partitions)
    return any(count is not None and count.name == "0" for count in counts)


def _around(select: exp.Select, bound: BoundWindows, name: str) -> exp.Select:
    """Return the SELECT over the rows of the window select *select*."""
    outer = bound.outer(name)
    for key in ("limit", "offset", "distinct"):
        if select.args.get(key) is not None:
            outer.set(key, select.args[key].copy())
    if bound.in_place and outer.args.get("order") is None and not outer.args.get("distinct"):
        # the rows of a frame are in the order of time
        time = exp.column(bound.start, quoted=True)
        outer.set("order", exp.Order(expressions=[exp.Ordered(this=time)]))
    keep_limits(select, outer, bound.start, bound.keys)
    return outer


def _put_in_place(tree: exp.Query, select: exp.Select, by: exp.Select) -> exp.Query:
    """Return *tree* with *by* in place of *select*."""
    if select is tree or select.parent is None:
        return by
    select.replace(by)
    return tree
