"""Statements: from text to an answer.

Owns which part of the gateway does what a statement says, the current database within a request,
and forwarding DDL to the gateway that holds the catalog's lease. Statements that this build does
not have are refused by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from gateway.answers import Affected, Answer
from gateway.ddl.definer import Definer, Elsewhere
from gateway.ddl.definitions import Definitions
from gateway.forward import Forwarder
from gateway.information.scope import SCHEMA, is_own
from gateway.intake import database_of
from gateway.known_selects import KnownSelect, KnownSelects
from gateway.parsing import parse_apart
from gateway.statements.context import RequestContext
from gateway.statements.permissions import Permissions
from gateway.statements.queries import ReadStatements
from gateway.statements.shows import ShowStatements
from gateway.statements.writes import WriteStatements
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError, PenstockError, SqlSemanticError, SqlSyntaxError
from penstock.runtime import audit
from penstock.sql import parse
from penstock.sql import statements as st
from penstock.sql.secret import hide

_Handler = Callable[[Any, RequestContext], Awaitable[Answer]]


class Executor:
    """One per process; event loop only."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        permissions: Permissions,
        queries: ReadStatements,
        writes: WriteStatements,
        definer: Definer,
        definitions: Definitions,
        shows: ShowStatements,
        forwarder: Forwarder,
    ) -> None:
        self._catalog = catalog
        self._permissions = permissions
        self._definer = definer
        self._definitions = definitions
        self._forwarder = forwarder
        self._selects = KnownSelects()
        self._handlers: dict[type[st.Statement], _Handler] = {
            st.Insert: writes.insert,
            st.InsertSelect: writes.insert_selected,
            st.Delete: writes.delete,
            st.Query: queries.query,
            KnownSelect: queries.query_known,
            st.Explain: queries.explain,
            st.Describe: queries.describe,
            st.Show: shows.lists,
            st.ShowCreate: shows.create,
            st.ShowDistribution: shows.distribution,
            st.ShowIndexes: shows.indexes,
            st.ShowTableTags: shows.table_tags,
            st.ShowTags: shows.tags,
            **dict.fromkeys(definitions.statements, self._define),
        }

    async def run(self, text: str, context: RequestContext) -> Answer:
        """Run the statements of *text* in order, up to the first that fails; return the last one's
        answer. Raises PenstockError.
        """
        answer, _ = await self.run_in(text, context)
        return answer

    async def run_in(self, text: str, context: RequestContext) -> tuple[Answer, RequestContext]:
        """Do what `run` does; return the context that USE has left, too, for clients with a
        session.
        """
        statements = await self._read(text, context)
        if not statements:
            raise SqlSyntaxError("there is no statement in this text")
        if context.key is not None and len(statements) > 1:
            raise SqlSemanticError(
                "an idempotency key is for one statement", code="E_SEVERAL_STATEMENTS"
            )
        answer: Answer = Affected()
        for statement in statements:
            await self._permissions.check(statement, context)
            if isinstance(statement, st.UseDatabase):
                context = replace(context, database=self._find_database(statement.name))
                answer = Affected()
            else:
                answer = await self._run_one(statement, context)
        return answer, context

    async def _read(self, text: str, context: RequestContext) -> Sequence[st.Statement]:
        """Return the statements of *text*. Raises SqlError."""
        parameters = context.parameters
        known = self._selects.find(text, context.database, parameters, context.timezone)
        if known is not None:
            return (known,)
        statements = await parse_apart(text, lambda: parse(text, parameters, context.timezone))
        self._selects.note(text, statements, bound=bool(parameters))
        return statements

    def _find_database(self, name: str) -> str:
        return SCHEMA if is_own(name) else database_of(self._catalog(), name).name

    async def _run_one(self, statement: st.Statement, context: RequestContext) -> Answer:
        handler = self._handlers.get(type(statement))
        if handler is None:
            raise statement.error("this statement is not available", code="E_UNSUPPORTED_STATEMENT")
        return await handler(statement, context)

    async def _define(self, statement: st.Statement, context: RequestContext) -> Affected:
        told = {
            "user": context.user,
            "kind": type(statement).__name__,
            "sql": hide(statement.text)[:2000],
            "database": context.database,
        }
        audit.write("ddl", remote=context.remote, **told)
        try:
            after = await self._definer.run(
                lambda: self._definitions.apply(statement, context.database, context.timezone),
                context.user,
                context.own,
            )
        except PenstockError as error:
            audit.write("ddl failed", remote=context.remote, code=error.code, **told)
            raise
        except Elsewhere as elsewhere:
            if context.forwarded:
                raise CatalogError(
                    "the catalog changes hands at this moment",
                    code="E_LEASE_HELD",
                    hint="try again in a second",
                ) from None
            await self._forwarder.statement(elsewhere.address, statement.text, context)
            return Affected()
        if after is not None:
            await asyncio.to_thread(after)
        return Affected()
