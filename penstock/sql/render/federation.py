"""Text of statements about external streams and materialized views."""

from __future__ import annotations

from penstock.sql import statements as st
from penstock.sql.dialect import to_sql
from penstock.sql.render.parts import column_definitions, name, render, word_if, words
from penstock.sql.words import quote_name, quote_string


def _setting(key: str, value: str) -> str:
    return f"{quote_name(key)} = {value if value in ('true', 'false') else quote_string(value)}"


@render.register
def _(s: st.CreateExternalStream) -> str:
    columns = None if s.columns is None else column_definitions(s.columns)
    settings = ", ".join(_setting(k, v) for k, v in s.settings)
    return words(
        "CREATE EXTERNAL STREAM",
        word_if("IF NOT EXISTS", s.if_not_exists),
        name(s.stream),
        columns,
        "SETTINGS",
        settings,
    )


@render.register
def _(s: st.CreateView) -> str:
    target = None if s.target is None else f"INTO {name(s.target)}"
    on_error = None if s.on_error is None else f"ON_ERROR {s.on_error.upper()}"
    return words(
        "CREATE MATERIALIZED VIEW",
        word_if("IF NOT EXISTS", s.if_not_exists),
        name(s.view),
        target,
        on_error,
        "AS",
        to_sql(s.query),
    )


@render.register
def _(s: st.SteerView) -> str:
    return f"SYSTEM {s.action.upper()} MATERIALIZED VIEW {name(s.view)}"
