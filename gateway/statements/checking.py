"""Statements looked at and not run: what is wrong with each, and the columns that a SELECT gives.

A SELECT is bound to its tables, a CREATE STREAM is planned, rows of an INSERT are read; of others,
grammar and rights are checked. Rights come first: who may not run a statement learns no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from gateway import http
from gateway.ddl.streams import StreamDefinitions
from gateway.information.scope import SCHEMA, is_own
from gateway.intake import database_of
from gateway.known_selects import opens_windows
from gateway.parsing import parse_apart
from gateway.statements.context import RequestContext
from gateway.statements.following import FollowedStream, bind_columns, find_stream
from gateway.statements.mistakes import shift_up
from gateway.statements.permissions import Permissions
from gateway.statements.queries import EXPLAIN, ReadStatements
from gateway.statements.writes import WriteStatements
from penstock.catalog.view import Catalog
from penstock.errors import PenstockError, SqlError, SqlSyntaxError
from penstock.sql import statements as st
from penstock.sql.parser import MAX_PLAIN, read_each

#: statements of one text
MOST_STATEMENTS = 100
#: what is not the mesh's trouble but the statement's
_OF_STATEMENTS = (400, 403, 404, 409)


@dataclass(frozen=True)
class CheckedStatement:
    """What was found out about the statement at [start, end) of a text."""

    start: int
    end: int
    #: None: it cannot be read
    statement: st.Statement | None
    mistake: PenstockError | None = None
    #: name and type of each column of a SELECT, where they are known
    columns: list[tuple[str, str]] | None = None
    #: what a page follows for a SELECT from a stream, which is no query
    follows: FollowedStream | None = None


class StatementChecker:
    """Event loop only."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        permissions: Permissions,
        queries: ReadStatements,
        writes: WriteStatements,
        streams: StreamDefinitions,
    ) -> None:
        self._catalog = catalog
        self._permissions = permissions
        self._queries = queries
        self._writes = writes
        self._streams = streams

    async def check(self, text: str, context: RequestContext) -> list[CheckedStatement]:
        """Check each statement of *text* by itself.

        Raises:
            SqlSyntaxError: the text is too long, or has too many statements.
            PenstockError: a service that is needed for an answer is away.
        """
        found = await parse_apart(text, lambda: _read(text, context.timezone))
        checked = []
        for (start, end), statement in found:
            one = CheckedStatement(start, end, None)
            if isinstance(statement, SqlError):
                checked.append(replace(one, mistake=statement))
                continue
            one, context = await self._check_one(replace(one, statement=statement), context)
            checked.append(one)
        return checked

    async def _check_one(
        self, one: CheckedStatement, context: RequestContext
    ) -> tuple[CheckedStatement, RequestContext]:
        """Check a statement; return it, and the context of those behind it."""
        statement = one.statement
        assert statement is not None
        try:
            await self._permissions.check(statement, context)
            if isinstance(statement, st.UseDatabase):
                return one, replace(context, database=self._find_database(statement.name))
            if isinstance(statement, st.Query):
                follows = self._find_followed(statement, context)
                if follows is not None:
                    return replace(one, follows=follows), context
                one = replace(one, columns=await self._columns_of(statement, context))
            else:
                await self._check_other(statement, context)
        except PenstockError as error:
            if http.status_of(error) not in _OF_STATEMENTS:
                raise
            one = replace(one, mistake=error)
        return one, context

    def _find_database(self, name: str) -> str:
        return SCHEMA if is_own(name) else database_of(self._catalog(), name).name

    def _find_followed(self, statement: st.Query, context: RequestContext) -> FollowedStream | None:
        """Return what a SELECT from a stream alone follows; None: it is another query.

        Raises:
            AuthError: the user may not read the stream's result.
            SqlSemanticError: it wants more than columns.
        """
        if opens_windows(statement.query):
            return None
        catalog = self._catalog()
        stream = find_stream(statement, context.database, catalog)
        if stream is None:
            return None
        target = stream.plan.target
        table = catalog.table_by_id(target.table_id) if target.stored else None
        self._permissions.require_sight_of_result(context.user, stream, table)
        return bind_columns(statement, stream, table)

    async def _columns_of(
        self, statement: st.Query, context: RequestContext
    ) -> list[tuple[str, str]] | None:
        try:
            return await self._queries.columns_of(statement, context)
        except SqlError as error:
            # the store was sent this statement alone, behind a line of ours
            raise shift_up(error, EXPLAIN.count("\n"), statement) from None

    async def _check_other(self, statement: st.Statement, context: RequestContext) -> None:
        if isinstance(statement, st.Explain):
            statement = statement.statement
        if isinstance(statement, st.Query):
            await self._columns_of(statement, context)
        elif isinstance(statement, st.CreateStream):
            await asyncio.to_thread(
                self._streams.check, statement, context.database, context.timezone, context.user
            )
        elif isinstance(statement, st.Insert):
            await self._writes.bind_rows(statement, context)
        elif isinstance(statement, st.InsertSelect):
            await self._columns_of(statement.select, context)
        elif isinstance(statement, st.Describe):
            await self._queries.describe(statement, context)


def _read(text: str, timezone: str) -> list[tuple[tuple[int, int], st.Statement | SqlError]]:
    """Read each statement of a text. Raises SqlSyntaxError: it is too long."""
    if len(text) > MAX_PLAIN:
        raise SqlSyntaxError(
            f"the text has {len(text)} characters, {MAX_PLAIN} are checked at once",
            code="E_TOO_LONG",
            hint="check fewer statements at once",
        )
    found: list[tuple[tuple[int, int], st.Statement | SqlError]] = []
    for one in read_each(text, timezone):
        if len(found) == MOST_STATEMENTS:
            raise SqlSyntaxError(
                f"there are more than {MOST_STATEMENTS} statements in this text",
                code="E_TOO_LONG",
                hint="check fewer statements at once",
            )
        found.append(one)
    return found
