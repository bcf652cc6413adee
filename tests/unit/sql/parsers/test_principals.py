"""Users, roles and grants."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql.parsers.principals import PrincipalParser
from penstock.sql.statements import (
    AlterUser,
    CreateRole,
    CreateUser,
    Grant,
    GrantRole,
    Name,
    RevokeTokens,
)
from tests.unit.sql.reading import read, reader, refusal, refused


def rule(name: str, text: str) -> Any:
    return read(PrincipalParser, text, lambda p: getattr(p, name)())


USERS: list[tuple[str, str, Any]] = [
    ("create_user", "u PASS 'x'", CreateUser(name="u", password="x")),
    (
        "create_user",
        "IF NOT EXISTS u ENABLE 0 PASSWORD 'x'",
        CreateUser(name="u", password="x", enabled=False, if_not_exists=True),
    ),
    ("alter_user", "u PASS 'y'", AlterUser(name="u", password="y")),
    ("alter_user", "u ENABLE 1", AlterUser(name="u", enabled=True)),
    ("create_role", "r", CreateRole(name="r")),
    ("create_role", "IF NOT EXISTS `a b`", CreateRole(name="a b", if_not_exists=True)),
]


@pytest.mark.parametrize(("name", "text", "wanted"), USERS, ids=[u[1] for u in USERS])
def test_users_and_roles(name: str, text: str, wanted: Any) -> None:
    assert rule(name, text) == wanted


def test_what_another_system_lets_users_do_is_ignored_with_a_notice() -> None:
    parser = reader(PrincipalParser, "u PASS 'x' SYSINFO 0 CREATEDB 1")
    assert parser.create_user() == CreateUser(name="u", password="x")
    assert [n.split()[0] for n in parser.notices] == ["SYSINFO", "CREATEDB"]
    assert "grant rights instead" in parser.notices[0]


D = Name("d")
GRANTS: list[tuple[str, Grant]] = [
    ("READ ON *.* TO u", Grant(rights=("READ",), kind="all", name=None, grantee="u")),
    ("all PRIVILEGES ON * TO u", Grant(rights=("ALL",), kind="all", name=None, grantee="u")),
    (
        "READ, WRITE, READ ON d.* TO u",
        Grant(rights=("READ", "WRITE"), kind="database", name=D, grantee="u"),
    ),
    ("READ ON DATABASE d TO u", Grant(rights=("READ",), kind="database", name=D, grantee="u")),
    ("READ ON DATABASE d.* TO u", Grant(rights=("READ",), kind="database", name=D, grantee="u")),
    (
        "READ ON d.t TO USER u",
        Grant(rights=("READ",), kind="table", name=Name("t", "d"), grantee="u"),
    ),
    (
        "READ ON TABLE t TO ROLE r",
        Grant(rights=("READ",), kind="table", name=Name("t"), grantee="r"),
    ),
    (
        "DROP ON STREAM d.s TO user",
        Grant(rights=("DROP",), kind="stream", name=Name("s", "d"), grantee="user"),
    ),
    (
        "READ ON `stream`.t TO u",
        Grant(rights=("READ",), kind="table", name=Name("t", "stream"), grantee="u"),
    ),
    (
        "READ ON stream.t TO u",
        Grant(rights=("READ",), kind="table", name=Name("t", "stream"), grantee="u"),
    ),
]


@pytest.mark.parametrize(("text", "wanted"), GRANTS, ids=[g[0] for g in GRANTS])
def test_rights_on_an_object(text: str, wanted: Grant) -> None:
    assert rule("grant", text) == wanted
    taken = rule("revoke", text.replace(" TO ", " FROM "))
    assert taken == Grant(
        rights=wanted.rights, kind=wanted.kind, name=wanted.name, grantee=wanted.grantee, take=True
    )


def test_roles_and_tokens() -> None:
    assert rule("grant", "ROLE r TO u") == GrantRole(role="r", grantee="u")
    assert rule("revoke", "ROLE r FROM u") == GrantRole(role="r", grantee="u", take=True)
    assert rule("revoke", "TOKENS FROM u") == RevokeTokens(user="u")


@pytest.mark.parametrize(
    ("name", "text", "code", "column", "message"),
    [
        ("create_user", "u", "E_SYNTAX", 2, "expected PASS, but the statement ends"),
        ("create_user", "u PASS x", "E_SYNTAX", 8, "expected the password as a string"),
        ("create_user", "u PASS 'x' PASS 'y'", "E_OPTION_TWICE", 12, "PASS is given twice"),
        ("create_user", "u PASS 'x' PASSWORD 'y'", "E_OPTION_TWICE", 12, "PASSWORD is given twice"),
        ("alter_user", "u", "E_SYNTAX", 2, "expected PASS or ENABLE, but the statement ends"),
        ("alter_user", "u ENABLE 2", "E_SYNTAX", 10, "expected 0 or 1"),
        ("grant", "SEE ON t TO u", "E_SYNTAX", 1, "expected a right, found SEE"),
        ("grant", "READ ON t FROM u", "E_SYNTAX", 11, "expected TO, found FROM"),
        ("grant", "TOKENS TO u", "E_SYNTAX", 1, "expected a right, found TOKENS"),
        ("revoke", "READ ON t TO u", "E_SYNTAX", 11, "expected FROM, found TO"),
        ("grant", "READ ON *.t TO u", "E_SYNTAX", 11, 'expected "*", found t'),
    ],
)
def test_a_fault_is_refused_at_its_place(
    name: str, text: str, code: str, column: int, message: str
) -> None:
    found = refused(lambda: rule(name, text))
    assert found[:3] == (code, 1, column)
    assert found[3].startswith(message)


def test_user_may_be_somebodys_name() -> None:
    assert rule("grant", "READ ON t TO USER").grantee == "USER"


def test_an_error_shows_no_password() -> None:
    error = refusal(
        lambda: read(PrincipalParser, "CREATE USER u PASS 'secret' x", _create_after_two_words)
    )
    assert "secret" not in str(error)


def _create_after_two_words(parser: PrincipalParser) -> object:
    parser.expect("CREATE", "USER")
    return parser.create_user()
