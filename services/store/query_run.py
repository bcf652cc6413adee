"""The computation of one SELECT: windows first, then what is left by DuckDB."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import polars as pl
import pyarrow as pa
from sqlglot import exp

from penstock.catalog.model import Table
from penstock.duck import Engine
from penstock.duck.types import duck_type
from penstock.errors import SqlSemanticError
from penstock.link import pushdown
from penstock.sql.dialect import to_sql
from penstock.sql.planning.view import SchemaView
from penstock.sql.relational import BoundQuery, Output, QueryScope, TableColumns, bind
from penstock.sql.statements import Query
from penstock.udf import UserFunction
from services.store import explain, interp
from services.store.binding import BoundTable, Context, columns_of
from services.store.chosen_rows import choose_rows
from services.store.execution import Execution
from services.store.external_rows import ExternalRows
from services.store.images import Images
from services.store.known_functions import functions_of
from services.store.partition_limits import keep_limits, limit_partitions
from services.store.plans import KnownQuery, Reading, Translated, plan_of, with_rows
from services.store.relation import PLACES, quote
from services.store.resolve import ResolvedTable
from services.store.row_series import write_series
from services.store.scope import EVERYTHING, ReadScope, scope_of
from services.store.table_source import TableSource
from services.store.time_texts import check_times
from services.store.translate import query
from services.store.user_functions import register
from services.store.windowed import evaluate


@dataclass(frozen=True)
class QueryRequest:
    """A SELECT, the database that it is in, and the zone of its times."""

    statement: Query
    database: str
    timezone: str


class _RelationNames:
    """Makes names for relations that no table of a query has."""

    def __init__(self, statement: Query) -> None:
        self._taken = {t.name.lower() for t in statement.query.find_all(exp.Table)}
        self._count = 0

    def make(self) -> str:
        while True:
            self._count += 1
            name = f"_penstock_{self._count}"
            if name not in self._taken:
                return name


class QueryRun:
    """State of one query."""

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
        self._names = _RelationNames(request.statement)
        self._moment = time.time_ns()
        self._functions: dict[str, UserFunction] = {}
        #: (database, name) → what the query means by it
        self._resolved: dict[tuple[str, str], ResolvedTable] = {}
        #: relations that stand for tables, computed windows and values at points
        self._relations: set[str] = set()
        #: relation → SQL of its rows
        self._rows: dict[str, str] = {}
        #: columns of computed windows and values at points, by relation
        self._windows: dict[str, TableColumns] = {}
        #: False: the query is only explained
        self._computes = True
        #: windows that the kernels compute, as text
        self._kernels: list[str] = []
        #: what DuckDB was given, once it is known
        self._translated: Translated | None = None

    @property
    def positions(self) -> dict[str, int]:
        """Where each log was read to: "topic:partition" → offset of the next record."""
        return self._execution.positions

    def resolve(self, table: exp.Table) -> ResolvedTable:
        """Find a table that the query names; each is looked for once. Raises SqlError."""
        database = table.db or self._request.database
        found = self._resolved.get((database, table.name))
        if found is None:
            found = self._source.resolve(database, table, self._request.statement)
            self._resolved[database, table.name] = found
        return found

    def relation(
        self,
        con: duckdb.DuckDBPyConnection,
        prefix: str,
        found: ResolvedTable,
        scope: ReadScope = EVERYTHING,
    ) -> str:
        if found.external is not None:
            return self._fetch_external(
                prefix, found, [c.name for c in (*found.table.columns, *found.table.tags)], []
            )
        places = tuple(self._places(found.table))
        return self._execution.read(Reading(prefix, found, scope, places))

    def _places(self, table: Table) -> list[str]:
        """Return the virtual columns that the query names and the table has no columns of its own
        for.
        """
        own = {c.name.lower() for c in (*table.columns, *table.tags)}
        return sorted(
            {c.name.lower() for c in self._request.statement.query.find_all(exp.Column)}
            & PLACES.keys() - own
        )

    def _fetch_external(
        self,
        prefix: str,
        found: ResolvedTable,
        columns: Sequence[str],
        conditions: Sequence[exp.Expr],
    ) -> str:
        """Bring rows here from another deployment; return their SQL."""
        if not self._computes:
            raise SqlSemanticError(
                f"{found.table.database}.{found.table.name} is of another deployment",
                code="E_UNSUPPORTED_QUERY",
                hint="send EXPLAIN to the gateway, which knows what is asked of whom",
            )
        entry = found.external
        name = f"{prefix}_far"
        assert self._external_rows is not None and entry is not None
        columns = [*columns, *self._places(found.table)]
        self._engine.con.register(
            name, self._external_rows.rows(entry, columns, conditions, self._request.timezone)
        )
        types = {
            c.name: duck_type(c.type.kind, entry.precision, str(c.type))
            for c in (*entry.columns, *entry.tags)
        }
        types |= {place: kind for place, (_, kind) in PLACES.items() if place not in types}
        listed = ", ".join(f"CAST({quote(c)} AS {types[c]}) AS {quote(c)}" for c in columns)
        return f"SELECT tbname, {listed} FROM {name}"

    @property
    def has_functions(self) -> bool:
        """Whether users' functions were made known to the database, which holds them for good."""
        return bool(self._functions)

    def view(self) -> SchemaView:
        return self._source.view()

    def new_name(self) -> str:
        """Return a name for a relation that nothing of the query has."""
        return self._names.make()

    def known(self) -> KnownQuery | None:
        """Return the plan that gave the answer, for the same query at any other moment; None: it
        cannot serve again.
        """
        done = self._translated
        if done is None or self._functions or any(f.external for f in self._resolved.values()):
            return None
        plan = plan_of(done, self._execution.readings)
        return None if plan is None else KnownQuery(plan, self._resolved)

    def result(self) -> pa.Table:
        """Compute the answer. Raises PenstockError, duckdb.Error."""
        answer = self._answer_elsewhere()
        if answer is not None:
            return answer
        done = self._translate()
        return self._execution.answer(done.text, done.outputs)

    def explain(self) -> pa.Table:
        """Return the answer of EXPLAIN; of the query's rows nothing is computed. Raises
        PenstockError, duckdb.Error.
        """
        self._computes = False
        self._translate()
        reaches = self._execution.reaches()
        return explain.table(self._request.statement.query, self._kernels, reaches)

    def _translate(self) -> Translated:
        """Compute the windows of kernels; write what DuckDB gets for the rest."""
        tree = self._request.statement.query.copy()
        self._execution.open(
            [self.resolve(node) for node in tree.find_all(exp.Table)],
            self._request.statement.source,
        )
        with self._execution.failures():
            for select in list(tree.find_all(exp.Select))[::-1]:  # innermost first
                if select.args.get("window") is not None:
                    tree = self._compute_windows(tree, select)
                elif select.args.get("range") is not None:
                    tree = self._interpolate(tree, select)
        self._translated = self._write(tree, self._execution.max_rows)
        return self._translated

    def _write(self, tree: exp.Query, max_rows: int | None) -> Translated:
        """Write what DuckDB gets for *tree*, whose windows are computed, and add what it calls.

        Args:
            tree: is changed.
            max_rows: of an answer no more than one row beyond is read; None: all are.
        """
        self._let_call(tree)
        bound = self._bind_names(tree)
        tables: dict[str, BoundTable] = {}
        for node in list(tree.find_all(exp.Table)):
            self._bind(tree, node, tables)
        context = Context(
            tables,
            self._request.timezone,
            self._functions,
            frozenset(self._relations),
            self._moment,
            self._execution.needed,
        )
        check_times(tree, self._request.statement, self._request.timezone)
        # what follows gives an order to a tree that nobody has given one
        unordered = _is_unordered(tree)
        choose_rows(tree, context)
        write_series(tree, self._request.statement, context)
        tree = limit_partitions(tree, self._request.statement, context)
        text = own = query(tree, context)
        self._execution.add(context.needed.values())
        if max_rows is not None and unordered:
            text = f"SELECT * FROM ({text}) LIMIT {max_rows + 1}"
        rows = {name: sql for name, sql in self._rows.items() if name in text}
        return Translated(tree, context, own, with_rows(rows, text), bound.outputs)

    def subquery(self, tree: exp.Query) -> tuple[str, tuple[Output, ...]]:
        """Make a relation of the rows of a subquery; return its name and its columns."""
        done = self._write(tree, None)
        name = self._names.make()
        self._engine.con.execute(f"CREATE TEMP VIEW {name} AS {done.text}")
        return name, done.outputs

    def add_relation(self, sql: str, columns: TableColumns) -> str:
        """Make a relation that the query may name of *sql*; return its name."""
        name = self._names.make()
        self._engine.con.execute(f"CREATE TEMP VIEW {name} AS {sql}")
        self._relations.add(name)
        self._windows[name] = columns
        return name

    def rows_of(self, select: exp.Select) -> tuple[pl.DataFrame, tuple[Output, ...]]:
        """See `services.store.interp_clause.QueryRows`."""
        done = self._write(select, None)
        text = done.text if self._computes else f"SELECT * FROM ({done.text}) LIMIT 0"
        return pl.DataFrame(self._execution.rows(text)), done.outputs

    def table_of(self, table: exp.Table) -> Table | None:
        """See `services.store.interp_clause.QueryRows`."""
        computed = table.name in self._windows and not table.db
        return None if computed else self.resolve(table).table

    def outputs_of(self, query: exp.Query) -> tuple[Output, ...]:
        """See `services.store.interp_clause.QueryRows`."""
        return self._bind_names(query).outputs

    def _let_call(self, tree: exp.Query) -> None:
        """Let DuckDB call the user-defined functions of *tree*, each in its sandbox. Raises
        SqlError: there is no function of a name.
        """
        view = self._source.view()
        for name, function in functions_of(tree, self._request.statement, view).items():
            if name not in self._functions:
                self._functions[name] = function
                register(self._engine.con, function)

    def _bind_names(self, tree: exp.Query) -> BoundQuery:
        """Find what every name of *tree* means and every expression's type. Raises SqlError."""
        statement = self._request.statement
        view = self._source.view()
        return bind(
            tree,
            QueryScope(statement.source, self._columns, self._request.timezone, view.function),
        )

    def _columns(self, table: exp.Table) -> TableColumns:
        """Return the columns of a table or of computed windows that a FROM names."""
        if table.name in self._windows and not table.db:
            return self._windows[table.name]
        found = self.resolve(table)
        return columns_of(found.table, child=found.child is not None)

    def _answer_elsewhere(self) -> pa.Table | None:
        """Have the one deployment that all tables of the query are of answer it, if there is
        one.
        """
        if self._external_rows is None:
            return None
        return self._external_rows.whole(
            self._request.statement.query, self._request.database, self._request.timezone
        )

    def _bind(self, tree: exp.Query, table: exp.Table, tables: dict[str, BoundTable]) -> None:
        """Make *table* a relation and let the tree name it; its alias stays what the query calls
        it.
        """
        if table.name in self._relations and not table.db:
            return
        alias = (table.alias or table.name).lower()
        found = self.resolve(table)
        name = self._names.make()
        if found.external is not None:
            needed = pushdown.find_needs(found.external, tree, table)
            rows = self._fetch_external(name, found, *needed)
        else:
            scope = scope_of(table, found.table, self._request.timezone)
            rows = self.relation(self._engine.con, name, found, scope)
        self._rows[name] = rows
        self._relations.add(name)
        columns = (*found.table.columns, *found.table.tags)
        tables[alias] = BoundTable(name, tuple(c.name for c in columns))
        table.set("db", None)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
        table.set("this", exp.to_identifier(name))

    def _compute_windows(self, tree: exp.Query, select: exp.Select) -> exp.Query:
        """Replace a window select by a SELECT from its computed rows; HAVING, ORDER BY and LIMIT
        stay outside.
        """
        rows = evaluate(
            self,
            self._engine.con,
            self._request.statement,
            select,
            self._request.timezone,
            self._moment,
            compute=self._computes,
        )
        name = self._names.make()
        if rows.sql:
            self._rows[name] = rows.sql
        else:
            self._engine.con.register(name, rows.frame.to_arrow())
        if rows.by_kernels:
            self._kernels.append(to_sql(select.args["window"]))
        self._relations.add(name)
        self._windows[name] = rows.columns
        outer = rows.outer(name)
        for key in ("limit", "offset", "distinct"):
            if select.args.get(key) is not None:
                outer.set(key, select.args[key].copy())
        if rows.sql and outer.args.get("order") is None and not outer.args.get("distinct"):
            # the rows of a frame are in the order of time
            time = exp.column(rows.start, quoted=True)
            outer.set("order", exp.Order(expressions=[exp.Ordered(this=time)]))
        keep_limits(select, outer, rows.start, rows.keys)
        return _put_in_place(tree, select, outer)

    def _interpolate(self, tree: exp.Query, select: exp.Select) -> exp.Query:
        """Replace a SELECT with RANGE by one from the values that it reads."""
        name = self._names.make()
        made = interp.evaluate(
            self,
            self._request.statement,
            select,
            self._request.timezone,
            name=name,
            most_points=self._execution.max_rows,
        )
        self._engine.con.register(name, made.frame.to_arrow())
        self._relations.add(name)
        self._windows[name] = made.columns
        return _put_in_place(tree, select, made.outer)


def _put_in_place(tree: exp.Query, select: exp.Select, by: exp.Select) -> exp.Query:
    """Return *tree* with *by* in place of *select*."""
    if select is tree or select.parent is None:
        return by
    select.replace(by)
    return tree


def _is_unordered(tree: exp.Query) -> bool:
    return tree.args.get("order") is None and tree.args.get("limit") is None
