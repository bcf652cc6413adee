"""DROP, of whatever kind."""

from __future__ import annotations

from functools import partial

from gateway.ddl.definer import Definer
from gateway.ddl.principals import Principals
from gateway.ddl.removal import Removal
from gateway.ddl.resolution import home_of
from gateway.ddl.streams import StreamDefinitions
from gateway.ddl.table_definitions import After
from gateway.federation.external_streams import ExternalStreams
from gateway.federation.mirrors import Mirrors
from gateway.federation.views import MaterializedViews
from gateway.stream_tables import StreamTableGroups
from penstock.catalog import changes, functions
from penstock.catalog.changes import Change, NewId
from penstock.catalog.model import External, Table
from penstock.catalog.view import Catalog
from penstock.sql import statements as st


class Drops:
    """Runs in the DDL thread; what it returns waits in another."""

    def __init__(
        self,
        definer: Definer,
        removal: Removal,
        streams: StreamDefinitions,
        externals: ExternalStreams,
        views: MaterializedViews,
        mirrors: Mirrors,
        principals: Principals,
        stream_tables: StreamTableGroups,
    ) -> None:
        self._definer = definer
        self._removal = removal
        self._streams = streams
        self._externals = externals
        self._views = views
        self._mirrors = mirrors
        self._principals = principals
        self._stream_tables = stream_tables
        self._by_kind = {
            "database": self._drop_database,
            "table": self._drop_table,
            "stable": self._drop_table,
            "external stream": self._drop_external,
            "materialized view": self._drop_view,
            "stream": self._drop_stream,
            "snode": self._drop_snode,
            "function": self._drop_function,
        }

    def apply(self, statement: st.Drop, database: str | None) -> After:
        """Drop all that *statement* names, in its order."""
        if statement.kind in ("user", "role"):
            self._principals.drop(statement)
            return None
        drop = self._by_kind.get(statement.kind)
        if drop is None:
            raise statement.error(
                f"DROP {statement.kind.upper()} is not available in this version",
                code="E_UNSUPPORTED_STATEMENT",
            )
        replicated: list[Table] = []
        for name, if_exists in zip(statement.names, statement.if_exists, strict=True):
            replicated += drop(statement, name, database, if_exists)
        return (lambda: self._stream_tables.wait_gone(replicated)) if replicated else None

    # each returns the stream tables that go with it

    def _drop_database(
        self, _: st.Drop, name: st.Name, __: str | None, if_exists: bool
    ) -> list[Table]:
        catalog = self._definer.catalog
        tables = catalog.tables(name.name)
        externals: list[External | Table] = [*catalog.externals(name.name)]
        externals += [t for t in tables if t.foreign]
        replicated = [t for t in tables if t.replicated is not None]
        self._stream_tables.check_unused(replicated)
        self._removal.drop_database(name.name, if_exists)
        self._externals.forget(externals)
        return replicated

    def _drop_table(
        self, statement: st.Drop, name: st.Name, database: str | None, if_exists: bool
    ) -> list[Table]:
        home = self._home(statement, name, database)
        table = self._definer.catalog.table(home, name.name)
        if table is not None and not table.tags and statement.kind == "stable":
            raise statement.error(f"{name.name} is no supertable", name, code="E_NOT_A_STABLE")
        replicated = [table] if table is not None and table.replicated is not None else []
        self._stream_tables.check_unused(replicated)
        self._removal.drop_table(home, name.name, if_exists)
        if table is not None and table.foreign:
            self._externals.forget([table])
        return replicated

    def _drop_external(
        self, statement: st.Drop, name: st.Name, database: str | None, if_exists: bool
    ) -> list[Table]:
        self._externals.drop(self._home(statement, name, database), name.name, if_exists)
        return []

    def _drop_view(
        self, statement: st.Drop, name: st.Name, database: str | None, if_exists: bool
    ) -> list[Table]:
        self._views.drop(self._home(statement, name, database), name.name, if_exists)
        return []

    def _drop_stream(
        self, statement: st.Drop, name: st.Name, database: str | None, if_exists: bool
    ) -> list[Table]:
        """Drop a stream of ours, or an external one; mirrors that only it read go, too."""
        home = name.database or database
        if home is not None and self._is_external(home, name.name):
            self._externals.drop(home, name.name, if_exists)
            return []
        stream = self._streams.find(statement, name, database, if_exists)
        if stream is not None:
            self._streams.drop(stream)
            self._mirrors.sweep()
        return []

    def _is_external(self, database: str, name: str) -> bool:
        table = self._definer.catalog.table(database, name)
        if table is not None and table.foreign:
            return True
        return self._definer.catalog.external(database, name) is not None

    def _drop_snode(self, _: st.Drop, name: st.Name, __: str | None, ___: bool) -> list[Table]:
        number = int(name.name)
        self._definer.decide(lambda c, _: changes.drop_snode(c, number))
        return []

    def _drop_function(
        self, _: st.Drop, name: st.Name, __: str | None, if_exists: bool
    ) -> list[Table]:
        self._definer.decide(partial(_function_rule, name.name, if_exists))
        return []

    def _home(self, statement: st.Drop, name: st.Name, database: str | None) -> str:
        return home_of(self._definer.catalog, statement, name, database).name


def _function_rule(name: str, if_exists: bool, catalog: Catalog, _: NewId) -> Change:
    return functions.drop_function(catalog, name, if_exists=if_exists)
