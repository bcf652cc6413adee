"""User, role and grant statements as calls of the rules in `penstock.catalog.principals`.

Finds what a grant is on. Passwords become hashes here, are told to Kafka where it knows
users, and go no further. Runs in the DDL thread.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.ddl.child_tables import ChildTables
from gateway.ddl.definer import Definer
from gateway.intake import database_of
from gateway.kafka_rights import Passwords
from penstock.auth.passwords import hash_password
from penstock.catalog import principals
from penstock.catalog.changes import Change, NewId
from penstock.catalog.model import User
from penstock.catalog.principals import Target
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.runtime.clock import Clock, milliseconds
from penstock.sql import statements as st

Statement = st.CreateUser | st.AlterUser | st.CreateRole | st.Grant | st.GrantRole | st.RevokeTokens


class Principals:
    """Applies one statement at a time."""

    def __init__(
        self,
        definer: Definer,
        child_tables: ChildTables,
        clock: Clock,
        root: str,
        passwords: Passwords,
    ) -> None:
        self._definer = definer
        self._child_tables = child_tables
        self._clock = clock
        self._root = root
        self._passwords = passwords

    def apply(self, statement: Statement, database: str | None) -> None:
        """Do what *statement* says. Raises CatalogError."""
        root = self._root
        decide = self._definer.decide
        match statement:
            case st.CreateUser():
                self._create_user(statement)
            case st.AlterUser():
                self._alter_user(statement)
            case st.CreateRole(name=name):
                decide(
                    lambda c, i: principals.create_role(
                        c, i, name, root=root, if_not_exists=statement.if_not_exists
                    )
                )
            case st.RevokeTokens(user=name):
                decide(lambda c, _: principals.revoke_tokens(c, name, root=root))
            case st.GrantRole():
                rule = principals.take_role if statement.take else principals.give_role
                decide(lambda c, _: rule(c, statement.role, statement.grantee, root=root))
            case st.Grant():
                act = principals.revoke if statement.take else principals.grant
                target = self._target(statement, database)
                decide(lambda c, _: act(c, statement.rights, target, statement.grantee, root=root))

    def _create_user(self, statement: st.CreateUser) -> None:
        password = hash_password(statement.password)
        now = milliseconds(self._clock)
        change = self._definer.decide(
            lambda c, i: principals.create_user(
                c,
                i,
                statement.name,
                password,
                root=self._root,
                created=now,
                enabled=statement.enabled,
                if_not_exists=statement.if_not_exists,
            )
        )
        if change.puts:
            self._passwords.set(statement.name, statement.password)

    def _alter_user(self, statement: st.AlterUser) -> None:
        password = None if statement.password is None else hash_password(statement.password)
        change = self._definer.decide(
            lambda c, _: principals.alter_user(
                c, statement.name, root=self._root, password=password, enabled=statement.enabled
            )
        )
        if statement.password is not None:
            (user,) = (entry for entry in change.puts if isinstance(entry, User))
            self._passwords.set(user.name, statement.password)

    def drop(self, statement: st.Drop) -> None:
        """DROP USER and DROP ROLE."""
        for name, if_exists in zip(statement.names, statement.if_exists, strict=True):
            dropped = self._definer.decide(self._dropping(statement.kind, name.name, if_exists))
            for user in (entry for entry in dropped.removes if isinstance(entry, User)):
                self._passwords.forget(user.name)

    def _dropping(
        self, kind: str, name: str, if_exists: bool
    ) -> Callable[[Catalog, NewId], Change]:
        if kind == "user":
            return lambda c, _: principals.drop_user(c, name, root=self._root, if_exists=if_exists)
        return lambda c, _: principals.drop_role(c, name, if_exists=if_exists)

    def _target(self, statement: st.Grant, database: str | None) -> Target:
        catalog = self._definer.catalog
        name = statement.name
        if name is None:
            return None
        if statement.kind == "database":
            return database_of(catalog, name.name)
        home = name.database or database
        if home is None:
            raise CatalogError(
                "which database?", code="E_WHICH_DATABASE", hint=f"write database.{name.name}"
            )
        entry: Target = catalog.external(home, name.name)
        if entry is None and statement.kind == "stream":
            entry = catalog.stream(home, name.name) or catalog.view(home, name.name)
        elif entry is None:
            entry = catalog.table(home, name.name)
        if entry is None:
            raise self._missing(statement.kind, home, name.name)
        return entry

    def _missing(self, kind: str, home: str, name: str) -> CatalogError:
        """Return why there is no such thing to give rights on."""
        is_child = self._definer.catalog.child(home, name) is not None
        if is_child or (kind == "table" and self._child_tables.stable_of(home, name)):
            return CatalogError(
                f"{name} is a child table",
                code="E_CHILD_TABLE",
                hint="rights are given on its supertable",
            )
        code = "E_NO_STREAM" if kind == "stream" else "E_NO_TABLE"
        return CatalogError(f"there is no {kind} {home}.{name}", code=code)
