"""Rights of statements: what `gateway.rights` says they need, asked of the grants."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from gateway.intake import WriteIntake
from gateway.rights import Asked, Need, needs
from gateway.statements.context import RequestContext
from penstock.auth.access import Access
from penstock.catalog.model import Database, Right, StreamEntry, Table
from penstock.catalog.principals import Object
from penstock.catalog.view import Catalog
from penstock.errors import AuthError, CatalogError
from penstock.sql import statements as st


class Permissions:
    """Event loop only."""

    def __init__(self, access: Access, catalog: Callable[[], Catalog], intake: WriteIntake) -> None:
        self._access = access
        self._catalog = catalog
        self._intake = intake

    async def check(self, statement: st.Statement, context: RequestContext) -> None:
        """Raise AuthError unless the user may do what *statement* says."""
        if context.user == self._access.root:
            return
        if isinstance(statement, st.AlterUser):
            _require_password(statement, context)
        catalog = self._catalog()
        asked = Asked(
            context.user,
            context.database,
            catalog,
            lambda target: self._access.sees(context.user, target),
        )
        for need in needs(statement, asked):
            await self._require(need, context.user, catalog)

    def require_sight_of_result(self, user: str, stream: StreamEntry, table: Table | None) -> None:
        """Raise AuthError unless *user* may read what *stream* makes: its result, if it has one."""
        self._access.require(user, "READ", table or stream, f"{stream.database}.{stream.name}")

    async def _require(self, need: Need, user: str, catalog: Catalog) -> None:
        access = self._access
        if need.kind == "all":
            access.require(user, need.right or "ADMIN", None)
            return
        if not need.database:
            return  # there is no current database, which the statement is refused for
        home = catalog.database(need.database)
        if need.right is None:
            await self._require_sight(need, user, home)
            return
        if need.kind == "database":
            access.require_named(user, need.right, need.database)
            return
        entry = _find_entry(catalog, need)
        if entry is not None:
            access.require(user, need.right, entry, f"{need.database}.{need.name}")
        elif need.kind in ("stream", "view"):
            access.require_named(user, need.right, need.database, need.name)
        elif home is None or not access.may(user, need.right, home):
            await self._require_on_table(need, user, need.right)

    async def _require_on_table(self, need: Need, user: str, right: Right) -> None:
        """Raise AuthError unless the user has *right* on a table, if there is one."""
        try:
            await self._intake.locate_for(user, right, need.database, need.name)
        except CatalogError as error:
            if error.code not in ("E_NO_TABLE", "E_NO_DATABASE"):
                raise

    async def _require_sight(self, need: Need, user: str, home: Database | None) -> None:
        """Raise AuthError unless the user has any right on it."""
        access = self._access
        entry: Object | None = home
        if need.kind != "database":
            entry = _find_entry(self._catalog(), need)
        if entry is None and need.kind == "table" and home is not None:
            entry = await self._find_table(need, user, home)
        if entry is None or not access.sees(user, entry):
            access.require_named(user, "READ", need.database, need.name or None)

    async def _find_table(self, need: Need, user: str, home: Database) -> Object | None:
        """Return the table or supertable that is meant; who may read the whole database needs no
        look at it.
        """
        if self._access.may(user, "READ", home):
            return None
        with contextlib.suppress(CatalogError):
            layout, _ = await self._intake.locate(home.name, need.name)
            return self._catalog().table_by_id(layout.table_id)
        return None


def _require_password(statement: st.AlterUser, context: RequestContext) -> None:
    """Raise AuthError (E_FORBIDDEN) for who came with a token and gives themselves a new password:
    whoever finds a token does not get the account.
    """
    own = statement.password is not None and statement.name.lower() == context.user.lower()
    if own and not context.with_password and not context.forwarded:
        hint = "send user and password; a token or a context does not do"
        raise AuthError(
            "changing one's own password takes the password", code="E_FORBIDDEN", hint=hint
        )


def _find_entry(catalog: Catalog, need: Need) -> Object | None:
    """Return what a need is about, unless the name is a table's or child table's."""
    if need.kind == "stream":
        return catalog.stream(need.database, need.name)
    view = catalog.view(need.database, need.name)
    if need.kind == "view":
        return view
    if catalog.table(need.database, need.name) is not None:
        return None
    external = catalog.external(need.database, need.name)
    if external is None and view is not None:
        return catalog.table_by_id(view.target_id)
    return external
