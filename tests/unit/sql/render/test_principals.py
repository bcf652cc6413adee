"""Text of statements about users, roles and their rights."""

from __future__ import annotations

import pytest

from penstock.sql import parse_one
from penstock.sql import statements as st
from penstock.sql.render import principals as family
from penstock.sql.render.parts import render

STATEMENTS: list[tuple[st.Statement, str]] = [
    (st.CreateUser(name="u", password="it's"), r"CREATE USER u PASS 'it\'s'"),
    (
        st.CreateUser(name="a b", password="x", enabled=False, if_not_exists=True),
        "CREATE USER IF NOT EXISTS `a b` PASS 'x' ENABLE 0",
    ),
    (st.AlterUser(name="u", password="x"), "ALTER USER u PASS 'x'"),
    (st.AlterUser(name="u", enabled=True), "ALTER USER u ENABLE 1"),
    (st.AlterUser(name="u", password="x", enabled=False), "ALTER USER u PASS 'x' ENABLE 0"),
    (st.CreateRole(name="r", if_not_exists=True), "CREATE ROLE IF NOT EXISTS r"),
    (
        st.Grant(rights=("READ", "WRITE"), kind="all", name=None, grantee="u"),
        "GRANT READ, WRITE ON *.* TO u",
    ),
    (
        st.Grant(rights=("ALL",), kind="database", name=st.Name("d"), grantee="u", take=True),
        "REVOKE ALL ON DATABASE d FROM u",
    ),
    (
        st.Grant(rights=("READ",), kind="table", name=st.Name("t", "d"), grantee="a b"),
        "GRANT READ ON TABLE d.t TO `a b`",
    ),
    (
        st.Grant(rights=("DROP",), kind="stream", name=st.Name("s"), grantee="u"),
        "GRANT DROP ON STREAM s TO u",
    ),
    (st.GrantRole(role="r", grantee="u"), "GRANT ROLE r TO u"),
    (st.GrantRole(role="r", grantee="u", take=True), "REVOKE ROLE r FROM u"),
    (st.RevokeTokens(user="u"), "REVOKE TOKENS FROM u"),
]


@pytest.mark.parametrize(("statement", "text"), STATEMENTS, ids=[s[1] for s in STATEMENTS])
def test_a_statement_has_one_text_that_is_read_back(statement: st.Statement, text: str) -> None:
    assert render(statement) == text
    assert parse_one(text) == statement


def test_every_statement_about_principals_has_a_case() -> None:
    made = {type(statement) for statement, _ in STATEMENTS}
    own = {k for k, f in render.registry.items() if f.__module__ == family.__name__}
    assert own == made
