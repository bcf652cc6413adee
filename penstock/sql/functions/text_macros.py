"""Text functions as macros of DuckDB's."""

from __future__ import annotations

from penstock.sql.functions.base import MAX_TEXT
from penstock.sql.functions.duckdb import macro

LENGTH = macro("length", "(x VARCHAR) AS strlen(x)", "(x BLOB) AS octet_length(x)")
POSITION = macro("position", "(what, x) AS strpos(x, what)")
#: parts from the front, and from the end where the text is as long
_PART = (
    "list_transform([{{'t': x, 'p': CAST(p AS BIGINT), 'n': {n}}}], lambda v: CASE"
    " WHEN v.t IS NULL OR v.p IS NULL OR v.n IS NULL THEN NULL"
    " WHEN v.p > 0 THEN substring(v.t, v.p, v.n)"
    " WHEN v.p < 0 AND length(v.t) + v.p >= 0 THEN substring(v.t, length(v.t) + v.p + 1, v.n)"
    " ELSE '' END)[1]"
)
SUBSTR = macro(
    "substr",
    f"(x, p) AS {_PART.format(n=MAX_TEXT)}",
    f"(x, p, n) AS {_PART.format(n='CASE WHEN n < 0 THEN 0 ELSE CAST(n AS BIGINT) END')}",
)
