"""Rights of users: the one question every endpoint asks before it touches a database, table or
stream.

`Access(catalog, root).require(user, "READ", table)` returns or raises E_FORBIDDEN. A right on a
database holds for all that is in it, one on everything (None) for all databases; READ on a stream
includes the rows of its result table. Rights of a user are one set, made once and dropped when any
user or role changes, so a check on the hot path is three look-ups in it. Does not know who somebody
is (`penstock.auth.login`).
"""

from __future__ import annotations

from collections.abc import Callable, Container

from penstock.catalog.model import (
    Database,
    Entry,
    External,
    Right,
    StreamEntry,
    Table,
    TableVersion,
    View,
)
from penstock.catalog.principals import Object, Target, kind_of
from penstock.catalog.view import Catalog
from penstock.errors import AuthError

#: rights that let somebody see that a thing exists
_SEEING: frozenset[Right] = frozenset(("READ", "WRITE", "CREATE", "ALTER", "DROP", "ADMIN"))


class Access:
    """Answers for all users of one catalog. Any thread."""

    def __init__(self, catalog: Callable[[], Catalog], root: str) -> None:
        """
        Args:
            catalog: what there is now.
            root: the mesh's own user, who may do everything.
        """
        self._catalog = catalog
        self.root = root
        self._held: dict[str, frozenset[tuple[Right, int]]] = {}
        self._version = -1

    def may(self, user: str, right: Right, target: Target) -> bool:
        """Tell whether *user* has *right* on a database, table or stream, or (None) on
        everything.
        """
        if user == self.root:
            return True
        held = self._rights(user)
        if (right, 0) in held:
            return True
        if target is None or not held:
            return False
        return (right, target.id) in held or self._follows(held, right, target)

    def _follows(self, held: Container[tuple[Right, int]], right: Right, target: Object) -> bool:
        """Tell whether *right* on *target* follows from rights on its database or, for results, on
        its stream.
        """
        if isinstance(target, Database):
            return False
        home = self._catalog().database(target.database)
        if home is not None and (right, home.id) in held:
            return True
        if right != "READ" or not isinstance(target, Table):
            return False
        return target.result_of is not None and ("READ", target.result_of) in held

    def require(self, user: str, right: Right, target: Target, asked: str = "") -> None:
        """Raises AuthError (E_FORBIDDEN) that names right and object.

        Args:
            asked: `database.name` as the user gave it. Who may not see the target gets the answer
                for what does not exist.
        """
        if self.may(user, right, target):
            return
        if target is None or isinstance(target, Database) or self.sees(user, target):
            raise refusal(user, right, describe(target))
        raise refusal(user, right, _spell_neutrally(asked or f"{target.database}.{target.name}"))

    def require_named(
        self, user: str, right: Right, database: str, name: str | None = None
    ) -> None:
        """The same for what does not exist (yet), by the database it would be in: who may not know
        of it is told nothing about it.
        """
        home = self._catalog().database(database)
        if not self.may(user, right, home):
            raise refusal(
                user,
                right,
                _spell_neutrally(f"{database}.{name}")
                if name is not None
                else f"database {database}",
            )

    def sees(self, user: str, target: Object) -> bool:
        """Tell whether *user* has any right on it or, for a database, in it."""
        if user == self.root:
            return True
        catalog = self._catalog()
        seen = {place for right, place in self._rights(user) if right in _SEEING}
        if 0 in seen or target.id in seen:
            return True
        if isinstance(target, Database):
            return any(_is_inside(catalog.by_id(place), target) for place in seen)
        home = catalog.database(target.database)
        return (home is not None and home.id in seen) or (
            isinstance(target, Table) and target.result_of in seen
        )

    def _rights(self, user: str) -> frozenset[tuple[Right, int]]:
        catalog = self._catalog()
        if catalog.principals != self._version:
            # the number first: what is worked out from here on is of this version or newer
            self._version = catalog.principals
            self._held = {}
        cache = self._held
        found = cache.get(user)
        if found is None:
            found = cache[user] = _rights_of(catalog, user)
        return found


def _rights_of(catalog: Catalog, name: str) -> frozenset[tuple[Right, int]]:
    user = catalog.user(name)
    if user is None or not user.enabled:
        return frozenset()
    grants = [*user.grants, *(g for r in catalog.roles() if r.id in user.roles for g in r.grants)]
    return frozenset((g.right, g.object_id) for g in grants)


def describe(target: Target) -> str:
    """Return what errors call a database, table or stream."""
    if target is None:
        return "everything (*.*)"
    if isinstance(target, Database):
        return f"database {target.name}"
    return f"{kind_of(target)} {target.database}.{target.name}"


def _is_inside(entry: Entry | None, database: Database) -> bool:
    """Tell whether *entry* is a table, stream or the like of *database*."""
    if not isinstance(entry, Object) or isinstance(entry, Database):
        return False
    return entry.database.lower() == database.name.lower()


def _spell_neutrally(name: str) -> str:
    """Spell the name of something that a user may not know of: the catalog's spelling would tell
    that it exists.
    """
    return name.lower()


def refusal(user: str, right: Right, what: str) -> AuthError:
    """Make the error of a refusal, with what would help."""
    hint = f"somebody with ADMIN can GRANT {right} ON … TO {user}; SHOW GRANTS lists what there is"
    return AuthError(f"{user} has no {right} on {what}", code="E_FORBIDDEN", hint=hint)


class Visible(Catalog):
    """The catalog as one user may see it: lists and look-ups by name leave out what that user has
    no right on.
    """

    def __init__(self, catalog: Catalog, access: Access, user: str) -> None:
        self.__dict__.update(catalog.__dict__)  # the same entries, not a copy of them
        self._sees: Callable[[Object], bool] = lambda target: access.sees(user, target)

    def database(self, name: str) -> Database | None:
        found = super().database(name)
        return found if found is not None and self._sees(found) else None

    def databases(self) -> list[Database]:
        return [d for d in super().databases() if self._sees(d)]

    def table(self, database: str, name: str) -> Table | None:
        found = super().table(database, name)
        return found if found is not None and self._sees(found) else None

    def tables(self, database: str | None = None) -> list[Table]:
        return [t for t in super().tables(database) if self._sees(t)]

    def schema(self, schema_id: int) -> tuple[Table, TableVersion] | None:
        found = super().schema(schema_id)
        return found if found is not None and self._sees(found[0]) else None

    def stream(self, database: str, name: str) -> StreamEntry | None:
        found = super().stream(database, name)
        return found if found is not None and self._sees(found) else None

    def streams(self, database: str | None = None) -> list[StreamEntry]:
        return [s for s in super().streams(database) if self._sees(s)]

    def external(self, database: str, name: str) -> External | None:
        found = super().external(database, name)
        return found if found is not None and self._sees(found) else None

    def externals(self, database: str | None = None) -> list[External]:
        return [e for e in super().externals(database) if self._sees(e)]

    def view(self, database: str, name: str) -> View | None:
        found = super().view(database, name)
        return found if found is not None and self._sees(found) else None

    def views(self, database: str | None = None) -> list[View]:
        return [v for v in super().views(database) if self._sees(v)]


def visible(catalog: Catalog, access: Access, user: str) -> Catalog:
    """*catalog* itself for root, else what *user* may see of it."""
    return catalog if user == access.root else Visible(catalog, access, user)
