"""SELECTs that are computed before DuckDB is asked: those with a window clause, and those with
RANGE. In their place comes a SELECT from the rows that they give.
"""

from __future__ import annotations

from typing import Protocol

import duckdb
from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from services.store import interp
from services.store.plan_notes import ComputedRows, note_points, note_windows
from services.store.query_relations import QueryRelations, QueryRequest
from services.store.window_limits import keep_limits
from services.store.window_source import Tables
from services.store.windowed import Windows, evaluate

#: clauses that rows are computed for
_CLAUSES = (nodes.WindowClause, nodes.Range)


class RowQueries(Tables, interp.QueryRows, Protocol):
    """What computing rows needs of the query around it."""


class ComputedSelects:
    """Computes the windows of one query, and its values between rows."""

    def __init__(
        self,
        queries: RowQueries,
        relations: QueryRelations,
        con: duckdb.DuckDBPyConnection,
        request: QueryRequest,
        moment: int,
    ) -> None:
        self._queries = queries
        self._relations = relations
        self._con = con
        self._request = request
        self._moment = moment
        #: windows that the kernels computed, as text
        self.kernels: list[str] = []
        #: what an explained query computes, by the names of its relations
        self.described: dict[str, ComputedRows] = {}

    def put_into(self, query: exp.Query, *, most_rows: int) -> exp.Query:
        """Return *query* with SELECTs from computed rows in place of those that give them, the
        innermost first; itself where there are none.
        """
        if query.find(*_CLAUSES) is None:
            return query
        tree = query.copy()
        for select in list(tree.find_all(exp.Select))[::-1]:
            if select.args.get("window") is not None:
                tree = _put_in_place(tree, select, self._windows(select))
            elif select.args.get("range") is not None:
                tree = _put_in_place(tree, select, self._points(select, most_rows))
        return tree

    def _windows(self, select: exp.Select) -> exp.Select:
        """Compute a window select; HAVING, ORDER BY and LIMIT stay outside."""
        rows = evaluate(
            self._queries,
            self._con,
            self._request.statement,
            select,
            self._request.timezone,
            self._moment,
            compute=self._relations.computes,
        )
        if rows.sql:
            name = self._relations.add_rows(rows.sql, rows.columns)
        else:
            name = self._relations.add_frame(rows.frame, rows.columns)
        if rows.by_kernels:
            self.kernels.append(to_sql(select.args["window"]))
        if not self._relations.computes:
            self.described[name] = note_windows(select, rows)
        return _around(select, rows, name)

    def _points(self, select: exp.Select, most_rows: int) -> exp.Select:
        """Compute a SELECT with RANGE."""
        name = self._relations.new_name()
        made = interp.evaluate(
            self._queries,
            self._request.statement,
            select,
            self._request.timezone,
            name=name,
            most_points=most_rows,
        )
        self._relations.add_frame(made.frame, made.columns, name)
        if not self._relations.computes:
            self.described[name] = note_points(select, made)
        return made.outer


def _around(select: exp.Select, rows: Windows, name: str) -> exp.Select:
    """Return the SELECT over the rows of the window select *select*."""
    outer = rows.outer(name)
    for key in ("limit", "offset", "distinct"):
        if select.args.get(key) is not None:
            outer.set(key, select.args[key].copy())
    if rows.sql and outer.args.get("order") is None and not outer.args.get("distinct"):
        # the rows of a frame are in the order of time
        time = exp.column(rows.start, quoted=True)
        outer.set("order", exp.Order(expressions=[exp.Ordered(this=time)]))
    keep_limits(select, outer, rows.start, rows.keys)
    return outer


def _put_in_place(tree: exp.Query, select: exp.Select, by: exp.Select) -> exp.Query:
    """Return *tree* with *by* in place of *select*."""
    if select is tree or select.parent is None:
        return by
    select.replace(by)
    return tree
