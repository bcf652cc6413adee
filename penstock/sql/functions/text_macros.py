"""Text functions as macros of DuckDB's."""

from __future__ import annotations

from penstock.sql.functions.base import MAX_TEXT
from penstock.sql.functions.duckdb import macro

LENGTH = macro("length", "(x VARCHAR) AS strlen(x)", "(x BLOB) AS octet_length(x)")
POSITION = macro("position", "(what, x) AS strpos(x, what)")
#: parts from the front, and from the end where the text is as long
_PART = (
    "list_transform([{{'t': x, 'p': CAST(p AS BIGINT), 'n': {n}}}], lambda it: CASE"
    " WHEN it['t'] IS NULL OR it['p'] IS NULL OR it['n'] IS NULL THEN NULL"
    " WHEN it['p'] > 0 THEN substring(it['t'], it['p'], it['n'])"
    " WHEN it['p'] < 0 AND length(it['t']) + it['p'] >= 0"
    " THEN substring(it['t'], length(it['t']) + it['p'] + 1, it['n'])"
    " ELSE '' END)[1]"
)
SUBSTR = macro(
    "substr",
    f"(x, p) AS {_PART.format(n=MAX_TEXT)}",
    f"(x, p, n) AS {_PART.format(n='CASE WHEN n < 0 THEN 0 ELSE CAST(n AS BIGINT) END')}",
)
