"""Times in a query: durations as DuckDB writes them, and times written as text."""

from __future__ import annotations

from functools import lru_cache
from typing import NoReturn

import polars as pl
from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.functions.base import CompileScope
from penstock.sql.functions.time import parse_iso
from penstock.sql.plan import Duration

_UNIT = {
    "b": "NANOSECOND",
    "u": "MICROSECOND",
    "a": "MILLISECOND",
    "s": "SECOND",
    "m": "MINUTE",
    "h": "HOUR",
    "d": "DAY",
    "w": "WEEK",
    "n": "MONTH",
    "y": "YEAR",
}


def interval(duration: Duration) -> exp.Expr:
    """Return a duration as DuckDB writes it. Raises SqlSemanticError."""
    if duration.unit == "b":
        raise SqlSemanticError(
            "nanoseconds can't be added in a query",
            hint="use u or longer, or add to the column's number",
        )
    return exp.Interval(
        this=exp.Literal.string(str(duration.value)), unit=exp.var(_UNIT[duration.unit])
    )


@lru_cache(maxsize=1024)
def ticks_of(text: str, precision: str, timezone: str) -> int:
    """Return the ticks of a time written as text, in *timezone* unless it names its own. Raises
    SqlSemanticError.
    """
    scope = CompileScope(precision, timezone, _refuse)
    ticks = pl.select(parse_iso(pl.lit(text), scope)).item()
    if ticks is None:
        _refuse(f"'{text}' is no time")
    return int(ticks)


def _refuse(message: str) -> NoReturn:
    raise SqlSemanticError(
        message, code="E_TYPE", hint="write it as 2024-01-31 12:00:00.000 or as a number of ticks"
    )
