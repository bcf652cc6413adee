"""Numbers that are compared with times: as times which compare as the numbers do.

DuckDB has no times of many numbers. One before the first time that a row can have, or behind the
last, becomes a time that no row has on that side.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.compile.leaves import number as number_of
from penstock.sql.functions.duckdb import DuckForm, macro
from penstock.types import TIME_LIMITS
from services.store.arithmetic import call
from services.store.binding import Context
from services.store.casts import MOMENTS, is_constant

#: of 64 bits; DuckDB has no time of the lowest number
_MOST = 2**63 - 1


def compared_time(node: exp.Expr, precision: str, context: Context) -> exp.Expr:
    """Return a number of ticks as a time of *precision*."""
    inner = node.unnest()
    if is_constant(inner) and not isinstance(inner, exp.Boolean):
        return call(MOMENTS[precision], _within(inner, precision))
    return _BY_ROW[precision]([node], context)


def _within(number: exp.Expr, precision: str) -> exp.Expr:
    """Return a number as it is written, unless no time has it."""
    negative = isinstance(number, exp.Neg)
    literal = number.this.unnest() if negative else number
    # free ones are not large: their values are not known here
    value = number_of(str(literal.this), -1 if negative else 1).value
    low, high = TIME_LIMITS[precision]
    if low <= value <= high:
        return exp.Cast(this=number, to=exp.DataType.build("BIGINT"))
    first, last = _outside(precision)
    edge = first if value < low else last
    size = exp.Literal.number(abs(edge))
    return exp.Neg(this=size) if edge < 0 else size


def _outside(precision: str) -> tuple[int, int]:
    """Return the ticks before the first time that a row can have, and behind the last."""
    low, high = TIME_LIMITS[precision]
    return max(low - 1, -_MOST), min(high + 1, _MOST)


def _of_row(precision: str) -> DuckForm:
    low, high = TIME_LIMITS[precision]
    first, last = _outside(precision)
    # a lambda, so that the number is computed once
    known = (
        f"list_transform([t], lambda v: CASE WHEN v < {low} THEN {first} WHEN v > {high} THEN"
        f" {last} ELSE v END)[1]"
    )
    return macro(f"compared_{precision}", f"(t) AS {MOMENTS[precision]}(CAST({known} AS BIGINT))")


_BY_ROW = {precision: _of_row(precision) for precision in TIME_LIMITS}
