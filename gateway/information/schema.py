"""SHOW, and queries over the tables of `information_schema`.

Owns the small queries over lists made on the spot, which DuckDB answers. Has no table but those of
the lists. Blocks on Redis: call it from worker threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import duckdb
import pyarrow as pa
import redis
from sqlglot import exp

from gateway.answers import table_of
from gateway.information import columns, like
from gateway.information.children import ChildLists
from gateway.information.declared import declare
from gateway.information.federation import FederationLists
from gateway.information.losses import LossLists
from gateway.information.mesh import MeshLists
from gateway.information.principals import PrincipalLists
from gateway.information.scope import SCHEMA, ListScope, is_own, scope_of
from gateway.information.session import insert_values, session_values
from gateway.information.storage import StorageLists
from gateway.information.streams import StreamLists
from gateway.information.tables import KINDS, TableLists
from gateway.information.viewer import Viewer
from gateway.intake import database_of
from penstock.auth.access import Access
from penstock.catalog.view import Catalog
from penstock.duck import Bounds, Engine, explain_error, print_query
from penstock.errors import SqlSemanticError
from penstock.records import DeadLetter
from penstock.sql.relational import lower, map_scans
from penstock.sql.relational.select_list import name_as_written
from penstock.sql.statements import Describe, Show

#: what a query over lists may take; it opens no file
_BOUNDS = Bounds(memory="256MB", threads=1, seconds=30.0)

#: what a SELECT has that computes nothing
_WRITTEN = (exp.Select, exp.Alias, exp.Identifier, exp.Literal, exp.Boolean, exp.Null)

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
        self.tables = TableLists(self._viewer)
        self.children = ChildLists(self._viewer)
        self._storage = StorageLists(self._viewer, self.tables.count_children)
        self._streams = StreamLists(self._viewer)
        self._federation = FederationLists(self._viewer)
        self._principals = PrincipalLists(self._viewer)
        self._mesh = MeshLists(self._viewer)
        self._losses = LossLists(self._viewer, letters)
        self._lists = self._make_lists()
        self._shows = self._make_shows()

    def _make_lists(self) -> dict[str, Callable[[ListScope], pa.Table]]:
        """Return what answers each list of `information_schema`."""
        return {
            "ins_databases": lambda _: self.tables.databases(),
            "ins_stables": lambda _: self.tables.stables(),
            "ins_tables": self.tables.tables,
            "ins_storage": self._storage.storage,
            "ins_columns": self.tables.columns,
            "ins_tags": self.children.tags,
            "ins_indexes": lambda _: table_of(columns.INDEXES, ()),
            "ins_streams": lambda _: self._streams.streams(),
            "ins_stream_tasks": lambda _: self._streams.tasks(),
            "ins_external_streams": lambda _: self._federation.externals(),
            "ins_views": lambda _: self._federation.views(),
            "ins_users": lambda _: self._principals.users(),
            "ins_roles": lambda _: self._principals.roles(),
            "ins_user_privileges": lambda _: self._principals.grants(),
            "ins_dnodes": lambda _: self._mesh.dnodes(),
            "ins_snodes": lambda _: self._mesh.snodes(),
            "ins_functions": lambda _: self._mesh.functions(),
            "ins_late_rows": lambda _: self._losses.late(),
            "ins_dead_letters": lambda _: self._losses.dead_letters(),
        }

    def _make_shows(self) -> dict[str, _Show]:
        """Return what answers each SHOW."""
        return {
            "DATABASES": lambda *_: self._databases(user=True, system=True),
            "USER DATABASES": lambda *_: self._databases(user=True),
            "SYSTEM DATABASES": lambda *_: self._databases(system=True),
            "STABLES": self._show_stables,
            **dict.fromkeys(KINDS, self._show_tables),
            "STREAMS": lambda statement, _: self._streams.streams(
                self._require_database(statement.database)
            ),
            "EXTERNAL STREAMS": lambda statement, _: self._federation.externals(
                self._require_database(statement.database)
            ),
            "VIEWS": lambda statement, _: self._federation.views(
                self._require_database(statement.database)
            ),
            "VARIABLES": self._show_variables,
            "FUNCTIONS": lambda *_: self._mesh.functions(),
            "USERS": lambda *_: self._principals.users(),
            "ROLES": lambda *_: self._principals.roles(),
            "GRANTS": lambda *_: self._principals.grants(),
            "DNODES": lambda *_: self._mesh.dnodes().drop_columns("rooms"),
            "SNODES": lambda *_: self._mesh.snodes(),
            "CLUSTER ALIVE": lambda *_: self._mesh.alive(),
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

    def query(
        self, tree: exp.Query, database: str | None = None, *, rows: bool = True
    ) -> pa.Table | None:
        """Answer a query over `information_schema` alone, or over no table; return None for one
        about rows.

        Args:
            database: the current one.
            rows: False: of lists without rows, to learn the answer's columns.
        """
        tables = list(tree.find_all(exp.Table))
        if any(not is_own(t.db or database) for t in tables):
            return None
        _check_select_lists(tree, has_from=bool(tables))
        values = session_values(self._viewer.user, database)
        if not tables and not _is_of_session(tree, values):
            return None
        tree = tree.copy()
        lists = self._bind_lists(tree, rows=rows)
        insert_values(tree, values)
        for select in list(tree.find_all(exp.Select)):
            select.set("expressions", [name_as_written(item) for item in select.expressions])
        return declare(self.run(tree, lists), tree)

    def _bind_lists(self, tree: exp.Query, *, rows: bool) -> dict[str, pa.Table]:
        """Make the lists that *tree* names, with their rows or none, and leave their bare names in
        it.
        """
        lists: dict[str, pa.Table] = {}
        scope = scope_of(tree)
        for table in tree.find_all(exp.Table):
            name = table.name.lower()
            known = _list_name(name)
            lists[name] = self._lists[known](scope) if rows else table_of(columns.LISTS[known], ())
            table.set("db", None)
            table.set("this", exp.to_identifier(name))
        return lists

    @staticmethod
    def columns_of(statement: Describe) -> columns.Columns:
        """Return the columns of a table of `information_schema`, for DESCRIBE. Raises
        SqlSemanticError.
        """
        return columns.LISTS[_list_name(statement.table.name.lower())]

    def run(self, tree: exp.Query, tables: dict[str, pa.Table]) -> pa.Table:
        """Answer a query over *tables*, which it names without a database, and nothing else."""
        plan = map_scans(
            lower(tree.copy()),
            lambda scan, _: replace(scan, relation="" if scan.database else scan.table),
        )
        text = print_query(plan, tables.keys())
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
            raise statement.error(
                f"SHOW {what} is not available",
                code="E_UNSUPPORTED_STATEMENT",
                hint=f"known here: {', '.join(sorted(self._shows))}",
            )
        answer = show(statement, database)
        if statement.like is None:
            return answer
        chosen = [like.matches(statement.like, str(v or "")) for v in answer.column(0).to_pylist()]
        return answer.filter(pa.array(chosen, pa.bool_()))

    def _databases(self, *, user: bool = False, system: bool = False) -> pa.Table:
        listed = [(d.name,) for d in self._viewer.catalog.databases()] if user else []
        return table_of((("name", columns.TEXT),), [*listed, *([(SCHEMA,)] if system else [])])

    def _show_stables(self, statement: Show, database: str | None) -> pa.Table:
        return self.tables.stables(self._home(statement, database)).select(["stable_name"])

    def _show_tables(self, statement: Show, database: str | None) -> pa.Table:
        kinds = KINDS[statement.what.upper()]
        return self.tables.table_names(self._home(statement, database), kinds)

    def _show_variables(self, _: Show, __: str | None) -> pa.Table:
        return table_of(
            (("name", columns.TEXT), ("value", columns.TEXT)), (("version", self._version),)
        )

    def _home(self, statement: Show, database: str | None) -> str:
        home = self._require_database(statement.database or database)
        if home is None:
            what = statement.what.upper()
            raise statement.error(
                "which database?", code="E_WHICH_DATABASE", hint=f"SHOW name.{what}"
            )
        return home

    def _require_database(self, database: str | None) -> str | None:
        """Return *database* if the user has such a one, or none is named. Raises CatalogError."""
        if database is not None and not is_own(database):
            database_of(self.catalog, database)
        return database


def _check_select_lists(tree: exp.Query, has_from: bool) -> None:
    """Refuse SELECT TAGS, and a * without a FROM. Raises SqlSemanticError."""
    if any(select.args.get("tags") for select in tree.find_all(exp.Select)):
        raise SqlSemanticError(
            "SELECT TAGS is of one supertable, or of one child table",
            code="E_UNSUPPORTED_QUERY",
            hint=f"{SCHEMA}.ins_tags lists the tags of all",
        )
    if not has_from and tree.find(exp.Star) is not None:
        raise SqlSemanticError("there is no FROM that * could mean", hint="add FROM table")


def _list_name(name: str) -> str:
    if name not in columns.LISTS:
        known = ", ".join(sorted(columns.LISTS))
        raise SqlSemanticError(
            f"{SCHEMA} has no table {name}", code="E_NO_TABLE", hint=f"it has {known}"
        )
    return name


def _is_of_session(tree: exp.Query, known: Collection[str]) -> bool:
    """Tell a SELECT without FROM that is about the session, or has nothing to compute: `SELECT 1`,
    `SELECT server_version()`. Any other is computed where queries are.
    """
    calls = {call.name.lower() for call in tree.find_all(exp.Anonymous)}
    if calls:
        return calls <= set(known)
    return all(isinstance(node, _WRITTEN) for node in tree.walk())
