"""One SELECT: names bound to relations, window clauses computed by the same kernels that streams
use, the rest by DuckDB.

A window select over a table is planned as a stream would be and fed the table's rows once
(`Kernel.load_history`), so a query and a stream can't disagree. Refused: functions that are not on
the list of those a query has. DuckDB can open the segments of the query's own tables and nothing
else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from sqlglot import exp

from penstock.catalog.model import Table
from penstock.duck import Bounds, Databases, Engine, explain_error
from penstock.errors import SqlSemanticError
from penstock.rows.parameters import Parameters
from penstock.sql import parse
from penstock.sql.statements import Query
from services.store.engine_errors import explain_call
from services.store.images import Images
from services.store.partitions import Partitions
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
        statements = parse(sql, parameters, timezone)
        if len(statements) != 1 or not isinstance(statements[0], Query):
            raise SqlSemanticError(
                "the store answers one SELECT at a time",
                hint="send other statements to the gateway",
            )
        statement = statements[0]
        if permit is not None:
            self._check(statement, database, permit)
        engine = Engine(self._limits.bounds, self._databases)
        try:
            with engine.in_time():
                images = self.images()
                run = QueryRun(
                    self._source,
                    self._resolver.external_rows,
                    images,
                    engine,
                    QueryRequest(statement, database, timezone),
                    self._limits.max_rows,
                )
                table = run.result()
            if not run.has_functions:
                engine.keep()
            if not positions:
                return table
            metadata = table.schema.metadata or {}
            return table.replace_schema_metadata({**metadata, POSITIONS: json.dumps(run.positions)})
        except duckdb.Error as error:
            known = explain_cast(error, statement) or explain_call(error, statement)
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
