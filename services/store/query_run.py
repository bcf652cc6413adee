"""One SELECT: its names are bound, it is written for DuckDB, and then executed. Each step is done
with the whole query before the next one begins, so nothing is computed for a query that is wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import polars as pl
import pyarrow as pa
from sqlglot import exp

from penstock.catalog.model import Table
from penstock.duck import Engine
from penstock.sql.planning.view import SchemaView
from penstock.sql.relational import (
    Output,
    QueryPlan,
    QueryScope,
    TableColumns,
    bind,
    nodes_of,
)
from penstock.udf import UserFunction
from services.store import explain
from services.store.binding import Context
from services.store.clauses import write_clauses
from services.store.computed_selects import ComputedSelects
from services.store.execution import Execution, schema_of
from services.store.external_rows import ExternalRows
from services.store.images import Images
from services.store.known_functions import functions_of
from services.store.plan_notes import PlanNotes
from services.store.plan_tree import steps_of
from services.store.plans import KnownQuery, Translated, plan_of, with_rows
from services.store.query_relations import QueryRelations, QueryRequest
from services.store.resolve import ResolvedTable
from services.store.scope import RowCondition
from services.store.table_source import TableSource
from services.store.time_texts import check_times
from services.store.translate import query
from services.store.user_functions import register

__all__ = ["QueryRequest", "QueryRun"]


class QueryRun:
    """Conducts one query: its tables are found and its names bound; it is written for DuckDB; its
    windows are computed, and DuckDB answers what is left.
    """

    def __init__(
        self,
        source: TableSource,
        external_rows: ExternalRows | None,
        images: Images,
        engine: Engine,
        request: QueryRequest,
        max_rows: int,
    ) -> None:
        self._source = source
        self._external_rows = external_rows
        self._engine = engine
        self._request = request
        self._execution = Execution(source, images, engine, max_rows)
        self._moment = time.time_ns()
        self._functions: dict[str, UserFunction] = {}
        self._relations = QueryRelations(
            source,
            external_rows,
            engine,
            self._execution,
            request,
        )
        self._computed = ComputedSelects(self, self._relations, request, self._moment)
        #: what DuckDB was given, once it is known
        self._translated: Translated | None = None

    @property
    def positions(self) -> dict[str, int]:
        """Where each log was read to: "topic:partition" → offset of the next record."""
        return self._execution.positions

    @property
    def has_functions(self) -> bool:
        """Whether users' functions were made known to the database, which holds them for good."""
        return bool(self._functions)

    def known(self) -> KnownQuery | None:
        """Return the plan that gave the answer, for the same query at any other moment; None: it
        cannot serve again.
        """
        done = self._translated
        resolved = self._relations.resolved
        if done is None or self._functions or any(f.external for f in resolved.values()):
            return None
        if self._relations.holds_rows or self._computed.are_filled:
            return None
        plan = plan_of(done, self._execution.readings)
        return None if plan is None else KnownQuery(plan, resolved)

    def result(self) -> pa.Table:
        """Compute the answer. Raises PenstockError, duckdb.Error."""
        answer = self._answer_elsewhere()
        if answer is not None:
            return answer
        done = self._translated = self._translate()
        self._relations.fetch_far()
        with self._execution.failures():
            self._computed.fill(done.placed)
        return self._execution.answer(done.text, done.outputs)

    def plan(self) -> KnownQuery | None:
        """Return the query's plan for any moment, as `known` does; nothing is computed."""
        self._relations.computes = False
        self._translated = self._translate()
        return self.known()

    def explain(self) -> pa.Table:
        """Return the answer of EXPLAIN; of the query's rows nothing is read. Raises PenstockError,
        duckdb.Error.
        """
        self._relations.computes = False
        done = self._translate()
        tables = {reading.prefix: reading for reading, _ in self._execution.readings}
        return explain.table(
            self._request.statement.query,
            steps_of(done.placed, PlanNotes(tables, self._computed.engines)),
            self._computed.clauses,
            self._execution.reaches(),
            done.outputs,
        )

    def describe(self) -> pa.Schema:
        """Return the schema of the answer; of the query's rows nothing is read. Raises
        PenstockError, duckdb.Error.
        """
        self._relations.computes = False
        bound = self._bind_all()
        if any(found.external is not None for found in self._relations.resolved.values()):
            # its rows stay where they are
            return schema_of(bound.outputs)
        done = self._write_bound(bound, None)
        with self._execution.failures():
            self._computed.fill(done.placed, compute=False)
        return self._execution.answer(f"SELECT * FROM ({done.text}) LIMIT 0", done.outputs).schema

    def _answer_elsewhere(self) -> pa.Table | None:
        """Have the one deployment that all tables of the query are of answer it, if there is
        one.
        """
        if self._external_rows is None:
            return None
        return self._external_rows.whole(
            self._request.statement.query, self._request.database, self._request.timezone
        )

    # ---------------------------------------------------------------- writing

    def _translate(self) -> Translated:
        """Bind the query, and write what DuckDB gets for it."""
        return self._write_bound(self._bind_all(), self._execution.max_rows)

    def _bind_all(self) -> QueryPlan:
        """Bind the query: windows, values between rows, and then what is around them."""
        statement = self._request.statement
        self._execution.open(
            [self.resolve(node) for node in statement.query.find_all(exp.Table)], statement.source
        )
        with self._execution.failures():
            tree = self._computed.bind_in(statement.query, most_rows=self._execution.max_rows)
        return self.bind(tree)

    def _write_bound(self, bound: QueryPlan, max_rows: int | None) -> Translated:
        """Write what DuckDB gets for a plan, and add what it calls.

        Args:
            max_rows: of an answer no more than one row beyond is read; None: all are.
        """
        statement = self._request.statement
        placed = self._relations.place(bound, self._computed.place)
        check_times(placed, statement, self._request.timezone)
        context = Context(
            self._request.timezone,
            self._functions,
            self._relations.names,
            self._moment,
            self._execution.needed,
        )
        plan = write_clauses(placed, statement, context)
        text = own = query(plan, context)
        self._execution.add(context.needed.values())
        if max_rows is not None and not bound.order_by and bound.limits.rows is None:
            text = f"SELECT * FROM ({text}) LIMIT {max_rows + 1}"
        rows = self._relations.rows_in(text)
        return Translated(placed, plan, context, own, with_rows(rows, text), bound.outputs)

    def _let_call(self, nodes: Iterable[exp.Expr]) -> None:
        """Let DuckDB call the user-defined functions among *nodes*, each in its sandbox. Raises
        SqlError: there is no function of a name.
        """
        for name, function in functions_of(nodes, self._request.statement, self.view()).items():
            if name not in self._functions:
                self._functions[name] = function
                register(self._engine.con, function)

    # ---------------------------------------------------------------- for windows and interp()

    def view(self) -> SchemaView:
        """Return the catalog as planners see it."""
        return self._source.view()

    def resolve(self, table: exp.Table) -> ResolvedTable:
        """Find a table that the query names. Raises SqlError."""
        return self._relations.resolve(table)

    def table_of(self, table: exp.Table) -> Table | None:
        """See `services.store.interp.QueryRows`."""
        return self._relations.table_of(table)

    def table_named(self, table: exp.Table) -> Table | None:
        """Return the table that the query means by *table*; None: it is of another deployment."""
        found = self._relations.resolved.get((table.db or self._request.database, table.name))
        return None if found is None or found.external is not None else found.table

    def bind(self, tree: exp.Query) -> QueryPlan:
        """Find what every name of *tree* means and every expression's type. Raises SqlError."""
        self._let_call(tree.walk())
        scope = QueryScope(
            self._request.statement.source,
            self._relations.columns,
            self._request.timezone,
            self.view().function,
            self._computed.find,
        )
        return bind(tree, scope)

    def constant(self, node: exp.Expr) -> tuple[pl.Series, Output]:
        """See `services.store.interp.QueryRows`."""
        done = self.write(self.bind(exp.select(exp.alias_(node.copy(), "constant"))))
        return self.read(done.text).to_series(), done.outputs[0]

    def new_name(self) -> str:
        """Return a name for a relation that nothing of the query has."""
        return self._relations.new_name()

    def name_rows(self, columns: TableColumns) -> str:
        """See `services.store.row_origins.QueryNames`."""
        return self._relations.name_rows(columns)

    def relation(self, prefix: str, found: ResolvedTable, condition: RowCondition) -> str:
        """See `services.store.row_origins.QueryTables`."""
        return self._relations.relation(prefix, found, condition)

    def let_call(self, plan: QueryPlan) -> None:
        """See `services.store.row_origins.QueryTables`."""
        self._let_call(nodes_of(plan))

    def write(self, plan: QueryPlan) -> Translated:
        """See `services.store.row_origins.QueryTables`."""
        return self._write_bound(plan, None)

    def read(self, text: str) -> pl.DataFrame:
        """See `services.store.point_rows.PointReader`."""
        return pl.DataFrame(self._execution.rows(text))

    def fetch(self, text: str) -> pl.DataFrame:
        """See `services.store.row_origins.QueryEngine`."""
        return self._execution.fetch(text)

    def add_view(self, name: str, text: str) -> None:
        """See `services.store.row_origins.QueryEngine`."""
        self._execution.add_view(name, text)

    def add_frame(self, name: str, frame: pl.DataFrame) -> None:
        """See `services.store.row_origins.QueryEngine`."""
        self._execution.add_frame(name, frame)
