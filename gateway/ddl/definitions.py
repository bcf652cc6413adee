"""DDL statements as calls of the rules.

Runs in the DDL thread; what may take long (a topic being read, a stream going live) is handed back
as a function for another thread, so that one slow statement does not hold up the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gateway import times
from gateway.ddl.database_definitions import DatabaseDefinitions
from gateway.ddl.definer import Definer
from gateway.ddl.drops import Drops
from gateway.ddl.principals import Principals
from gateway.ddl.resolution import home_of
from gateway.ddl.streams import StreamDefinitions
from gateway.ddl.table_definitions import After, TableDefinitions
from gateway.federation.external_streams import ExternalStreams
from gateway.federation.mirrors import Mirrors
from gateway.federation.views import MaterializedViews
from penstock.catalog import changes, functions
from penstock.errors import CatalogError
from penstock.sql import statements as st
from penstock.udf import UserFunction
from penstock.udf.sandbox import try_out

#: applies a statement, given the current database and time zone
_Apply = Callable[[Any, str | None, str], After]


class Definitions:
    """Applies one DDL statement at a time."""

    def __init__(
        self,
        definer: Definer,
        databases: DatabaseDefinitions,
        tables: TableDefinitions,
        streams: StreamDefinitions,
        externals: ExternalStreams,
        views: MaterializedViews,
        mirrors: Mirrors,
        principals: Principals,
        drops: Drops,
        *,
        allow_functions: bool = False,
    ) -> None:
        self._definer = definer
        self._streams = streams
        self._externals = externals
        self._views = views
        self._mirrors = mirrors
        self._allow_functions = allow_functions
        self._rules: dict[type[st.Statement], _Apply] = {
            st.CreateDatabase: lambda s, _, __: databases.create(s),
            st.AlterDatabase: lambda s, _, __: databases.alter(s),
            st.CreateStable: lambda s, database, _: tables.create(s, database, s.tags),
            st.CreateTable: lambda s, database, _: tables.create(s, database, ()),
            st.CreateStreamTable: lambda s, database, _: tables.create_stream_table(s, database),
            st.CreateChildren: tables.create_children,
            st.AlterTable: tables.alter,
            st.Drop: lambda s, database, _: drops.apply(s, database),
            st.CreateStream: self._create_stream,
            st.PauseStream: self._steer_stream,
            st.ResumeStream: self._steer_stream,
            st.FlushStream: self._steer_stream,
            st.AlterStream: lambda s, database, _: streams.alter(s, database),
            st.RecalculateStream: self._recalculate,
            st.CreateSnode: self._create_snode,
            st.CreateFunction: self._create_function,
            st.CreateExternalStream: self._create_external,
            st.CreateView: self._create_view,
            st.SteerView: self._steer_view,
        }
        for kind in (
            st.CreateUser,
            st.AlterUser,
            st.CreateRole,
            st.Grant,
            st.GrantRole,
            st.RevokeTokens,
        ):
            self._rules[kind] = lambda s, database, _: principals.apply(s, database)

    @property
    def statements(self) -> frozenset[type[st.Statement]]:
        """Return the kinds of statements that `apply` takes."""
        return frozenset(self._rules)

    def apply(self, statement: st.Statement, database: str | None, timezone: str) -> After:
        """Do what *statement* says. Raises PenstockError; CatalogErrors come back pointing at the
        statement.
        """
        rule = self._rules.get(type(statement))
        if rule is None:
            raise statement.error(
                f"{type(statement).__name__} is not available in this version",
                code="E_UNSUPPORTED_STATEMENT",
            )
        try:
            return rule(statement, database, timezone)
        except CatalogError as error:
            raise statement.error(
                error.message, code=error.code, detail=error.detail, hint=error.hint
            ) from error

    # ---------------------------------------------------------------- streams

    def _create_stream(
        self, statement: st.CreateStream, database: str | None, timezone: str
    ) -> After:
        mirrored = self._mirrors.redirect(statement, database)
        made = self._streams.create(mirrored, database, timezone)
        return None if made is None else lambda: self._streams.wait_live(made)

    def _steer_stream(
        self,
        statement: st.PauseStream | st.ResumeStream | st.FlushStream,
        database: str | None,
        _: str,
    ) -> None:
        stream = self._streams.find(statement, statement.stream, database, statement.if_exists)
        if stream is None:
            return
        if isinstance(statement, st.PauseStream):
            self._streams.pause(stream)
        elif isinstance(statement, st.ResumeStream):
            self._streams.resume(stream, statement.ignore_untreated)
        else:
            self._streams.flush(stream)

    def _recalculate(
        self, statement: st.RecalculateStream, database: str | None, timezone: str
    ) -> None:
        stream = self._streams.find(statement, statement.stream, database, False)
        assert stream is not None
        self._streams.recalculate(statement, stream, times.zone(timezone))

    # ---------------------------------------------------------------- federation

    def _create_external(
        self, statement: st.CreateExternalStream, database: str | None, _: str
    ) -> None:
        self._externals.create(statement, self._home(statement, statement.stream, database))

    def _create_view(self, statement: st.CreateView, database: str | None, timezone: str) -> None:
        self._views.create(statement, self._home(statement, statement.view, database), timezone)

    def _steer_view(self, statement: st.SteerView, database: str | None, _: str) -> After:
        return self._views.steer(statement, self._home(statement, statement.view, database))

    # ---------------------------------------------------------------- the rest

    def _create_snode(self, statement: st.CreateSnode, _: str | None, __: str) -> None:
        """CREATE SNODE ON DNODE: the node must be there."""
        dnode = statement.dnode
        known = self._definer.watch.nodes()
        node = next((n for n in known if n.id == dnode), None)
        if node is None:
            listed = ", ".join(str(n.id) for n in known) or "none"
            raise CatalogError(
                f"there is no dnode {dnode}",
                code="E_NO_DNODE",
                detail=f"nodes heard of: {listed}",
                hint="SHOW DNODES",
            )
        if "snode" not in node.services:
            raise CatalogError(
                f"no snode service runs on dnode {dnode}",
                code="E_NO_DNODE",
                hint="start it there: `penstock up --services …,snode`",
            )
        now = time.time_ns() // 10**6
        self._definer.decide(lambda c, i: changes.create_snode(c, i, dnode, created=now))

    def _create_function(self, s: st.CreateFunction, _: str | None, __: str) -> None:
        if not self._allow_functions:
            raise CatalogError(
                "functions are code that the mesh runs, and this mesh takes none",
                code="E_FORBIDDEN",
                hint="its operator allows them with PENSTOCK_GATEWAY_ALLOW_FUNCTIONS=1",
            )
        change = functions.create_function(
            self._definer.catalog,
            self._definer.new_id,
            s.name,
            [t for _, t in s.parameters],
            s.returns,
            s.code,
            aggregate=s.aggregate,
            if_not_exists=s.if_not_exists,
            or_replace=s.or_replace,
        )
        for entry in change.puts:
            if isinstance(entry, UserFunction):
                _check_code(s.name, entry)
        self._definer.commit(change)

    def _home(self, statement: st.Statement, name: st.Name, database: str | None) -> str:
        return home_of(self._definer.catalog, statement, name, database).name


def _check_code(name: str, function: UserFunction) -> None:
    """Raise CatalogError when a function's code cannot be used."""
    complaint = try_out(function)
    if complaint is None:
        return
    hint = ""
    if "PermissionError" in complaint:
        hint = "functions cannot reach files, the network or other processes"
    raise CatalogError(
        f"the code of {name} cannot be used",
        code="E_FUNCTION_CODE",
        detail=complaint,
        hint=hint,
    )
