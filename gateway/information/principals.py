"""Lists of users, roles and their rights."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from gateway.answers import table_of
from gateway.information import columns
from gateway.information.viewer import Viewer
from penstock.catalog.model import Database, Grant, Principal, User
from penstock.catalog.principals import Object, kind_of
from penstock.catalog.view import Catalog


class PrincipalLists:
    """Everybody for who has ADMIN, else oneself."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def users(self) -> pa.Table:
        """Return the users; what a password became is not among the columns."""
        catalog = self._viewer.whole()
        root = self._viewer.access.root
        roles = {r.id: r.name for r in catalog.roles()}
        rows: list[tuple[Any, ...]] = []
        if self._viewer.manages(root):
            rows.append((root, 1, 1, "", None))
        for u in catalog.users():
            if self._viewer.manages(u.name):
                has = ", ".join(roles[r] for r in u.roles if r in roles)
                rows.append((u.name, 0, int(u.enabled), has, u.created))
        return table_of(columns.USERS, rows)

    def roles(self) -> pa.Table:
        """Return the roles and who has them."""
        catalog = self._viewer.whole()
        rows = []
        for role in catalog.roles():
            having = [
                u.name
                for u in catalog.users()
                if role.id in u.roles and self._viewer.manages(u.name)
            ]
            if having or self._viewer.manages(""):
                rows.append((role.name, ", ".join(having)))
        return table_of(columns.ROLES, rows)

    def grants(self) -> pa.Table:
        """Return rights of users and roles; those of roles for who has them."""
        catalog = self._viewer.whole()
        root = self._viewer.access.root
        rows: list[tuple[Any, ...]] = []
        if self._viewer.manages(root):
            rows.append((root, "user", "ALL", "all", "*", "*"))
        for principal in self._principals(catalog):
            kind = "user" if isinstance(principal, User) else "role"
            for grant in principal.grants:
                target = _target(catalog, grant)
                if target is not None:
                    rows.append((principal.name, kind, grant.right, *target))
        return table_of(columns.GRANTS, rows)

    def _principals(self, catalog: Catalog) -> list[Principal]:
        """Return users and roles whose rights the user may see."""
        mine = catalog.user(self._viewer.user)
        having = mine.roles if mine is not None else ()
        everything = self._viewer.manages("")
        users = [u for u in catalog.users() if self._viewer.manages(u.name)]
        return [*users, *(r for r in catalog.roles() if everything or r.id in having)]


def _target(catalog: Catalog, grant: Grant) -> tuple[str, str, str] | None:
    """Return kind, database and name of what a right is on; None when that is gone."""
    if grant.object_id == 0:
        return "all", "*", "*"
    target = catalog.by_id(grant.object_id) if grant.object_id else None
    if isinstance(target, Database):
        return "database", target.name, "*"
    if isinstance(target, Object):
        return kind_of(target), target.database, target.name
    return None


def rights_held(viewer: Viewer) -> tuple[list[str], list[dict[str, str | None]]]:
    """Return the roles of a user, and the rights that they and their roles have, each once.

    A right has `right`, the `kind` of what it is on (`all`: everything), its `database` and, in
    that, its `name`.
    """
    if viewer.user == viewer.access.root:
        return [], [_right("ADMIN", "all", "", "")]
    catalog = viewer.whole()
    user = catalog.user(viewer.user)
    if user is None:
        return [], []
    roles = [role for role in catalog.roles() if role.id in user.roles]
    found = {}
    for grant in (*user.grants, *(g for role in roles for g in role.grants)):
        target = _target(catalog, grant)
        if target is not None:
            found[grant.right, *target] = _right(grant.right, *target)
    return [role.name for role in roles], list(found.values())


def _right(right: str, kind: str, database: str, name: str) -> dict[str, str | None]:
    """Return one right as JSON has it; a name that stands for any is null."""
    return {
        "right": right,
        "kind": kind,
        "database": None if kind == "all" else database,
        "name": None if kind in ("all", "database") else name,
    }
