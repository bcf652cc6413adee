"""SHOW, and queries over the tables of `information_schema`.

Owns the small queries over lists made on the spot, which DuckDB answers. Has no table but those of
the lists. Blocks on Redis: call it from worker threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

import duckdb
import pyarrow as pa
import redis
from sqlglot import exp

from gateway.answers import table_of
from gateway.information import columns, like
from gateway.information.federation import FederationLists
from gateway.information.losses import LossLists
from gateway.information.mesh import MeshLists
from gateway.information.principals import PrincipalLists
from gateway.information.streams import StreamLists
from gateway.information.tables import SCHEMA, TableLists
from gateway.information.viewer import Viewer
from penstock.auth.access import Access
from penstock.catalog.view import Catalog
from penstock.duck import Bounds, Engine, explain_error, print_query
from penstock.errors import SqlSemanticError
from penstock.records import DeadLetter
from penstock.sql.statements import Show

#: what a query over lists may take; it opens no file
#: what a query over lists may take; it opens no file
_BOUNDS = Bounds(memory="256MB", threads=1, seconds=30.0)

#: answers SHOW for a statement and the current database
_Show = Callable[[Show, str | None], pa.Table]


class Information:
    """Answers questions about the catalog as it is now, as one user may see it."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        client: redis.Redis,
        version: str,
        access: Access,
        user: str = "",
        letters: Callable[[], list[DeadLetter]] = list,
    ) -> None:
        """*letters*: reads the newest dead letters."""
        self._viewer = Viewer(catalog, client, access, user)
        self._version = version
        self._letters = letters
        self._tables = TableLists(self._viewer)
        streams = StreamLists(self._viewer)
        federation = FederationLists(self._viewer)
        principals = PrincipalLists(self._viewer)
        mesh = MeshLists(self._viewer)
        losses = LossLists(self._viewer, letters)
        self._lists: dict[str, Callable[[], pa.Table]] = {
            "ins_databases": lambda: self._tables.databases(len(self._lists)),
            "ins_stables": self._tables.stables,
            "ins_tables": self._tables.tables,
            "ins_columns": self._tables.columns,
            "ins_tags": self._tables.tags,
            "ins_streams": streams.streams,
            "ins_stream_tasks": streams.tasks,
            "ins_external_streams": federation.externals,
            "ins_views": federation.views,
            "ins_users": principals.users,
            "ins_roles": principals.roles,
            "ins_user_privileges": principals.grants,
            "ins_dnodes": mesh.dnodes,
            "ins_snodes": mesh.snodes,
            "ins_functions": mesh.functions,
            "ins_late_rows": losses.late,
            "ins_dead_letters": losses.dead_letters,
        }
        self._shows: dict[str, _Show] = {
            "DATABASES": self._show_databases,
            "STABLES": self._show_stables,
            "TABLES": partial(self._show_tables, virtual=False),
            "VTABLES": partial(self._show_tables, virtual=True),
            "STREAMS": lambda statement, _: streams.streams(statement.database),
            "EXTERNAL STREAMS": lambda statement, _: federation.externals(statement.database),
            "VIEWS": lambda statement, _: federation.views(statement.database),
            "VARIABLES": self._show_variables,
            "FUNCTIONS": lambda *_: mesh.functions(),
            "USERS": lambda *_: principals.users(),
            "ROLES": lambda *_: principals.roles(),
            "GRANTS": lambda *_: principals.grants(),
            "DNODES": lambda *_: mesh.dnodes().drop_columns("rooms"),
            "SNODES": lambda *_: mesh.snodes(),
        }

    def for_user(self, user: str) -> Information:
        """Return the same, as *user* may see it."""
        viewer = self._viewer
        return Information(
            viewer.whole, viewer.redis, self._version, viewer.access, user, self._letters
        )

    @property
    def catalog(self) -> Catalog:
        """Return the catalog as far as the user sees it."""
        return self._viewer.catalog

    # ---------------------------------------------------------------- queries

    def query(self, tree: exp.Query) -> pa.Table | None:
        """Answer a query over `information_schema` alone, or over no table; return None for one
        about rows.
        """
        tables = list(tree.find_all(exp.Table))
        if any(t.db.lower() != SCHEMA for t in tables):
            return None
        if not tables and tree.find(exp.Star) is not None:
            raise SqlSemanticError("there is no FROM that * could mean", hint="add FROM table")
        values = self._session_values()
        if not tables and not _calls_only(tree, values):
            return None
        tree = tree.copy()
        lists = self._bind_lists(tree)
        _insert_values(tree, values)
        return self.run(tree, lists)

    def _session_values(self) -> dict[str, str | None]:
        """Return what functions without arguments stand for."""
        return {
            "server_version": self._version,
            "client_version": self._version,
            "database": None,
            "current_user": self._viewer.user,
        }

    def _bind_lists(self, tree: exp.Query) -> dict[str, pa.Table]:
        """Make the lists that *tree* names, and leave their bare names in it."""
        lists: dict[str, pa.Table] = {}
        for table in tree.find_all(exp.Table):
            name = table.name.lower()
            if name not in self._lists:
                known = ", ".join(sorted(self._lists))
                raise SqlSemanticError(
                    f"{SCHEMA} has no table {name}", code="E_NO_TABLE", hint=f"it has {known}"
                )
            lists[name] = self._lists[name]()
            table.set("db", None)
            table.set("this", exp.to_identifier(name))
        return lists

    def run(self, tree: exp.Query, tables: dict[str, pa.Table]) -> pa.Table:
        """Answer a query over *tables*, and nothing else."""
        text = print_query(tree, tables.keys())
        engine = Engine(_BOUNDS)
        try:
            engine.confine()
            for name, table in tables.items():
                engine.con.register(name, table)
            with engine.in_time():
                return engine.answer(text)
        except duckdb.Error as wrong:
            raise SqlSemanticError(
                "the query cannot be answered", detail=explain_error(wrong).message
            ) from None
        finally:
            engine.close()

    # ---------------------------------------------------------------- SHOW

    def show(self, statement: Show, database: str | None) -> pa.Table:
        """Answer SHOW … [LIKE …]."""
        what = statement.what.upper()
        show = self._shows.get(what)
        if show is None:
            raise statement.error(f"SHOW {what} is not available", code="E_UNSUPPORTED_STATEMENT")
        answer = show(statement, database)
        if statement.like is None:
            return answer
        chosen = [like.matches(statement.like, str(v or "")) for v in answer.column(0).to_pylist()]
        return answer.filter(pa.array(chosen, pa.bool_()))

    def _show_databases(self, _: Show, __: str | None) -> pa.Table:
        listed = [(d.name,) for d in self._viewer.catalog.databases()]
        return table_of((("name", columns.TEXT),), [*listed, (SCHEMA,)])

    def _show_stables(self, statement: Show, database: str | None) -> pa.Table:
        return self._tables.stables(_home(statement, database)).select(["stable_name"])

    def _show_tables(self, statement: Show, database: str | None, *, virtual: bool) -> pa.Table:
        home = _home(statement, database)
        return self._tables.real_or_virtual(home, virtual=virtual).select(["table_name"])

    def _show_variables(self, _: Show, __: str | None) -> pa.Table:
        return table_of(
            (("name", columns.TEXT), ("value", columns.TEXT)), (("version", self._version),)
        )


def _home(statement: Show, database: str | None) -> str:
    home = statement.database or database
    if home is None:
        what = statement.what.upper()
        raise statement.error("which database?", code="E_WHICH_DATABASE", hint=f"SHOW name.{what}")
    return home


def _calls_only(tree: exp.Query, known: Collection[str]) -> bool:
    """Tell a SELECT without FROM whose functions DuckDB need not know the time for: `SELECT 1`,
    `SELECT server_version()`.
    """
    return {f.name.lower() for f in tree.find_all(exp.Anonymous)} <= set(known)


def _insert_values(tree: exp.Query, values: Mapping[str, str | None]) -> None:
    """Put the values of functions without arguments in their place."""
    for call in list(tree.find_all(exp.Anonymous)):
        name = call.name.lower()
        if name not in values:
            continue
        value = values[name]
        literal: exp.Expression = exp.null() if value is None else exp.Literal.string(value)
        if isinstance(call.parent, exp.Select):
            call.replace(exp.alias_(literal, f"{name}()", quoted=True))
        else:
            call.replace(literal)
