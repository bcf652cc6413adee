"""One SELECT: names bound to relations, window clauses computed by the same kernels that streams
use, the rest by DuckDB.

A window select over a table is planned as a stream would be and fed the table's rows once
(`Kernel.load_history`), so a query and a stream can't disagree. Refused: functions that are not on
the list of those a query has. DuckDB can open the segments of the query's own tables and nothing
else.
"""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType
from sqlglot import exp

from penstock.catalog.model import Table
from penstock.duck import Bounds, Engine, refused
from penstock.errors import PenstockError, SqlSemanticError
from penstock.link import pushdown
from penstock.sql import parse
from penstock.sql.functions import AGGREGATES, QUERY_ONLY, REGISTRY, WRITTEN_OUT
from penstock.sql.planning.view import SchemaView
from penstock.sql.statements import Query
from penstock.udf import UserFunction, sandbox
from services.store import virtual
from services.store.far import Far
from services.store.relation import PLACES, Part, Relation, literal, parts, quote
from services.store.resolve import Resolved, Resolver
from services.store.shelf import Shelf, layout_of
from services.store.tail import View
from services.store.translate import Bound, Context, own_name, query
from services.store.windowed import evaluate

_DUCK = {
    "BOOL": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "TINYINT UNSIGNED": "UTINYINT",
    "SMALLINT UNSIGNED": "USMALLINT",
    "INT UNSIGNED": "UINTEGER",
    "BIGINT UNSIGNED": "UBIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "VARCHAR",
    "NCHAR": "VARCHAR",
    "JSON": "VARCHAR",
    "VARBINARY": "BLOB",
}
#: metadata of a result's schema: up to where each log was read
POSITIONS = b"penstock.positions"
_TIMES = {"ms": "TIMESTAMP_MS", "us": "TIMESTAMP", "ns": "TIMESTAMP_NS"}


#: (database, name, table) of what is to be read; raises AuthError
Permit = Callable[[str, str, Table | None], None]


@dataclass(frozen=True)
class Limits:
    memory: str
    threads: int
    max_rows: int
    seconds: float
    spill: str
    max_bytes: int = 256 * 2**20

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.memory, self.threads, self.seconds, self.spill, self.max_bytes)


#: functions that a query may call; user-defined ones come to these
_KNOWN = REGISTRY.keys() | AGGREGATES.keys() | QUERY_ONLY.keys() | WRITTEN_OUT


class Images:
    """Images of the tables of one query, each taken once: the query reads one moment of a table
    wherever it names it.

    What is in no image cannot be opened, so they are all taken before the engine is confined.
    """

    def __init__(self, root: str, views: Callable[[str], dict[int, View]]) -> None:
        self._root = root
        self._views = views
        self._found: dict[int, tuple[dict[int, View], list[Part]]] = {}

    def of(self, table: Table) -> tuple[dict[int, View], list[Part]]:
        """The partitions of a table's topic as they were, and the table's parts in them."""
        found = self._found.get(table.id)
        if found is None:
            views = self._views(table.topic)
            found = self._found[table.id] = views, parts(self._root, table.id, views, table.topic)
        return found

    def files(self) -> list[str]:
        """Paths of all segments of the images so far."""
        return [
            str(segment.path)
            for _, image in self._found.values()
            for part in image
            for segment in part.found
        ]


class Queries:
    """Thread-safe: every query has a connection of its own."""

    def __init__(self, shelf: Shelf, resolver: Resolver, limits: Limits) -> None:
        self._shelf = shelf
        self._resolver = resolver
        self._limits = limits

    def run(
        self,
        sql: str,
        database: str,
        timezone: str = "UTC",
        *,
        positions: bool = False,
        permit: Permit | None = None,
    ) -> pa.Table:
        """Execute one SELECT; with *positions* the schema's metadata says up to where the log of
        each table was read.

        Args:
            permit: told each table of it, by its names and (if there is one) as it is, to refuse
                it; None: all may be read.

        Returns:
            A table whose fields carry Penstock's column type in their metadata under `type` where
            it is known.

        Raises:
            SqlError: not one SELECT, unknown names, wrong types.
        """
        statements = parse(sql)
        if len(statements) != 1 or not isinstance(statements[0], Query):
            raise SqlSemanticError(
                "the store answers one SELECT at a time",
                hint="send other statements to the gateway",
            )
        if permit is not None:
            for table in statements[0].query.find_all(exp.Table):
                found = self._resolver.find(table.db or database, table.name)
                permit(table.db or database, table.name, found.table if found is not None else None)
        engine = Engine(self._limits.bounds)
        try:
            with engine.in_time():
                run = _Run(self, engine, statements[0], database, timezone)
                table = run.result()
            return (
                table.replace_schema_metadata(
                    {**(table.schema.metadata or {}), POSITIONS: json.dumps(run.positions)}
                )
                if positions
                else table
            )
        except duckdb.Error as error:
            raise refused(error) from None
        finally:
            engine.close()

    def images(self) -> Images:
        return Images(self._shelf.root, self._shelf.views)

    def tables(self, found: Resolved) -> Iterator[Table]:
        """The tables whose rows a table's rows are: itself, or the origins of a virtual one."""
        if found.external is not None:
            return
        if found.table.kind != "virtual":
            yield found.table
            return
        ids = {o.table_id for m in self._resolver.members(found) for o in m.origins}
        yield from (t for t in map(self._resolver.by_id, ids) if t is not None)

    def relation(
        self,
        con: duckdb.DuckDBPyConnection,
        prefix: str,
        found: Resolved,
        images: Images,
        *,
        places: Collection[str] = (),
    ) -> str:
        """SQL of the live rows of a table or child table, as of one moment of its partitions."""
        table = found.table
        columns = [
            (c.name, duck_type(c.type.kind, table.precision, str(c.type)))
            for c in (*table.columns, *table.tags)
        ]
        if table.kind == "virtual":
            members = self._resolver.members(found)
            return virtual.sql(
                con,
                prefix,
                columns,
                table.tags,
                members,
                lambda *o: self._origin(con, prefix, images, *o),
            )
        _, image = images.of(table)
        relation = Relation(con, prefix, layout_of(table), columns, image, places=places)
        return self._kept(table, relation.sql(None if found.child is None else [found.child]))

    def _origin(
        self,
        con: duckdb.DuckDBPyConnection,
        prefix: str,
        images: Images,
        table_id: int,
        tables: Sequence[str],
        number: int,
    ) -> str | None:
        """Live rows of some child tables (or of a plain table) for a virtual one, with their time
        as `_penstock_ts`.
        """
        table = self._resolver.by_id(table_id)
        if table is None:
            return None
        columns = [
            (c.name, duck_type(c.type.kind, table.precision, str(c.type)))
            for c in (*table.columns, *table.tags)
        ]
        _, image = images.of(table)
        relation = Relation(con, f"{prefix}_o{number}", layout_of(table), columns, image)
        rows = self._kept(table, relation.sql(tables if table.kind == "stable" else None))
        name = "tbname" if table.kind == "stable" else f"{literal(tables[0])} AS tbname"
        return (
            f"SELECT * EXCLUDE (tbname), {name}, {quote(table.time_column)} AS _penstock_ts FROM"
            f" ({rows})"
        )

    def _kept(self, table: Table, rows: str) -> str:
        """*rows* without those over their KEEP."""
        before = self._resolver.expiry(table)
        if before is None:
            return rows
        unit = {"ms": "make_timestamp_ms", "us": "make_timestamp", "ns": "make_timestamp_ns"}[
            table.precision
        ]
        return f"SELECT * FROM ({rows}) WHERE {quote(table.time_column)} >= {unit}({before})"

    def resolve(self, database: str, table: exp.Table, statement: Query) -> Resolved:
        found = self._resolver.find(table.db or database, table.name)
        if found is None:
            hint = self._resolver.suggestion(table.db or database, table.name)
            raise statement.error(
                f'table "{table.db or database}.{table.name}" does not exist',
                table,
                code="E_TABLE_NOT_EXIST",
                hint=hint,
            )
        return found

    def view(self) -> SchemaView:
        return self._resolver.view()

    @property
    def far(self) -> Far | None:
        return self._resolver.far

    @property
    def max_rows(self) -> int:
        return self._limits.max_rows


def duck_type(kind: str, precision: str, text: str) -> str:
    return _TIMES[precision] if kind == "TIMESTAMP" else text if kind == "DECIMAL" else _DUCK[kind]


class _Run:
    """State of one query."""

    def __init__(
        self, queries: Queries, engine: Engine, statement: Query, database: str, timezone: str
    ) -> None:
        self._queries = queries
        self._statement = statement
        self._database = database
        self._timezone = timezone
        self._engine = engine
        self._con = engine.con
        self._images = queries.images()
        self._functions: dict[str, UserFunction] = {}
        self._named = {t.name.lower() for t in statement.query.find_all(exp.Table)}
        #: relations that stand for tables and computed windows
        self._made: set[str] = set()
        self._tables: dict[str, Bound] = {}
        self._types: dict[str, str] = {}
        self._count = 0
        #: "topic:partition" → offset of the first record that was not read
        self.positions: dict[str, int] = {}

    def resolve(self, database: str, table: exp.Table, statement: Query) -> Resolved:
        return self._queries.resolve(database, table, statement)

    def relation(self, con: duckdb.DuckDBPyConnection, prefix: str, found: Resolved) -> str:
        if found.external is not None:
            return self._fetched(
                prefix, found, [c.name for c in (*found.table.columns, *found.table.tags)], []
            )
        views, _ = self._images.of(found.table)
        for partition, view in views.items():
            place = f"{found.table.topic}:{partition}"
            self.positions[place] = min(view.next, self.positions.get(place, view.next))
        return self._queries.relation(
            con, prefix, found, self._images, places=self._places(found.table)
        )

    def _places(self, table: Table) -> list[str]:
        """The virtual columns that the query names and the table has no columns of its own for."""
        own = {c.name.lower() for c in (*table.columns, *table.tags)}
        return sorted(
            {c.name.lower() for c in self._statement.query.find_all(exp.Column)}
            & PLACES.keys() - own
        )

    def _fetched(
        self, prefix: str, found: Resolved, columns: Sequence[str], conditions: Sequence[exp.Expr]
    ) -> str:
        """SQL of rows that have been brought here from another deployment."""
        entry = found.external
        name = f"{prefix}_far"
        assert self._queries.far is not None and entry is not None
        columns = [*columns, *self._places(found.table)]
        self._con.register(name, self._queries.far.rows(entry, columns, conditions, self._timezone))
        types = {
            c.name: duck_type(c.type.kind, entry.precision, str(c.type))
            for c in (*entry.columns, *entry.tags)
        }
        types |= {place: kind for place, (_, kind) in PLACES.items() if place not in types}
        return (
            "SELECT tbname,"
            f" {', '.join(f'CAST({quote(c)} AS {types[c]}) AS {quote(c)}' for c in columns)} FROM"
            f" {name}"
        )

    def view(self) -> SchemaView:
        return self._queries.view()

    def result(self) -> pa.Table:
        far = self._queries.far
        answer = (
            far.whole(self._statement.query, self._database, self._timezone)
            if far is not None
            else None
        )
        if answer is not None:
            return answer
        tree = self._statement.query.copy()
        for node in tree.find_all(exp.Table):
            for table in self._queries.tables(
                self._queries.resolve(self._database, node, self._statement)
            ):
                self._images.of(table)
        self._engine.confine(self._images.files())
        for select in list(tree.find_all(exp.Select))[::-1]:  # innermost first
            if select.args.get("window") is not None:
                tree = self._windowed(tree, select)
        self._check_functions(tree)
        for node in list(tree.find_all(exp.Table)):
            self._bind(tree, node)
        context = Context(self._tables, self._timezone, self._functions, frozenset(self._made))
        text = query(tree, context)
        arrow = self._engine.answer(
            f"SELECT * FROM ({text}) LIMIT {self._queries.max_rows + 1}"
            if _unordered(tree)
            else text
        )
        if arrow.num_rows > self._queries.max_rows:
            raise PenstockError(
                f"more than {self._queries.max_rows} rows",
                code="E_RESULT_TOO_LARGE",
                hint="narrow the query, or use `penstock export`",
            )
        return arrow.cast(pa.schema([self._typed(f) for f in arrow.schema]))

    def _check_functions(self, tree: exp.Query) -> None:
        """Let DuckDB call the user-defined functions of *tree*, each in its sandbox. Raises
        SqlError: there is no function of a name.
        """
        view = self._queries.view()
        for call in tree.find_all(exp.Anonymous):
            name = str(call.this).lower()
            function = view.function(name)
            if name in self._functions or (
                name in _KNOWN and (function is None or function.aggregate)
            ):
                continue
            if function is None or function.aggregate:
                raise self._no_function(call, function)
            self._functions[name] = function
            types: list[Any] = [duck_type(t.kind, "ms", str(t)) for t in function.parameters]
            result = duck_type(function.returns.kind, "ms", str(function.returns))
            self._con.create_function(
                own_name(function),
                _callable(function),
                types,
                result,
                type=PythonUDFType.ARROW,
                null_handling=FunctionNullHandling.SPECIAL,
            )

    def _no_function(self, call: exp.Anonymous, aggregate: UserFunction | None) -> SqlSemanticError:
        name = str(call.this).lower()
        if aggregate is not None:
            hint = f"SELECT {name}(…) FROM … INTERVAL(1h)"
            return self._statement.error(
                f"{name[:80]}() needs a window in a query", call, code="E_NONWINDOW_AGG", hint=hint
            )
        near = difflib.get_close_matches(name, sorted(_KNOWN), 1)
        hint = (
            f"did you mean {near[0]}()?"
            if near
            else "docs/sql.md lists the functions that a query has"
        )
        return self._statement.error(
            f"there is no function {name[:80]}()", call, code="E_UNKNOWN_FUNCTION", hint=hint
        )

    def _typed(self, field: pa.Field) -> pa.Field:
        known = self._types.get(field.name.lower())
        return field.with_metadata({"type": known}) if known else field

    def _bind(self, tree: exp.Query, table: exp.Table) -> None:
        """Make *table* a temporary view and let the tree name it; its alias stays what the query
        calls it.
        """
        if table.name in self._made and not table.db:
            return
        alias = (table.alias or table.name).lower()
        found = self._queries.resolve(self._database, table, self._statement)
        name = self._name()
        if found.external is not None:
            rows = self._fetched(name, found, *pushdown.find_needs(found.external, tree, table))
        else:
            rows = self.relation(self._con, name, found)
        self._con.execute(f"CREATE TEMP VIEW {name} AS {rows}")
        self._made.add(name)
        columns = (*found.table.columns, *found.table.tags)
        times = frozenset(c.name.lower() for c in columns if c.type.kind == "TIMESTAMP")
        self._tables[alias] = Bound(
            name, tuple(c.name for c in columns), times, found.table.precision
        )
        for column in columns:
            text = str(column.type)
            known = self._types.setdefault(column.name.lower(), text)
            if known != text:
                self._types[column.name.lower()] = ""
        table.set("db", None)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
        table.set("this", exp.to_identifier(name))

    def _name(self) -> str:
        """A name for a relation that no table of the query has."""
        while True:
            self._count += 1
            name = f"_penstock_{self._count}"
            if name not in self._named:
                return name

    def _windowed(self, tree: exp.Query, select: exp.Select) -> exp.Query:
        """Replace a window select by a SELECT from its computed rows; ORDER BY and LIMIT stay
        outside.
        """
        rows = evaluate(self, self._con, self._statement, select, self._database, self._timezone)
        name = self._name()
        self._con.register(name, rows.frame.to_arrow())
        self._made.add(name)
        outer = exp.select(*(exp.column(c, quoted=True) for c in rows.shown)).from_(name)
        for key in ("order", "limit", "offset", "distinct"):
            if select.args.get(key) is not None:
                outer.set(key, select.args[key].copy())
        if outer.args.get("order") is not None:
            outer.set(
                "order",
                outer.args["order"].transform(_by_output, {c.lower(): c for c in rows.shown}),
            )
        self._types.update({c.lower(): t for c, t in rows.types.items()})
        if select is tree or select.parent is None:
            return outer
        select.replace(outer)
        return tree


def _callable(function: UserFunction) -> Callable[..., pa.Array]:
    """A scalar function on columns as DuckDB hands them over; DuckDB counts the parameters of the
    signature.
    """
    types = [t.polars() for t in function.parameters]

    def call(*arguments: pa.ChunkedArray) -> pa.Array:
        columns = {
            f"a{i}": pl.Series(pl.from_arrow(a)).cast(t)
            for i, (a, t) in enumerate(zip(arguments, types, strict=True))
        }
        return (
            sandbox.sandbox_of(function)
            .call(pl.DataFrame(columns))
            .to_arrow(compat_level=pl.CompatLevel.oldest())
        )

    names = [f"a{i}" for i in range(len(types))]
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    )
    return call


def _by_output(node: exp.Expr, outputs: Mapping[str, str]) -> exp.Expr:
    """ORDER BY count(*) means the output column called so."""
    text = node.meta.get("sql") or (
        node.sql(dialect="penstock") if isinstance(node, exp.Anonymous) else ""
    )
    name = outputs.get(str(text).lower())
    return exp.column(name, quoted=True) if name else node


def _unordered(tree: exp.Query) -> bool:
    return tree.args.get("order") is None and tree.args.get("limit") is None


def rows_of(
    con: duckdb.DuckDBPyConnection, relation: str, condition: str | None, columns: Sequence[str]
) -> pl.DataFrame:
    """Rows of a relation as a polars frame."""
    where = f" WHERE {condition}" if condition else ""
    listed = ", ".join(quote(c) for c in columns)
    made: Any = pl.from_arrow(con.sql(f"SELECT {listed} FROM ({relation}){where}").to_arrow_table())
    return made if isinstance(made, pl.DataFrame) else made.to_frame()
