"""The computation of one SELECT: windows first, then what is left by DuckDB."""

from __future__ import annotations

import difflib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import polars as pl
import pyarrow as pa
from sqlglot import exp

from penstock.catalog.model import Table
from penstock.duck import Engine
from penstock.duck.helpers import Installed
from penstock.duck.types import duck_type
from penstock.errors import PenstockError, SqlSemanticError
from penstock.link import pushdown
from penstock.sql.functions import QUERY_ONLY, SERIES, WINDOW_FUNCTIONS
from penstock.sql.planning.view import SchemaView
from penstock.sql.relational import BoundQuery, Output, QueryScope, TableColumns, bind
from penstock.sql.statements import Query
from penstock.udf import UserFunction
from services.store import interp
from services.store.binding import BoundTable, Context, columns_of
from services.store.chosen_rows import choose_rows
from services.store.external_rows import ExternalRows
from services.store.functions import FUNCTIONS
from services.store.images import Images
from services.store.partition_limits import keep_limits, limit_partitions
from services.store.relation import PLACES, quote
from services.store.resolve import ResolvedTable
from services.store.row_series import write_series
from services.store.scope import EVERYTHING, Scope, scope_of
from services.store.table_source import TableSource
from services.store.time_texts import check_times
from services.store.translate import query
from services.store.user_functions import register
from services.store.windowed import evaluate

#: functions that a query may call; user-defined ones come to these
_KNOWN = FUNCTIONS.keys() | QUERY_ONLY.keys() | SERIES.keys() | WINDOW_FUNCTIONS.keys()


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


@dataclass(frozen=True)
class _Translated:
    """DuckDB's text of a query, and the columns of its answer."""

    text: str
    outputs: tuple[Output, ...]
    unordered: bool


class QueryRun:
    """State of one query."""

    #: what it has added to the engine, once that is confined
    _installed: Installed

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
        self._images = images
        self._engine = engine
        self._request = request
        self._max_rows = max_rows
        self._names = _RelationNames(request.statement)
        self._moment = time.time_ns()
        self._functions: dict[str, UserFunction] = {}
        #: (database, name) → what the query means by it
        self._resolved: dict[tuple[str, str], ResolvedTable] = {}
        #: relations that stand for tables, computed windows and values at points
        self._relations: set[str] = set()
        #: columns of computed windows and values at points, by relation
        self._windows: dict[str, TableColumns] = {}
        #: "topic:partition" → offset of the first record that was not read
        self.positions: dict[str, int] = {}

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
        views, _ = self._images.of(found.table)
        for partition, view in views.items():
            place = f"{found.table.topic}:{partition}"
            self.positions[place] = min(view.next, self.positions.get(place, view.next))
        return self._source.relation(
            con, prefix, found, self._images, places=self._places(found.table), scope=scope
        )

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

    def result(self) -> pa.Table:
        """Compute the answer. Raises PenstockError, duckdb.Error."""
        answer = self._answer_elsewhere()
        if answer is not None:
            return answer
        tree = self._request.statement.query.copy()
        for node in tree.find_all(exp.Table):
            found = self.resolve(node)
            for table in self._source.tables(found):
                self._images.of(table)
        self._engine.confine(self._images.files())
        self._installed = Installed(self._engine.con, self._request.statement.source)
        try:
            answer = self._compute(tree)
        except duckdb.Error:
            self._installed.raise_failure()
            raise
        self._installed.remove()
        return answer

    def _compute(self, tree: exp.Query) -> pa.Table:
        """Compute *tree*, whose tables' files the engine may open."""
        for select in list(tree.find_all(exp.Select))[::-1]:  # innermost first
            if select.args.get("window") is not None:
                tree = self._compute_windows(tree, select)
            elif select.args.get("range") is not None:
                tree = self._interpolate(tree, select)
        arrow, outputs = self._execute(tree, self._max_rows)
        if arrow.num_rows > self._max_rows:
            raise PenstockError(
                f"more than {self._max_rows} rows",
                code="E_RESULT_TOO_LARGE",
                hint="narrow the query, or use `penstock export`",
            )
        fields = zip(arrow.schema, outputs, strict=True)
        return arrow.cast(pa.schema([_with_type(field, output) for field, output in fields]))

    def _translate(self, tree: exp.Query) -> _Translated:
        """Translate *tree*, whose windows are computed; the engine gets what the text calls."""
        self._check_functions(tree)
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
            self._installed.needed,
        )
        check_times(tree, self._request.statement, self._request.timezone)
        # what follows gives an order to a tree that nobody has given one
        unordered = _is_unordered(tree)
        choose_rows(tree, context)
        write_series(tree, self._request.statement, context)
        tree = limit_partitions(tree, self._request.statement, context)
        text = query(tree, context)
        self._installed.add(context.needed.values())
        return _Translated(text, bound.outputs, unordered)

    def subquery(self, tree: exp.Query) -> tuple[str, tuple[Output, ...]]:
        """Make a relation of the rows of a subquery; return its name and its columns."""
        translated = self._translate(tree)
        name = self._names.make()
        self._engine.con.execute(f"CREATE TEMP VIEW {name} AS {translated.text}")
        return name, translated.outputs

    def add_relation(self, sql: str, columns: TableColumns) -> str:
        """Make a relation that the query may name of *sql*; return its name."""
        name = self._names.make()
        self._engine.con.execute(f"CREATE TEMP VIEW {name} AS {sql}")
        self._relations.add(name)
        self._windows[name] = columns
        return name

    def _execute(
        self, tree: exp.Query, max_rows: int | None
    ) -> tuple[pa.Table, tuple[Output, ...]]:
        """Answer a query whose windows are computed.

        Args:
            tree: is changed.
            max_rows: no more than one row beyond is read; None: all are.
        """
        translated = self._translate(tree)
        text = translated.text
        if max_rows is not None and translated.unordered:
            text = f"SELECT * FROM ({text}) LIMIT {max_rows + 1}"
        return self._engine.answer(text), translated.outputs

    def rows_of(self, select: exp.Select) -> tuple[pl.DataFrame, tuple[Output, ...]]:
        """See `services.store.interp.Rows`."""
        arrow, outputs = self._execute(select, None)
        return pl.DataFrame(arrow), outputs

    def table_of(self, table: exp.Table) -> Table | None:
        """See `services.store.interp.Rows`."""
        computed = table.name in self._windows and not table.db
        return None if computed else self.resolve(table).table

    def outputs_of(self, query: exp.Query) -> tuple[Output, ...]:
        """See `services.store.interp.Rows`."""
        return self._bind_names(query).outputs

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

    def _bind(self, tree: exp.Query, table: exp.Table, tables: dict[str, BoundTable]) -> None:
        """Make *table* a temporary view and let the tree name it; its alias stays what the query
        calls it.
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
        self._engine.con.execute(f"CREATE TEMP VIEW {name} AS {rows}")
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
        )
        name = self._names.make()
        self._engine.con.register(name, rows.frame.to_arrow())
        self._relations.add(name)
        self._windows[name] = rows.columns
        outer = rows.outer(name)
        for key in ("limit", "offset", "distinct"):
            if select.args.get(key) is not None:
                outer.set(key, select.args[key].copy())
        keep_limits(select, outer, rows.start, rows.keys)
        return _replaced(tree, select, outer)

    def _interpolate(self, tree: exp.Query, select: exp.Select) -> exp.Query:
        """Replace a SELECT with RANGE by one from the values that it reads."""
        name = self._names.make()
        made = interp.evaluate(
            self,
            self._request.statement,
            select,
            self._request.timezone,
            name=name,
            most_points=self._max_rows,
        )
        self._engine.con.register(name, made.frame.to_arrow())
        self._relations.add(name)
        self._windows[name] = made.columns
        return _replaced(tree, select, made.outer)


def _replaced(tree: exp.Query, select: exp.Select, by: exp.Select) -> exp.Query:
    """Return *tree* with *by* in place of *select*."""
    if select is tree or select.parent is None:
        return by
    select.replace(by)
    return tree


def _with_type(field: pa.Field, output: Output) -> pa.Field:
    """Let a field of the answer say its column type; of NULL nobody knows one."""
    if output.type.kind == "NULL":
        return field
    return field.with_metadata({"type": str(output.type)})


def _is_unordered(tree: exp.Query) -> bool:
    return tree.args.get("order") is None and tree.args.get("limit") is None
