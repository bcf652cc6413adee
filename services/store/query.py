"""One SELECT: names bound to relations, window clauses computed by the same kernels that streams
use, the rest by DuckDB.

A window select over a table is planned as a stream would be and fed the table's rows once
(`Kernel.load_history`), so a query and a stream can't disagree. Refused: functions that are not on
the list of those a query has. DuckDB can open the segments of the query's own tables and nothing
else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa
from sqlglot import exp

from penstock.catalog.model import Table
from penstock.catalog.parameter_types import stand_ins
from penstock.duck import Bounds, Databases, Engine, explain_error
from penstock.errors import SqlSemanticError
from penstock.rows.parameters import Parameters
from penstock.sql import parse
from penstock.sql.bound_texts import has_placeholders
from penstock.sql.parser import read
from penstock.sql.source import Source
from penstock.sql.statements import Explain, Query
from services.store.child_texts import AskedQuery
from services.store.engine_errors import explain_call
from services.store.execution import Execution
from services.store.free_literals import FreeLiteral, Value, find_free, put_numbers
from services.store.images import Images
from services.store.partitions import Partitions
from services.store.plans import AskedText, KnownQuery, Plan, Plans, asked_text, says_the_same
from services.store.query_run import QueryRequest, QueryRun
from services.store.resolve import Resolver
from services.store.table_source import TableSource
from services.store.time_texts import explain_cast

#: databases that wait for the next query of their tables
_IDLE = 8
#: metadata of a result's schema: up to where each log was read
POSITIONS = b"penstock.positions"
#: (database, name, table) of what is to be read; raises AuthError
Permit = Callable[[str, str, Table | None], None]


@dataclass(frozen=True)
class QueryLimits:
    memory: str
    threads: int
    max_rows: int
    seconds: float
    spill: str
    max_bytes: int = 256 * 2**20

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.memory, self.threads, self.seconds, self.spill, self.max_bytes)


class Queries:
    """Thread-safe: every query has a connection of its own, and a database that is only its own
    as long as it runs.
    """

    def __init__(self, partitions: Partitions, resolver: Resolver, limits: QueryLimits) -> None:
        self._partitions = partitions
        self._resolver = resolver
        self._source = TableSource(resolver)
        self._limits = limits
        self._databases = Databases(limits.bounds, _IDLE)
        self._plans = Plans()

    def run(
        self,
        sql: str,
        database: str,
        timezone: str = "UTC",
        *,
        parameters: Parameters | None = None,
        positions: bool = False,
        permit: Permit | None = None,
    ) -> pa.Table:
        """Execute one SELECT; with *positions* the schema's metadata says up to where the log of
        each table was read.

        Args:
            parameters: for the placeholders in *sql*.
            permit: told each table of it, by its names and (if there is one) as it is, to refuse
                it; None: all may be read.

        Returns:
            A table whose fields carry Penstock's column type in their metadata under `type` where
            it is known.

        Raises:
            SqlError: not one SELECT, unknown names, wrong types.
        """
        asked = self._asked(sql, database, timezone, parameters)
        known = None if asked is None else self._find(asked)
        if known is not None:
            table, read_to = self._run_known(
                *known, permit, Source(sql), lambda: _read_again(sql, parameters, timezone)
            )
        else:
            statement = _one_statement(sql, parameters, timezone)
            request = self._request(statement, database, timezone, permit)
            explains = isinstance(statement, Explain)
            table, read_to = self._explain(request) if explains else self._run_new(request, asked)
        if not positions:
            return table
        metadata = table.schema.metadata or {}
        return table.replace_schema_metadata({**metadata, POSITIONS: json.dumps(read_to)})

    def describe(
        self, sql: str, database: str, timezone: str = "UTC", *, permit: Permit | None = None
    ) -> pa.Schema:
        """Return the schema of what a SELECT gives, before its placeholders have values. Raises
        SqlError, also where the schema depends on them.
        """
        statements = read(sql)
        values = stand_ins(statements[0]) if len(statements) == 1 else None
        statement = _one_statement(sql, values, timezone)
        request = self._request(statement, database, timezone, permit)
        with self._engine(lambda: request.statement) as engine:
            run = self._run_of(request, engine)
            return run.explain().schema if isinstance(statement, Explain) else run.describe()

    def _request(
        self, statement: Query | Explain, database: str, timezone: str, permit: Permit | None
    ) -> QueryRequest:
        """Return what is asked, once it is known that *permit* allows it. Raises SqlError."""
        query = statement.statement if isinstance(statement, Explain) else statement
        assert isinstance(query, Query)
        if permit is not None:
            self._check(query, database, permit)
        return QueryRequest(query, database, timezone)

    def find_table(self, database: str, name: str) -> Table | None:
        """Return a table, or the supertable of a child table; None: there is none."""
        found = self._resolver.find(database, name)
        return None if found is None else found.table

    def _asked(
        self, sql: str, database: str, timezone: str, parameters: Parameters | None
    ) -> AskedQuery | None:
        """Return a text as its plan is found by it; None: it has none."""
        text = asked_text(sql, database, timezone, self._resolver.revision, parameters)
        if text is None:
            return None
        asked = AskedQuery.of(text, self._resolver.find)
        alone = asked.child is not None and self._plans.are_apart(asked.text)
        return AskedQuery(text) if alone else asked

    def _find(self, asked: AskedQuery) -> tuple[KnownQuery, tuple[Value, ...]] | None:
        """Return the plan of a query whose names mean what they meant when it was made, and the
        values that it is run with.
        """
        known = self._plans.find(asked.text)
        values = None if known is None else known.values(asked.text)
        if known is None or values is None:
            return None
        known = asked.fit(known)
        same = all(
            names == asked.names or self._resolver.find(*names) == found
            for names, found in known.tables.items()
        )
        return (known, values) if same else None

    def _run_known(
        self,
        known: KnownQuery,
        values: tuple[Value, ...],
        permit: Permit | None,
        source: Source,
        statement: Callable[[], Query],
    ) -> tuple[pa.Table, dict[str, int]]:
        """Return the answer of a query that was planned before, and up to where each log was
        read.

        Args:
            values: of its free literals.
            source: the text, which errors point into.
            statement: gives the query as it was read.
        """
        if permit is not None:
            for (home, name), found in known.tables.items():
                permit(home, name, found.table)
        with self._engine(statement) as engine:
            limit = self._limits.max_rows
            execution = Execution(self._source, self.images(), engine, limit)
            execution.open(known.tables.values(), source)
            table = execution.run(known.plan, values)
            engine.keep()
        return table, execution.positions

    def _run_new(
        self, request: QueryRequest, asked: AskedQuery | None
    ) -> tuple[pa.Table, dict[str, int]]:
        with self._engine(lambda: request.statement) as engine:
            run = self._run_of(request, engine)
            table = run.result()
            if not run.has_functions:
                engine.keep()
        if asked is not None:
            self._remember(request, asked, run)
        return table, run.positions

    def _remember(self, request: QueryRequest, query: AskedQuery, run: QueryRun) -> None:
        """Keep the plan of a query that came before.

        Args:
            run: of the query, which is answered.
        """
        asked = query.text
        free = self._plans.free_in(asked)
        if free is None:
            free = find_free(request.statement.query, asked.text, run.table_named)
            self._plans.note_free(asked, free)
        if not self._plans.came_before(asked.key(free)):
            return
        own = run.known()
        if own is None or not _is_cut_right(request.statement, asked):
            return
        known = self._plan_for_all(request, asked, free, own.plan) if free else own
        if known is None:
            # its values decide more than which rows there are
            self._plans.note_free(asked, ())
            known = own
        shared = query.share(known)
        if shared is None:
            self._plans.keep_apart(asked)
        else:
            self._plans.keep(asked.key(known.free), shared)

    def _plan_for_all(
        self,
        request: QueryRequest,
        asked: AskedText,
        free: tuple[FreeLiteral, ...],
        own: Plan,
    ) -> KnownQuery | None:
        """Return the plan of all texts that differ from a query in the literals *free*; None: there
        is none.

        Args:
            own: the plan of the query alone.
        """
        statement = request.statement
        tree = put_numbers(statement.query, free, asked.text)
        with self._engine(lambda: statement) as engine:
            request = replace(request, statement=replace(statement, query=tree))
            made = self._run_of(request, engine).plan()
            engine.keep()
        if made is None or not says_the_same(made.plan, own, free, asked.text, asked.timezone):
            return None
        return replace(made, free=free)

    def _explain(self, request: QueryRequest) -> tuple[pa.Table, dict[str, int]]:
        with self._engine(lambda: request.statement) as engine:
            run = self._run_of(request, engine)
            return run.explain(), run.positions

    def _run_of(self, request: QueryRequest, engine: Engine) -> QueryRun:
        return QueryRun(
            self._source,
            self._resolver.external_rows,
            self.images(),
            engine,
            request,
            self._limits.max_rows,
        )

    @contextmanager
    def _engine(self, statement: Callable[[], Query]) -> Iterator[Engine]:
        """Yield an engine for one query, which ends in time. Raises PenstockError.

        Args:
            statement: gives the query, which errors point into.
        """
        engine = Engine(self._limits.bounds, self._databases)
        try:
            with engine.in_time():
                yield engine
        except duckdb.Error as error:
            asked = statement()
            known = explain_cast(error, asked) or explain_call(error, asked)
            raise known or explain_error(error) from None
        finally:
            engine.close()

    def images(self) -> Images:
        """Return images of tables for one query."""
        return Images(self._partitions.root, self._partitions.views)

    def _check(self, statement: Query, database: str, permit: Permit) -> None:
        """Ask for permission to read each table of a query. Raises AuthError."""
        for table in statement.query.find_all(exp.Table):
            home = table.db or database
            found = self._resolver.find(home, table.name)
            permit(home, table.name, found.table if found is not None else None)


def _one_statement(sql: str, parameters: Parameters | None, timezone: str) -> Query | Explain:
    """Return the SELECT that *sql* is, or the EXPLAIN of one. Raises SqlError."""
    statements = parse(sql, parameters, timezone)
    statement = statements[0] if len(statements) == 1 else None
    if isinstance(statement, Query):
        return statement
    if isinstance(statement, Explain) and isinstance(statement.statement, Query):
        return statement
    raise SqlSemanticError(
        "the store answers one SELECT at a time",
        hint="send other statements to the gateway",
    )


def _is_cut_right(statement: Query, asked: AskedText) -> bool:
    """Tell if the placeholders of a query are those that its text was cut at."""
    if not asked.text.holders:
        return True
    return has_placeholders(asked.text, read(statement.source.text)[0].placeholders)


def _read_again(sql: str, parameters: Parameters | None, timezone: str) -> Query:
    """Return the SELECT that *sql* was read as before."""
    statement = parse(sql, parameters, timezone)[0]
    assert isinstance(statement, Query)
    return statement
