"""The computation of one SELECT: windows first, then what is left by DuckDB."""

from __future__ import annotations

import time

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
    SelectPlan,
    TableColumns,
    bind,
)
from penstock.udf import UserFunction
from services.store import explain
from services.store.binding import Context
from services.store.clauses import write_clauses
from services.store.computed_selects import ComputedSelects
from services.store.execution import Execution
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
    """Conducts one query: its tables are found, its names bound, its windows computed; what is left
    is written for DuckDB.
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
        #: plans of subqueries that windows are cut from, by the relations of their rows
        self._subqueries: dict[str, QueryPlan] = {}
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
        if self._relations.holds_rows:
            return None
        plan = plan_of(done, self._execution.readings)
        return None if plan is None else KnownQuery(plan, resolved)

    def result(self) -> pa.Table:
        """Compute the answer. Raises PenstockError, duckdb.Error."""
        answer = self._answer_elsewhere()
        if answer is not None:
            return answer
        self._translated, _ = self._translate()
        return self._execution.answer(self._translated.text, self._translated.outputs)

    def plan(self) -> KnownQuery | None:
        """Return the query's plan for any moment, as `known` does; nothing is computed."""
        self._relations.computes = False
        self._translated, _ = self._translate()
        return self.known()

    def explain(self) -> pa.Table:
        """Return the answer of EXPLAIN; of the query's rows nothing is computed. Raises
        PenstockError, duckdb.Error.
        """
        self._relations.computes = False
        done, computed = self._translate()
        tables = {reading.prefix: reading for reading, _ in self._execution.readings}
        notes = PlanNotes(tables, self._subqueries, computed.described)
        return explain.table(
            self._request.statement.query,
            steps_of(done.placed, notes),
            computed.kernels,
            self._execution.reaches(),
            done.outputs,
        )

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

    def _translate(self) -> tuple[Translated, ComputedSelects]:
        """Compute the windows of kernels; write what DuckDB gets for the rest. Return that, and
        what was computed.
        """
        statement = self._request.statement
        self._execution.open(
            [self.resolve(node) for node in statement.query.find_all(exp.Table)], statement.source
        )
        computed = ComputedSelects(
            self, self._relations, self._engine.con, self._request, self._moment
        )
        with self._execution.failures():
            tree = computed.put_into(statement.query, most_rows=self._execution.max_rows)
        return self._write(tree, self._execution.max_rows), computed

    def _write(self, tree: exp.Query, max_rows: int | None) -> Translated:
        """Write what DuckDB gets for *tree*, whose windows are computed, and add what it calls.

        Args:
            max_rows: of an answer no more than one row beyond is read; None: all are.
        """
        statement = self._request.statement
        self._let_call(tree)
        bound = self._bind(tree)
        placed = self._relations.place(bound)
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

    def _let_call(self, tree: exp.Query) -> None:
        """Let DuckDB call the user-defined functions of *tree*, each in its sandbox. Raises
        SqlError: there is no function of a name.
        """
        for name, function in functions_of(tree, self._request.statement, self.view()).items():
            if name not in self._functions:
                self._functions[name] = function
                register(self._engine.con, function)

    def _bind(self, tree: exp.Query) -> QueryPlan:
        """Find what every name of *tree* means and every expression's type. Raises SqlError."""
        source = self._request.statement.source
        find = self.view().function
        return bind(tree, QueryScope(source, self._relations.columns, self._request.timezone, find))

    # ---------------------------------------------------------------- for windows and interp()

    def view(self) -> SchemaView:
        """Return the catalog as planners see it."""
        return self._source.view()

    def resolve(self, table: exp.Table) -> ResolvedTable:
        """Find a table that the query names. Raises SqlError."""
        return self._relations.resolve(table)

    def table_of(self, table: exp.Table) -> Table | None:
        """See `services.store.interp_clause.QueryRows`."""
        return self._relations.table_of(table)

    def table_named(self, table: exp.Table) -> Table | None:
        """Return the table that the query means by *table*; None: it is of another deployment."""
        found = self._relations.resolved.get((table.db or self._request.database, table.name))
        return None if found is None or found.external is not None else found.table

    def relation(self, prefix: str, found: ResolvedTable, condition: RowCondition) -> str:
        """See `services.store.window_source.Tables`."""
        return self._relations.relation(prefix, found, condition)

    def new_name(self) -> str:
        """Return a name for a relation that nothing of the query has."""
        return self._relations.new_name()

    def add_relation(self, sql: str, columns: TableColumns) -> str:
        """See `services.store.window_source.Tables`."""
        return self._relations.add_relation(sql, columns)

    def subquery(self, tree: exp.Query) -> tuple[str, tuple[Output, ...]]:
        """Make a relation of the rows of a subquery; return its name and its columns."""
        done = self._write(tree, None)
        name = self._relations.add_view(done.text)
        self._subqueries[name] = done.placed
        return name, done.outputs

    def rows_of(self, select: exp.Select) -> tuple[pl.DataFrame, tuple[Output, ...], QueryPlan]:
        """See `services.store.interp_clause.QueryRows`."""
        done = self._write(select, None)
        # a SELECT without FROM tells what is asked, and reads nothing
        reads = isinstance(done.placed, SelectPlan) and done.placed.source is not None
        explains = reads and not self._relations.computes
        text = f"SELECT * FROM ({done.text}) LIMIT 0" if explains else done.text
        return pl.DataFrame(self._execution.rows(text)), done.outputs, done.placed

    def outputs_of(self, query: exp.Query) -> tuple[Output, ...]:
        """See `services.store.interp_clause.QueryRows`."""
        return self._bind(query).outputs
