"""Users, roles and grants."""

from __future__ import annotations

from typing import Any

from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.federation import FederationParser
from penstock.sql.statements import (
    AlterUser,
    CreateRole,
    CreateUser,
    Grant,
    GrantKind,
    GrantRole,
    Name,
    RevokeTokens,
    Statement,
)

_RIGHTS = ("READ", "WRITE", "CREATE", "ALTER", "DROP", "FUNCTION", "ADMIN", "ALL")


class PrincipalParser(FederationParser):
    """`CREATE | ALTER USER`, `CREATE ROLE`, `GRANT`, `REVOKE`; dropping is among the other
    DROPs.
    """

    def create_user(self) -> Statement:
        """`USER [IF NOT EXISTS] name PASS 'password' [ENABLE 0|1]`"""
        if_not_exists = self.if_not_exists()
        name = self.identifier("a user name")
        given = self._user_options()
        if "password" not in given:
            self.fail("expected PASS", hint="CREATE USER name PASS 'password'")
        return CreateUser(
            name=name,
            if_not_exists=if_not_exists,
            password=given["password"],
            enabled=given.get("enabled", True),
        )

    def alter_user(self) -> Statement:
        """`USER name [PASS 'password'] [ENABLE 0|1]`"""
        name = self.identifier("a user name")
        if self.at_end:
            self.fail("expected PASS or ENABLE")
        return AlterUser(name=name, **self._user_options())

    def _user_options(self) -> dict[str, Any]:
        given: dict[str, Any] = {}
        while not self.at_end:
            word = self.one_of(
                ("PASS", "PASSWORD", "ENABLE", "SYSINFO", "CREATEDB"), "PASS or ENABLE"
            )
            name = {"PASS": "password", "PASSWORD": "password", "ENABLE": "enabled"}.get(word)
            if name is None:
                self.notices.append(
                    f"{word} has no meaning here and is ignored: grant rights instead"
                )
                self.flag()
                continue
            if name in given:
                self.fail(f"{word} is given twice", code="E_OPTION_TWICE", index=self.index - 1)
            given[name] = (
                self.flag() if name == "enabled" else self.string("the password as a string")
            )
        return given

    def create_role(self) -> Statement:
        if_not_exists = self.if_not_exists()
        return CreateRole(name=self.identifier("a role name"), if_not_exists=if_not_exists)

    def grant(self, take: bool = False) -> Statement:
        """`GRANT rights ON object TO name`, `GRANT ROLE role TO user`; with *take* the same as
        REVOKE … FROM.
        """
        preposition = "FROM" if take else "TO"
        if take and self.take("TOKENS"):
            self.expect("FROM")
            return RevokeTokens(user=self.identifier("a user name"))
        if self.take("ROLE"):
            role = self.identifier("a role name")
            self.expect(preposition)
            return GrantRole(role=role, grantee=self.identifier("a user name"), take=take)
        rights = self.list_of(lambda: self.one_of(_RIGHTS, "a right"))
        self.take("PRIVILEGES")
        self.expect("ON")
        kind, name = self._object()
        self.expect(preposition)
        if self.word() in ("USER", "ROLE") and not self.sees_type(TokenType.SENTINEL, 1):
            self.index += 1
        return Grant(
            rights=tuple(dict.fromkeys(rights)),
            kind=kind,
            name=name,
            grantee=self.identifier("a user or role name"),
            take=take,
        )

    def revoke(self) -> Statement:
        return self.grant(take=True)

    def _object(self) -> tuple[GrantKind, Name | None]:
        """`*.*`, `[DATABASE] db.*`, `DATABASE db`, `[TABLE] [db.]table`, `STREAM [db.]stream`"""
        start = self.offset
        if self.take_type(TokenType.STAR):
            if self.take_type(TokenType.DOT):
                self.expect_type(TokenType.STAR, '"*"')
            return "all", None
        if self._take_kind("DATABASE"):
            name = self.identifier("a database name")
            if self.take_type(TokenType.DOT):
                self.expect_type(TokenType.STAR, '"*"')
            return "database", Name(name, None, start)
        if self.sees_type(TokenType.DOT, 1) and self.sees_type(TokenType.STAR, 2):
            name = self.identifier("a database name")
            self.index += 2
            return "database", Name(name, None, start)
        if self._take_kind("STREAM"):
            return "stream", self.name("a stream name")
        self._take_kind("TABLE")
        return "table", self.name()

    def _take_kind(self, word: str) -> bool:
        """Take *word* unless it is the name of a database, with a dot behind it."""
        return not self.sees_type(TokenType.DOT, 1) and self.take(word)
