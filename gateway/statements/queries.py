"""SELECT, OPEN WINDOWS, DESCRIBE and EXPLAIN: statements that change nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from gateway import describing
from gateway.answers import columns_of, table_of
from gateway.ddl.streams import StreamDefinitions
from gateway.ddl.topics import Topics
from gateway.information.schema import Information
from gateway.information.scope import is_own
from gateway.known_selects import KnownSelect, TableName, opens_windows, tables_of
from gateway.publisher import RowPublisher
from gateway.select import Question, StoreClient
from gateway.statements.context import RequestContext
from gateway.statements.resolution import NameResolver
from penstock import names
from penstock.catalog.model import External, Table
from penstock.catalog.view import Catalog
from penstock.link import pushdown
from penstock.sql import render as sql_text
from penstock.sql import statements as st
from penstock.types import ColumnType

_EXPLAIN = (("item", ColumnType("VARCHAR", 64)), ("value", ColumnType("VARCHAR", 65_535)))
#: in front of a SELECT that is only looked at, on a line of its own
EXPLAIN = "EXPLAIN\n"
#: where the store tells the columns of a query that it explains
_COLUMNS = b"penstock.columns"


class ReadStatements:
    """Event loop only."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        resolver: NameResolver,
        store: StoreClient,
        publisher: RowPublisher,
        information: Information,
        streams: StreamDefinitions,
        topics: Topics,
    ) -> None:
        self._catalog = catalog
        self._names = resolver
        self._store = store
        self._publisher = publisher
        self._information = information
        self._streams = streams
        self._topics = topics

    async def query(self, statement: st.Query, context: RequestContext) -> pa.Table:
        """Answer a SELECT: by a stream's processors, from lists, or by the store."""
        if opens_windows(statement.query):
            return await asyncio.to_thread(self._open_windows, statement, context)
        tables = tables_of(statement.query)
        if _is_of_lists(tables, context):
            information = self._information.for_user(context.user)
            answer = await asyncio.to_thread(information.query, statement.query, context.database)
            if answer is not None:
                return answer
        return await self._ask_store(statement, tables, context)

    async def query_known(self, statement: KnownSelect, context: RequestContext) -> pa.Table:
        """Answer a SELECT that was read before, by the store."""
        return await self._ask_store(statement, statement.tables, context)

    async def columns_of(
        self, statement: st.Query, context: RequestContext
    ) -> list[tuple[str, str]] | None:
        """Return the name and type of each column that a SELECT has; None where only its answer
        tells them. Nothing is computed. Raises PenstockError.
        """
        tables = tables_of(statement.query)
        if opens_windows(statement.query) or self._far(statement.query, context):
            return None
        if _is_of_lists(tables, context):
            information = self._information.for_user(context.user)
            look = partial(information.query, statement.query, context.database, rows=False)
            answer = await asyncio.to_thread(look)
            if answer is not None:
                return columns_of(answer)
        question = Question(
            EXPLAIN + statement.text,
            context.database,
            context.timezone,
            self._catalog().revision,
            {},
        )
        explained = await self._store.select_for(context.user, question)
        return [(name, kind) for name, kind in json.loads(explained.schema.metadata[_COLUMNS])]

    async def _ask_store(
        self, statement: st.Statement, tables: Sequence[TableName], context: RequestContext
    ) -> pa.Table:
        named = [(database or context.database or "", name) for database, name in tables]
        revision = self._catalog().revision
        after = self._own_writes(named)
        replicated = self._stream_tables_of(named)
        if replicated:  # a thread's turn costs a small query more than asking for its rows
            after |= await asyncio.to_thread(self._stream_table_ends, replicated)
        question = Question(
            statement.text, context.database, context.timezone, revision, after, context.parameters
        )
        return await self._store.select_for(context.user, question)

    def _own_writes(self, tables: Sequence[tuple[str, str]]) -> dict[tuple[str, int], int]:
        """Return the newest records that this gateway has acked and *tables* may be made of."""
        catalog = self._catalog()
        behind = {
            d.lower() for database, name in tables for d in catalog.databases_behind(database, name)
        }
        shared = {d: home.topic for d in behind if (home := catalog.database(d)) is not None}

        def counts(topic: str) -> bool:
            # what was acked in an earlier generation of a topic is in segments
            home = names.database_of(topic)
            return home in shared and (names.has_own(topic) or topic == shared[home])

        return {at: o for at, o in self._publisher.confirmed.offsets.items() if counts(at[0])}

    def _stream_tables_of(self, named: Sequence[tuple[str, str]]) -> list[Table]:
        """Return the stream tables among tables of these names."""
        found = (self._catalog().table(database, name) for database, name in named)
        return [table for table in found if table is not None and table.replicated is not None]

    def _stream_table_ends(self, tables: Sequence[Table]) -> dict[tuple[str, int], int]:
        """Return the newest records of stream tables: their leaders write them, so what this
        gateway has acked says nothing.
        """
        newest: dict[tuple[str, int], int] = {}
        for table in tables:
            end = self._topics.log_end(table.topic)
            if end:
                newest[table.topic, 0] = end - 1
        return newest

    def _open_windows(self, statement: st.Query, context: RequestContext) -> pa.Table:
        """SELECT … FROM stream OPEN WINDOWS: what the stream's processors hold, never what the
        store has.
        """
        over_windows = _over_windows(statement.query)
        select = over_windows[0]
        node = _only_source(select)
        if len(over_windows) > 1 or statement.query is not select or node is None:
            raise statement.error(
                "OPEN WINDOWS stands behind one stream in FROM",
                select,
                code="E_UNSUPPORTED_QUERY",
            )
        if select.args.get("window") is not None:
            raise statement.error(
                "open windows are windows already",
                select.args["window"],
                code="E_UNSUPPORTED_QUERY",
            )
        name = st.Name(node.name, node.db or None, node.this.meta.get("start", 0))
        stream = self._streams.find(statement, name, context.database, False)
        assert stream is not None
        tree = statement.query.copy()
        tree.set("open_windows", None)
        for table in tree.find_all(exp.Table):
            table.set("db", None)
        # `*` is the columns of results alone
        named = {column.name.lower() for column in tree.find_all(exp.Column)}
        windows = self._streams.open_windows(stream, named)
        return self._information.run(tree, {node.name: windows.to_arrow()})

    async def describe(self, statement: st.Describe, context: RequestContext) -> pa.Table:
        """DESCRIBE a table, an external stream, or a view by its target."""
        if is_own(statement.table.database or context.database):
            return describing.describe_list(self._information.columns_of(statement))
        home = self._names.home(statement, statement.table, context)
        catalog = self._catalog()
        shown: object = catalog.external(home.name, statement.table.name)
        view = catalog.view(home.name, statement.table.name)
        if shown is None and view is not None:
            shown = catalog.by_id(view.target_id)
        if isinstance(shown, External | Table):
            return describing.describe(shown)
        layout, _ = await self._names.find(home, statement, statement.table)
        table = self._catalog().table_by_id(layout.table_id)
        assert table is not None
        return describing.describe(table)

    async def explain(self, statement: st.Explain, context: RequestContext) -> pa.Table:
        """EXPLAIN CREATE STREAM, and EXPLAIN SELECT, which says where it runs, how, and what it
        reads.
        """
        inner = statement.statement
        if isinstance(inner, st.CreateStream):
            return await asyncio.to_thread(
                self._streams.explain, inner, context.database, context.timezone, context.user
            )
        far = self._far(inner.query, context)
        tables = tables_of(inner.query)
        if not far and not opens_windows(inner.query) and not _is_of_lists(tables, context):
            return await self._ask_store(statement, tables, context)
        where = far or [("runs in", "gateway")]
        return table_of(_EXPLAIN, [("query", sql_text(inner)), *where])

    def _far(self, query: exp.Query, context: RequestContext) -> list[tuple[str, str]]:
        """Return what EXPLAIN says of a query over tables of other deployments, else nothing."""
        catalog = self._catalog()
        return pushdown.explain(
            query,
            context.database or "",
            lambda database, name: pushdown.find(catalog, database, name),
        )


def _is_of_lists(tables: Sequence[TableName], context: RequestContext) -> bool:
    """Tell if a query is of no table, or of lists that the gateway keeps."""
    return not tables or any(is_own(database or context.database) for database, _ in tables)


def _over_windows(query: exp.Query) -> list[exp.Select]:
    """Return the selects that have OPEN WINDOWS."""
    selects = query.find_all(exp.Select)
    return [s for s in selects if s.args.get("open_windows") is not None]


def _only_source(select: exp.Select) -> exp.Table | None:
    """Return what stands alone in FROM."""
    clause = select.args.get("from_")
    node = clause.this if clause is not None else None
    return node if isinstance(node, exp.Table) and not select.args.get("joins") else None
