"""Times in a query: durations as DuckDB writes them, and times written as text."""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.compile.constants import ticks_of
from penstock.sql.plan import Duration
from penstock.sql.words import TIME_FORMS

#: precision → DuckDB's function that gives the ticks of a time
TICKS = {"ms": "epoch_ms", "us": "epoch_us", "ns": "epoch_ns"}
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


def read_time(text: str, precision: str, timezone: str) -> int:
    """Return the ticks of a time written as text, in *timezone* unless it names its own. Raises
    SqlSemanticError.
    """
    ticks = ticks_of(text, precision, timezone)
    if ticks is None:
        raise SqlSemanticError(
            f"'{text[:80]}' is no time",
            code="E_TYPE",
            hint=TIME_FORMS,
        )
    return ticks


def literal_ticks(node: exp.Expr, precision: str, timezone: str) -> int | None:
    """Return the ticks of a number or a text beside a time, or of `TIMESTAMP 'text'`, which a time
    among the parameters is, too; None for anything else.
    """
    node = _text_of_timestamp(node)
    negative = isinstance(node, exp.Neg)
    literal = node.this if negative else node
    if not isinstance(literal, exp.Literal):
        return None
    text = str(literal.this)
    if literal.is_string:
        return None if negative else ticks_of(text, precision, timezone)
    if not text.isdecimal():
        return None
    return -int(text) if negative else int(text)


def _text_of_timestamp(node: exp.Expr) -> exp.Expr:
    """Return the text of `TIMESTAMP 'text'`, and any other node as it is."""
    if isinstance(node, exp.Cast) and node.args["to"].name == "TIMESTAMP":
        text: exp.Expr = node.this
        if isinstance(text, exp.Literal) and text.is_string:
            return text
    return node
