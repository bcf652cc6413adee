"""User, role and grant statements as pure decisions like those of `penstock.catalog.changes`.

Here are the rules: which names and rights are possible and where, and that the mesh's own user
(`root`) is nobody's to change by SQL: its password is a setting. Passwords arrive here as hashes
only.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from typing import NoReturn, cast, get_args

from penstock import names
from penstock.catalog.changes import Change, NewId
from penstock.catalog.model import (
    Database,
    Entry,
    External,
    Grant,
    Principal,
    Right,
    Role,
    StreamEntry,
    Table,
    User,
    View,
)
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError

#: what a grant may be on; None for everything
Object = Database | Table | StreamEntry | External | View
Target = Object | None
RIGHTS: tuple[Right, ...] = get_args(Right)
#: rights that make sense on one object of a kind
_ON: dict[type, tuple[Right, ...]] = {
    Database: ("READ", "WRITE", "CREATE", "ALTER", "DROP"),
    Table: ("READ", "WRITE", "ALTER", "DROP"),
    StreamEntry: ("READ", "ALTER", "DROP"),
    External: ("READ", "WRITE", "DROP"),
    View: ("ALTER", "DROP"),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]{0,63}\Z")


def _refuse(code: str, message: str, *, detail: str = "", hint: str = "") -> NoReturn:
    raise CatalogError(message, code=code, detail=detail, hint=hint)


def kind_of(target: Target) -> str:
    """Return the kind of the object of a grant."""
    kinds = {
        Database: "database",
        Table: "table",
        StreamEntry: "stream",
        External: "external stream",
        View: "view",
    }
    return kinds.get(type(target), "all")


# ---------------------------------------------------------------- users


def create_user(
    catalog: Catalog,
    new_id: NewId,
    name: str,
    password: str,
    *,
    root: str,
    created: int,
    enabled: bool = True,
    if_not_exists: bool = False,
) -> Change:
    """A user without rights; *password* is its hash."""
    if catalog.user(name) is not None and if_not_exists:
        return Change()
    _check_name(catalog, name, root)
    return Change((User(new_id(), name, password, enabled, created=created),))


def alter_user(
    catalog: Catalog,
    name: str,
    *,
    root: str,
    password: str | None = None,
    enabled: bool | None = None,
) -> Change:
    """A new password, or ENABLE 0 and 1; either ends the tokens given out before."""
    user = _user(catalog, name, root)
    return Change(
        (
            dataclasses.replace(
                user,
                password=user.password if password is None else password,
                enabled=user.enabled if enabled is None else enabled,
                generation=user.generation + 1,
            ),
        )
    )


def revoke_tokens(catalog: Catalog, name: str, *, root: str) -> Change:
    """Outdate the tokens given out to the user so far."""
    user = _user(catalog, name, root)
    return Change((dataclasses.replace(user, generation=user.generation + 1),))


def drop_user(catalog: Catalog, name: str, *, root: str, if_exists: bool = False) -> Change:
    """Drop a user; whatever the user made stays, streams go on."""
    if if_exists and catalog.user(name) is None and name.lower() != root.lower():
        return Change()
    return Change(removes=(_user(catalog, name, root),))


# ---------------------------------------------------------------- roles


def create_role(
    catalog: Catalog, new_id: NewId, name: str, *, root: str, if_not_exists: bool = False
) -> Change:
    if catalog.role(name) is not None and if_not_exists:
        return Change()
    _check_name(catalog, name, root)
    return Change((Role(new_id(), name),))


def drop_role(catalog: Catalog, name: str, *, if_exists: bool = False) -> Change:
    """The role goes from all who have it."""
    role = catalog.role(name)
    if role is None:
        if if_exists:
            return Change()
        _refuse("E_NO_ROLE", f"there is no role {name}")
    having = [u for u in catalog.users() if role.id in u.roles]
    return Change(
        tuple(
            dataclasses.replace(u, roles=tuple(r for r in u.roles if r != role.id)) for u in having
        ),
        (role,),
    )


def give_role(catalog: Catalog, role: str, user: str, *, root: str) -> Change:
    found = _role(catalog, role)
    holder = _user(catalog, user, root)
    return Change((dataclasses.replace(holder, roles=tuple(sorted({*holder.roles, found.id}))),))


def take_role(catalog: Catalog, role: str, user: str, *, root: str) -> Change:
    found = _role(catalog, role)
    holder = _user(catalog, user, root)
    return Change(
        (dataclasses.replace(holder, roles=tuple(r for r in holder.roles if r != found.id)),)
    )


# ---------------------------------------------------------------- grants


def grant(
    catalog: Catalog, rights: Iterable[str], target: Target, grantee: str, *, root: str
) -> Change:
    """Rights on *target* for a user or role; `ALL` is every right that it can have."""
    principal = _principal(catalog, grantee, root)
    wanted = _rights(rights, target)
    place = target.id if target is not None else 0
    return Change(
        (_with(catalog, principal, {*principal.grants, *(Grant(r, place) for r in wanted)}),)
    )


def revoke(
    catalog: Catalog, rights: Iterable[str], target: Target, grantee: str, *, root: str
) -> Change:
    """Take rights on *target* away; what was granted on something larger or to a role of the user
    stays.
    """
    principal = _principal(catalog, grantee, root)
    unwanted = _rights(rights, target)
    place = target.id if target is not None else 0
    return Change(
        (
            _with(
                catalog,
                principal,
                {g for g in principal.grants if g.object_id != place or g.right not in unwanted},
            ),
        )
    )


def owner(catalog: Catalog, made: Iterable[Entry], name: str) -> tuple[User, ...]:
    """The user entry with all rights on what that user has just made, to be written along; nothing
    for who has them anyway.
    """
    user = catalog.user(name)
    if user is None:
        return ()
    new = [e for e in made if isinstance(e, Object) and catalog.by_id(e.id) is None]
    if not new:
        return ()
    grants = {*user.grants, *(Grant(r, e.id) for e in new for r in _ON[type(e)])}
    return (cast(User, _with(catalog, user, grants, [e.id for e in new])),)


def _with(
    catalog: Catalog, principal: Principal, grants: Iterable[Grant], coming: Iterable[int] = ()
) -> Principal:
    """With these grants, without those on what was dropped."""
    known = set(coming)
    alive = (
        g
        for g in grants
        if not g.object_id or g.object_id in known or catalog.by_id(g.object_id) is not None
    )
    return dataclasses.replace(
        principal, grants=tuple(sorted(alive, key=lambda g: (g.object_id, RIGHTS.index(g.right))))
    )


def _rights(given: Iterable[str], target: Target) -> tuple[Right, ...]:
    possible = RIGHTS if target is None else _ON[type(target)]
    wanted: set[Right] = set()
    for word in (g.upper() for g in given):
        if word == "ALL":
            wanted |= set(possible)
        elif word in possible:
            wanted.add(word)
        elif word in RIGHTS:
            _refuse(
                "E_BAD_GRANT",
                f"{word} is no right on a {kind_of(target)}",
                hint=f"there are {', '.join(possible)}; all of them on *.*",
            )
        else:
            _refuse(
                "E_BAD_GRANT",
                f"there is no right {word}",
                hint=f"rights are {', '.join(RIGHTS)}, ALL",
            )
    return tuple(r for r in RIGHTS if r in wanted)


# ---------------------------------------------------------------- checks


def _check_name(catalog: Catalog, name: str, root: str) -> None:
    """Users and roles share one space of names, so that GRANT … TO name is clear."""
    if not _NAME.match(name):
        hint = "a letter or underscore, then letters, digits and _ . @ -, at most 64"
        _refuse("E_BAD_NAME", f"{name!r} cannot be a user's or role's name", hint=hint)
    if name.lower() == names.KAFKA_USER:
        _refuse(
            "E_BAD_NAME",
            f"{name} is what the mesh itself is called in Kafka",
            hint="choose another name",
        )
    if catalog.user(name) is not None or name.lower() == root.lower():
        _refuse("E_USER_EXISTS", f"user {name} exists already")
    if catalog.role(name) is not None:
        _refuse("E_ROLE_EXISTS", f"role {name} exists already")


def _user(catalog: Catalog, name: str, root: str) -> User:
    if name.lower() == root.lower():
        hint = (
            "its password is PENSTOCK_PASSWORD or its file: change that and restart; for people"
            " make users of their own"
        )
        _refuse(
            "E_BAD_GRANT", f"{name} is the mesh's own user and cannot be changed by SQL", hint=hint
        )
    found = catalog.user(name)
    if found is None:
        _refuse("E_NO_USER", f"there is no user {name}")
    return found


def _role(catalog: Catalog, name: str) -> Role:
    found = catalog.role(name)
    if found is None:
        _refuse("E_NO_ROLE", f"there is no role {name}")
    return found


def _principal(catalog: Catalog, name: str, root: str) -> Principal:
    return catalog.role(name) or _user(catalog, name, root)
