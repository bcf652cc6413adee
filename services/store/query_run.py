"""The computation of one SELECT: windows first, then what is left by DuckDB."""

from __future__ import annotations

import difflib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from sqlglot import exp

from penstock.catalog.model import Table
from penstock.duck import Engine
from penstock.duck.types import duck_type
from penstock.errors import SqlSemanticError
from penstock.link import pushdown
from penstock.sql.dialect import to_sql
from penstock.sql.functions import QUERY_ONLY
from penstock.sql.planning.view import SchemaView
from penstock.sql.relational import BoundQuery, QueryScope, TableColumns, bind
from penstock.sql.statements import Query
from penstock.udf import UserFunction
from services.store import explain
from services.store.binding import BoundTable, Context, columns_of
from services.store.execution import Execution
from services.store.external_rows import ExternalRows
from services.store.functions import FUNCTIONS
from services.store.images import Images
from services.store.partition_limits import keep_limits, limit_partitions
from services.store.plans import KnownQuery, Reading, Translated, plan_of, with_rows
from services.store.relation import PLACES, quote
from services.store.resolve import ResolvedTable
from services.store.scope import EVERYTHING, Scope, scope_of
from services.store.table_source import TableSource
from services.store.time_texts import check_times
from services.store.translate import query
from services.store.user_functions import register
from services.store.windowed import evaluate

#: functions that a query may call; user-defined ones come to these
_KNOWN = FUNCTIONS.keys() | QUERY_ONLY.keys()


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
        #: relations that stand for tables and computed windows
        self._relations: set[str] = set()
        #: relation → SQL of a table's rows
        self._rows: dict[str, str] = {}
        self._tables: dict[str, BoundTable] = {}
        #: columns of computed windows, by relation
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
        scope: Scope = EVERYTHING,
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
        helpers = done.context.needed.values()
        return self._execution.answer(
            done.text, done.outputs, helpers, self._request.statement.source
        )

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
        self._execution.open([self.resolve(node) for node in tree.find_all(exp.Table)])
        for select in list(tree.find_all(exp.Select))[::-1]:  # innermost first
            if select.args.get("window") is not None:
                tree = self._compute_windows(tree, select)
        self._check_functions(tree)
        bound = self._bind_names(tree)
        for node in list(tree.find_all(exp.Table)):
            self._bind(tree, node)
        context = Context(
            self._tables,
            self._request.timezone,
            self._functions,
            frozenset(self._relations),
            self._moment,
        )
        check_times(tree, self._request.statement, self._request.timezone)
        tree = limit_partitions(tree, self._request.statement, context)
        text = own = query(tree, context)
        if _is_unordered(tree):
            text = f"SELECT * FROM ({text}) LIMIT {self._execution.max_rows + 1}"
        text = with_rows(self._rows, text)
        self._translated = Translated(tree, context, own, text, bound.outputs)
        return self._translated

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
        return columns_of(self.resolve(table).table)

    def _answer_elsewhere(self) -> pa.Table | None:
        """Have the one deployment that all tables of the query are of answer it, if there is
        one.
        """
        if self._external_rows is None:
            return None
        return self._external_rows.whole(
            self._request.statement.query, self._request.database, self._request.timezone
        )

    def _check_functions(self, tree: exp.Query) -> None:
        """Let DuckDB call the user-defined functions of *tree*, each in its sandbox. Raises
        SqlError: there is no function of a name.
        """
        view = self._source.view()
        for call in tree.find_all(exp.Anonymous):
            name = str(call.this).lower()
            function = view.function(name)
            scalar = function if function is not None and not function.aggregate else None
            if name in self._functions or (name in _KNOWN and scalar is None):
                continue
            if scalar is None:
                raise self._no_function(call, function)
            self._functions[name] = scalar
            register(self._engine.con, scalar)

    def _no_function(self, call: exp.Anonymous, aggregate: UserFunction | None) -> SqlSemanticError:
        name = str(call.this).lower()
        if aggregate is not None:
            hint = f"SELECT {name}(…) FROM … INTERVAL(1h)"
            return self._request.statement.error(
                f"{name[:80]}() needs a window in a query", call, code="E_NONWINDOW_AGG", hint=hint
            )
        near = difflib.get_close_matches(name, sorted(_KNOWN), 1)
        hint = (
            f"did you mean {near[0]}()?"
            if near
            else "docs/sql-functions.md lists the functions that a query has"
        )
        return self._request.statement.error(
            f"there is no function {name[:80]}()", call, code="E_UNKNOWN_FUNCTION", hint=hint
        )

    def _bind(self, tree: exp.Query, table: exp.Table) -> None:
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
        self._tables[alias] = BoundTable(name, tuple(c.name for c in columns))
        table.set("db", None)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
        table.set("this", exp.to_identifier(name))

    def _compute_windows(self, tree: exp.Query, select: exp.Select) -> exp.Query:
        """Replace a window select by a SELECT from its computed rows; ORDER BY and LIMIT stay
        outside.
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
            self._kernels.append(to_sql(select.args["window"]))
        self._relations.add(name)
        self._windows[name] = rows.columns
        outer = exp.select(*(exp.column(c, quoted=True) for c in rows.shown)).from_(name)
        for key in ("order", "limit", "offset", "distinct"):
            if select.args.get(key) is not None:
                outer.set(key, select.args[key].copy())
        start = rows.frame.columns[0]
        if rows.sql and not any(map(select.args.get, ("order", "distinct"))):
            # the rows of a frame are in the order of time
            time = exp.column(start, quoted=True)
            outer.set("order", exp.Order(expressions=[exp.Ordered(this=time)]))
        keep_limits(select, outer, start, rows.keys)
        if outer.args.get("order") is not None:
            outer.set(
                "order",
                outer.args["order"].transform(_by_output, {c.lower(): c for c in rows.shown}),
            )
        if select is tree or select.parent is None:
            return outer
        select.replace(outer)
        return tree


def _by_output(node: exp.Expr, outputs: Mapping[str, str]) -> exp.Expr:
    """Let ORDER BY count(*) mean the output column called so."""
    text = node.meta.get("sql") or (
        node.sql(dialect="penstock") if isinstance(node, exp.Anonymous) else ""
    )
    name = outputs.get(str(text).lower())
    return exp.column(name, quoted=True) if name else node


def _is_unordered(tree: exp.Query) -> bool:
    return tree.args.get("order") is None and tree.args.get("limit") is None
