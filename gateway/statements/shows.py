"""SHOW: lists, and questions about one table."""

from __future__ import annotations

import asyncio
from collections import Counter

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from gateway import describing, times
from gateway.answers import table_of
from gateway.information import columns
from gateway.information.schema import Information
from gateway.information.scope import ListScope
from gateway.layout import RowLayout
from gateway.statements.context import RequestContext
from gateway.statements.queries import ReadStatements
from gateway.statements.resolution import NameResolver
from penstock.rows.partition import partition_of
from penstock.sql import parse_one
from penstock.sql import statements as st
from penstock.sql.words import in_backticks

_DISTRIBUTION = (("_block_dist", columns.LONG),)


class ShowStatements:
    """Event loop only."""

    def __init__(
        self, resolver: NameResolver, queries: ReadStatements, information: Information
    ) -> None:
        self._names = resolver
        self._queries = queries
        self._information = information

    async def lists(self, statement: st.Show, context: RequestContext) -> pa.Table:
        """Answer SHOW of a list."""
        information = self._information.for_user(context.user)
        return await asyncio.to_thread(information.show, statement, context.database)

    async def create(self, statement: st.ShowCreate, context: RequestContext) -> pa.Table:
        """Answer SHOW CREATE."""
        information = self._information.for_user(context.user)
        return await asyncio.to_thread(
            describing.show_create,
            information.catalog,
            statement,
            context.database,
            information.children.find,
        )

    async def tags(self, statement: st.ShowTags, context: RequestContext) -> pa.Table:
        """Answer SHOW TAGS FROM a child table."""
        home = self._names.home(statement, statement.table, context)
        children = self._information.for_user(context.user).children
        return await asyncio.to_thread(children.tags_of, statement, home.name)

    async def table_tags(self, statement: st.ShowTableTags, context: RequestContext) -> pa.Table:
        """Answer SHOW TABLE TAGS FROM a supertable."""
        home = self._names.home(statement, statement.stable, context)
        children = self._information.for_user(context.user).children
        return await asyncio.to_thread(children.table_tags, statement, home.name)

    async def indexes(self, statement: st.ShowIndexes, context: RequestContext) -> pa.Table:
        """Answer SHOW INDEXES FROM a table: nobody makes any here."""
        home = self._names.home(statement, statement.table, context)
        await self._names.find(home, statement, statement.table)
        return table_of(columns.INDEXES, ())

    async def distribution(
        self, statement: st.ShowDistribution, context: RequestContext
    ) -> pa.Table:
        """Answer SHOW TABLE DISTRIBUTED: rows and their times and, of a supertable, how many child
        tables each partition has.
        """
        home = self._names.home(statement, statement.table, context)
        layout, child = await self._names.find(home, statement, statement.table)
        time = in_backticks(layout.time)
        source = f"{in_backticks(home.name)}.{in_backticks(child or layout.table)}"
        counted = parse_one(f"SELECT count(*), min({time}), max({time}) FROM {source}")
        assert isinstance(counted, st.Query)
        answer = await self._queries.query(counted, context)
        rows, first, last = (
            _show(column, context.timezone) for column in answer.combine_chunks().columns
        )
        lines = [f"Total_Rows=[{rows}] First_Row=[{first}] Last_Row=[{last}]"]
        if child is None and not layout.plain:
            lines += await asyncio.to_thread(self._count_children, layout, context.user)
        return table_of(_DISTRIBUTION, [(line,) for line in lines])

    def _count_children(self, layout: RowLayout, user: str) -> list[str]:
        """Return how many child tables there are, and where their rows go."""
        lists = self._information.for_user(user).tables
        found = lists.tables(ListScope(layout.database, layout.table)).filter(
            pc.is_valid(pc.field("stable_name"))
        )
        total = f"Total_Tables=[{found.num_rows}] Partitions=[{layout.partitions}]"
        if layout.virtual:
            return [total]
        held = Counter(partition_of(found.column("table_name"), layout.partitions).to_list())
        return [total, *(f"Partition=[{p}] Tables=[{held[p]}]" for p in range(layout.partitions))]


def _show(column: pa.ChunkedArray, tz: str) -> str:
    """Return the one value of a column as text."""
    series = pl.Series(values=column)
    if isinstance(series.dtype, pl.Datetime):
        series = times.render(series.cast(pl.Int64), series.dtype.time_unit, tz)
    value = series.item()
    return "" if value is None else str(value)
