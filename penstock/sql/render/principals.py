"""Text of statements about users, roles and their rights."""

from __future__ import annotations

from penstock.sql import statements as st
from penstock.sql.render.parts import flag, name, render, word_if, words
from penstock.sql.words import quote_name, quote_string


@render.register
def _(s: st.CreateUser) -> str:
    head = words(
        "CREATE USER",
        word_if("IF NOT EXISTS", s.if_not_exists),
        quote_name(s.name),
        "PASS",
        quote_string(s.password),
    )
    return words(head, word_if("ENABLE 0", not s.enabled))


@render.register
def _(s: st.AlterUser) -> str:
    password = None if s.password is None else f"PASS {quote_string(s.password)}"
    return words("ALTER USER", quote_name(s.name), password, flag("ENABLE", s.enabled))


@render.register
def _(s: st.CreateRole) -> str:
    return words("CREATE ROLE", word_if("IF NOT EXISTS", s.if_not_exists), quote_name(s.name))


def _grant(take: bool, what: str, grantee: str) -> str:
    return (
        f"{'REVOKE' if take else 'GRANT'} {what} {'FROM' if take else 'TO'} {quote_name(grantee)}"
    )


@render.register
def _(s: st.Grant) -> str:
    place = "*.*" if s.name is None else f"{s.kind.upper()} {name(s.name)}"
    return _grant(s.take, f"{', '.join(s.rights)} ON {place}", s.grantee)


@render.register
def _(s: st.GrantRole) -> str:
    return _grant(s.take, f"ROLE {quote_name(s.role)}", s.grantee)


@render.register
def _(s: st.RevokeTokens) -> str:
    return f"REVOKE TOKENS FROM {quote_name(s.user)}"
