"""DuckDB's complaints about a query in the dialect's words, where it stands: of calls that only
DuckDB knows the arguments of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
from sqlglot import exp

from penstock.duck.types import spoken_type
from penstock.errors import SqlSemanticError
from penstock.sql.statements import Query
from services.store.functions import function_name

_NO_FUNCTION = re.compile(
    r"(?:name and argument types|for the function call) ['\"](\w+)\((.*?)\)['\"]"
)
_NO_UNIT = re.compile(r'specifier "(.*?)" not recognized')
_MANY_ROWS = "More than one row returned by a subquery"
_NO_SHARE = re.compile(r"(?i)quantile can only take parameters")


def explain_call(error: duckdb.Error, statement: Query) -> SqlSemanticError | None:
    """Return a better error of a call, or of a subquery that stands for a value; else None."""
    text = str(error).splitlines()[0]
    found = _NO_FUNCTION.search(text)
    if found is not None:
        return _wrong_types(statement, found[1].lower(), found[2])
    found = _NO_UNIT.search(text)
    if found is not None:
        return _wrong_unit(statement, found[1])
    if _MANY_ROWS in text:
        return _many_rows(statement)
    return _wrong_share(statement) if _NO_SHARE.search(text) else None


def _wrong_types(statement: Query, name: str, types: str) -> SqlSemanticError | None:
    call = next(_calls(statement, name), None)
    if call is None:
        return None
    shown = ", ".join(spoken_type(kind.strip()) for kind in types.split(","))
    return statement.error(
        f"{name}() does not take ({shown})",
        call,
        code="E_TYPE",
        hint="convert an argument with CAST(… AS …); docs/sql-functions.md has what it takes",
    )


def _wrong_unit(statement: Query, unit: str) -> SqlSemanticError:
    same = (x for x in statement.query.find_all(exp.Literal) if x.is_string and x.this == unit)
    return statement.error(
        f"'{unit[:64]}' is no unit of time",
        next(same, None),
        code="E_FUNCTION_ARGUMENT",
        hint="units are 'year', 'month', 'week', 'day', 'hour', 'minute', 'second' and their parts",
    )


def _many_rows(statement: Query) -> SqlSemanticError:
    values = [
        query
        for query in statement.query.find_all(exp.Subquery)
        if not isinstance(query.parent, exp.From | exp.Join | exp.Union | exp.Subquery)
    ]
    # with several, nobody knows which it was
    return statement.error(
        "a subquery that stands for a value gives more than one row",
        values[0] if len(values) == 1 else None,
        code="E_QUERY",
        hint="choose one with max(…), last(…) or LIMIT 1, or write IN (SELECT …)",
    )


def _wrong_share(statement: Query) -> SqlSemanticError:
    calls = (c for c in statement.query.find_all(exp.Anonymous) if "quantile" in function_name(c))
    return statement.error(
        "a quantile is a share from 0 to 1",
        next(calls, None),
        code="E_FUNCTION_ARGUMENT",
        hint="percentile(x, 95) takes a percentage",
    )


def _calls(statement: Query, name: str) -> Iterator[exp.Expr]:
    return (c for c in statement.query.find_all(exp.Anonymous) if function_name(c) == name)
