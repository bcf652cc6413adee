"""Statements of InfluxQL, run: lists from the catalog that the user may see, SELECTs and
definitions by our own statements, with their rights, limits and audit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from gateway.statements.context import RequestContext
from gateway.statements.executor import Executor
from gateway.wires.databases import create_database, quoted_database, require_database
from gateway.wires.influxql import lists
from gateway.wires.influxql.parser import unsupported
from gateway.wires.influxql.schema import Measurement, table_name
from gateway.wires.influxql.select_plan import MeasurementPlan, plan
from gateway.wires.influxql.series import series
from gateway.wires.influxql.tree import (
    CreateInfluxDatabase,
    DropDatabase,
    MeasurementName,
    Select,
    ShowList,
    Statement,
)
from penstock import tuning
from penstock.auth.access import Access, visible
from penstock.catalog.model import Database
from penstock.catalog.view import Catalog
from penstock.errors import SqlSemanticError
from penstock.runtime.clock import Clock
from penstock.sql.words import in_backticks

#: measurements that SHOW TAG VALUES may ask
_MOST_ASKED = 50
Series = list[dict[str, Any]]


class Asker:
    """Who asks, of which database, and how times are to be written."""

    def __init__(self, user: str, remote: str, database: str | None, epoch: str | None) -> None:
        self.user = user
        self.remote = remote
        self.database = database
        self.epoch = epoch

    def context(self, parameters: list[object] | None = None) -> RequestContext:
        return RequestContext(user=self.user, remote=self.remote, parameters=parameters)


class Runner:
    """Event loop only."""

    def __init__(
        self, executor: Executor, catalog: Callable[[], Catalog], access: Access, clock: Clock
    ) -> None:
        self._executor = executor
        self._catalog = catalog
        self._access = access
        self._clock = clock

    async def run(self, statement: Statement, asker: Asker) -> Series:
        """Run one statement. Raises PenstockError."""
        if isinstance(statement, Select):
            found: Series = []
            for source in statement.sources:
                found += await self._select(statement, source, asker)
            return found
        if isinstance(statement, ShowList):
            return await self._show(statement, asker)
        await self._define(statement, asker)
        return []

    def _home(self, name: str | None, asker: Asker) -> Database:
        wanted = name or asker.database
        if not wanted:
            raise SqlSemanticError("database name required", code="E_WHICH_DATABASE", hint="?db=…")
        return require_database(self._catalog(), self._access, asker.user, "READ", wanted)

    # ---------------------------------------------------------------- SELECT

    async def _select(self, select: Select, source: MeasurementName, asker: Asker) -> Series:
        home = self._home(source.database, asker)
        measurement = self._measurement(home, source.measurement, asker)
        if measurement is None:
            return []
        planned = plan(select, measurement, source.measurement, self._clock.now())
        if planned is None:
            return []
        answer = await self._ask(planned.sql, planned.parameters, asker)
        return await _shape(planned, select, answer, asker.epoch)

    def _measurement(self, home: Database, name: str, asker: Asker) -> Measurement | None:
        """Return a measurement, if there is one. Raises AuthError."""
        called = table_name(home, name)
        table = self._catalog().table(home.name, called)
        if table is None:
            self._access.require_named(asker.user, "READ", home.name, called)
            return None
        self._access.require(asker.user, "READ", table, f"{home.name}.{called}")
        return Measurement(table)

    async def _ask(self, sql: str, parameters: list[object], asker: Asker) -> pa.Table:
        answer = await self._executor.run(sql, asker.context(parameters or None))
        assert isinstance(answer, pa.Table), "it is a SELECT"
        return answer

    # ---------------------------------------------------------------- SHOW

    async def _show(self, show: ShowList, asker: Asker) -> Series:
        catalog = visible(self._catalog(), self._access, asker.user)
        if show.kind == "databases":
            return lists.databases(catalog)
        home = self._home(show.database, asker)
        if show.kind == "retention policies":
            return lists.policies(home)
        if show.kind == "measurements":
            return lists.measurement_names(show, catalog, home)
        if show.kind == "tag keys":
            return lists.tag_keys(show, catalog, home)
        if show.kind == "field keys":
            return lists.field_keys(show, catalog, home)
        return await self._tag_values(show, lists.choose_measurements(show, catalog, home), asker)

    async def _tag_values(self, show: ShowList, of: list[Measurement], asker: Asker) -> Series:
        asked = [m for m in of if any(m.tag(key) for key in show.keys)]
        if len(asked) > _MOST_ASKED:
            raise unsupported(f"SHOW TAG VALUES of more than {_MOST_ASKED} tables", "add FROM …")
        found: Series = []
        for measurement in asked:
            pairs: set[tuple[str, str]] = set()
            for key in show.keys:
                pairs |= {(key, value) for value in await self._values(measurement, key, asker)}
            found += lists.tag_values(measurement, pairs, show.page)
        return found

    async def _values(self, measurement: Measurement, key: str, asker: Asker) -> list[str]:
        tag = measurement.tag(key)
        if tag is None:
            return []
        table = measurement.table
        name = in_backticks(tag.name)
        source = f"{in_backticks(table.database)}.{in_backticks(table.name)}"
        sql = f"SELECT DISTINCT {name} AS g0 FROM {source} WHERE {name} IS NOT NULL"
        answer = await self._ask(sql, [], asker)
        return [str(value) for value in answer.column(0).to_pylist()]

    # ---------------------------------------------------------------- definitions

    async def _define(self, statement: CreateInfluxDatabase | DropDatabase, asker: Asker) -> None:
        if isinstance(statement, DropDatabase):
            sql = f"DROP DATABASE IF EXISTS {quoted_database(statement.name)}"
        else:
            sql = create_database(statement.name, statement.keep, again=True)
        await self._executor.run(sql, asker.context())


async def _shape(
    planned: MeasurementPlan, select: Select, answer: pa.Table, epoch: str | None
) -> Series:
    """Return the series of an answer; a large one, or one that may be filled, in a thread."""
    cells = answer.num_rows * answer.num_columns
    if cells < tuning.CELLS_RENDERED_IN_LOOP and select.grouping.every is None:
        return series(planned, select, answer, epoch)
    return await asyncio.to_thread(series, planned, select, answer, epoch)
