"""How DuckDB computes the functions of a row and the rows before it, and `irate`.

A form gets columns that are computed already: the argument `x` (HUGEINT or DOUBLE, NULL where it
has no value), the row's partition `k`, its time `t` in ticks, and `o`, which orders rows of one
time. It gives a value packed in a STRUCT, and NULL where the function has no row at all: a packed
NULL is a row whose value is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from sqlglot import exp

from penstock.sql.functions.duckdb import (
    PREFIX,
    Arguments,
    DuckForm,
    Macro,
    QueryScope,
    macro,
)
from penstock.sql.functions.macros import FINITE, finite
from penstock.sql.plan import TICKS_PER_SECOND

_PARTITION = "PARTITION BY k ORDER BY t, o"
_OVER = f"OVER ({_PARTITION})"
_SO_FAR = f"OVER ({_PARTITION} ROWS UNBOUNDED PRECEDING)"
#: among the rows that have a value
_OF_VALUES = "PARTITION BY k, x IS NULL ORDER BY t, o"
_BEFORE = f"lag(x IGNORE NULLS) {_OVER}"
_WHOLE_STEP = f"try_cast(x - {_BEFORE} AS BIGINT)"
_STEP = f"{finite}(x - {_BEFORE})"

#: `y` unless it is below 0
_NOT_NEGATIVE = Macro(
    f"{PREFIX}not_negative",
    ("(y) AS list_transform([y], lambda v: CASE WHEN v >= 0 THEN v END)[1]",),
)
#: a row where `y` is a value
_WHERE_KNOWN = Macro(
    f"{PREFIX}where_known",
    (
        "(y) AS list_transform([y], lambda w: CASE WHEN w IS NOT NULL"
        " THEN struct_pack(v := w) END)[1]",
    ),
)

_COMPARISONS: dict[str, type[exp.Binary]] = {
    "LT": exp.LT,
    "GT": exp.GT,
    "LE": exp.LTE,
    "GE": exp.GTE,
    "EQ": exp.EQ,
    "NE": exp.NEQ,
}
OPERATORS = tuple(_COMPARISONS)


class SeriesRow(Protocol):
    """The columns of a row that a form may name, and a place for one that it needs besides."""

    @property
    def scope(self) -> QueryScope: ...
    @property
    def value(self) -> exp.Expr: ...
    @property
    def partition(self) -> exp.Expr: ...
    @property
    def time(self) -> exp.Expr: ...
    @property
    def order(self) -> exp.Expr: ...
    def before(self, value: exp.Expr) -> exp.Expr:
        """Return a column that is computed from the row's columns before the function is."""


Options: TypeAlias = Sequence[Any]
#: makes the packed value from a row and the constants of a call
SeriesForm: TypeAlias = Callable[[SeriesRow, Options], exp.Expr]

_unpack = macro("series_value", "(s) AS struct_extract(s, 'v')")


def unpack(packed: exp.Expr, scope: QueryScope) -> exp.Expr:
    """Return the value of a packed one."""
    return _unpack([packed], scope)


def _call(form: DuckForm, row: SeriesRow, *more: int) -> exp.Expr:
    numbers = [exp.Literal.number(number) for number in more]
    return form([row.value, row.partition, row.time, row.order, *numbers], row.scope)


# ---------------------------------------------------------------- diff, derivative


def _diff(name: str, *, positive: bool, known: bool) -> DuckForm:
    """Return the form of diff.

    Args:
        name: of the macro.
        positive: a difference below 0 is NULL.
        known: where the difference is NULL there is no row.
    """

    def write(step: str) -> str:
        value = f"{_NOT_NEGATIVE.name}({step})" if positive else step
        if known:
            return f"{_WHERE_KNOWN.name}({value})"
        return f"CASE WHEN row_number() {_OVER} > 1 THEN struct_pack(v := {value}) END"

    return macro(
        name,
        f"(x HUGEINT, k, t, o) AS {write(_WHOLE_STEP)}",
        f"(x DOUBLE, k, t, o) AS {write(_STEP)}",
        calls=(FINITE, _NOT_NEGATIVE, _WHERE_KNOWN),
    )


#: by what is ignored: 1 differences below 0, 2 NULL, 3 both
_DIFFS = (
    _diff("diff", positive=False, known=False),
    _diff("diff_positive", positive=True, known=False),
    _diff("diff_known", positive=False, known=True),
    _diff("diff_positive_known", positive=True, known=True),
)


def diff(row: SeriesRow, options: Options) -> exp.Expr:
    """Write diff; its option says what is ignored."""
    return _call(_DIFFS[options[0]], row)


def _derivative(name: str, unless: str) -> DuckForm:
    """Return the form of derivative; `unless` takes rows out, by the step `p.d` and the time that
    it took, `p.g`.
    """
    times = f"lag(CASE WHEN x IS NOT NULL THEN t END IGNORE NULLS) {_OVER}"
    rate = "p.d * u / nullif(p.g, 0)"

    def write(step: str) -> str:
        gap = f"CAST(CAST(t AS HUGEINT) - {times} AS DOUBLE)"
        return (
            f"list_transform([struct_pack(d := CAST({step} AS DOUBLE), g := {gap})], lambda p:"
            f" CASE WHEN p.d IS NOT NULL{unless} THEN struct_pack(v :="
            f" CASE WHEN isfinite({rate}) THEN {rate} END) END)[1]"
        )

    body = write(f"x - {_BEFORE}")
    return macro(name, *(f"(x {kind}, k, t, o, u) AS {body}" for kind in ("HUGEINT", "DOUBLE")))


#: by whether rates below 0 are ignored
_DERIVATIVES = (
    _derivative("derivative", ""),
    _derivative("derivative_positive", " AND NOT (p.d < 0 AND p.g <> 0)"),
)


def derivative(row: SeriesRow, options: Options) -> exp.Expr:
    """Write derivative, from the ticks of its unit and whether rates below 0 are ignored."""
    unit, ignore_negative = options
    return _call(_DERIVATIVES[ignore_negative], row, unit)


# ---------------------------------------------------------------- sums, means


_SUM_SHAPE = "CASE WHEN x IS NOT NULL THEN struct_pack(v := {}) END"
#: of whole numbers it is a HUGEINT, which whoever reads it fits into the type of the call
_SUM = macro(
    "csum",
    f"(x HUGEINT, k, t, o) AS {_SUM_SHAPE.format(f'sum(x) {_SO_FAR}')}",
    f"(x DOUBLE, k, t, o) AS {_SUM_SHAPE.format(f'{finite}(sum(x) {_SO_FAR})')}",
    calls=(FINITE,),
)


def running_sum(row: SeriesRow, options: Options) -> exp.Expr:
    """Write csum: the sum of all values so far."""
    return _call(_SUM, row)


_MEAN = macro(
    "mavg",
    *(
        f"(x {kind}, k, t, o, n) AS CASE WHEN x IS NOT NULL"
        f" AND row_number() OVER ({_OF_VALUES}) > n THEN struct_pack(v := {finite}(avg(x)"
        f" OVER ({_OF_VALUES} ROWS BETWEEN n PRECEDING AND CURRENT ROW))) END"
        for kind in ("HUGEINT", "DOUBLE")
    ),
    calls=(FINITE,),
)


def moving_mean(row: SeriesRow, options: Options) -> exp.Expr:
    """Write mavg, of as many values as its option says."""
    return _call(_MEAN, row, options[0] - 1)


# ---------------------------------------------------------------- states

#: rows of one run have the number of rows before that were not in the state
_RUN = macro("state_run", f"(c, k, t, o) AS count(CASE WHEN NOT c THEN 1 END) {_SO_FAR}")
_STATE = "struct_pack(v := CASE WHEN c THEN {} WHEN NOT c THEN CAST(-1 AS BIGINT) END)"
_COUNT = macro(
    "state_count",
    "(c, k, t, o, r) AS "
    + _STATE.format(
        "count(CASE WHEN c THEN 1 END)"
        " OVER (PARTITION BY k, r ORDER BY t, o ROWS UNBOUNDED PRECEDING)"
    ),
)
_DURATION = macro(
    "state_duration",
    "(c, k, t, r, u) AS "
    + _STATE.format(
        "try_cast((CAST(t AS HUGEINT) - min(CASE WHEN c THEN t END) OVER (PARTITION BY k, r))"
        " // u AS BIGINT)"
    ),
)


def _state(row: SeriesRow, operator: str, value: float) -> tuple[exp.Expr, exp.Expr]:
    """Return whether a row is in the state, and the number of its run."""
    number: exp.Expr = exp.Literal.number(abs(value))
    if value < 0:
        number = exp.Neg(this=number)
    test = exp.Paren(this=_COMPARISONS[operator](this=row.value, expression=number))
    run = _RUN([test, row.partition, row.time, row.order], row.scope)
    return test.copy(), row.before(run)


def state_count(row: SeriesRow, options: Options) -> exp.Expr:
    """Write statecount: rows of the run so far."""
    test, run = _state(row, *options)
    return _COUNT([test, row.partition, row.time, row.order, run], row.scope)


def state_duration(row: SeriesRow, options: Options) -> exp.Expr:
    """Write stateduration: time since the run began, in its unit."""
    operator, value, unit = options
    test, run = _state(row, operator, value)
    ticks = exp.Literal.number(unit)
    return _DURATION([test, row.partition, row.time, run, ticks], row.scope)


# ---------------------------------------------------------------- irate

#: of the last two values `l[2]` and `l[1]`; a counter that fell began anew at 0
_RATE = (
    "list_transform([max(CASE WHEN NOT isnan(CAST(x AS DOUBLE))"
    " THEN struct_pack(t := t, v := CAST(x AS DOUBLE)) END, 2)],"
    " lambda l: CASE WHEN len(l) = 1 THEN CAST(0 AS DOUBLE) WHEN len(l) = 2 THEN"
    " CASE WHEN l[1].v >= l[2].v THEN l[1].v - l[2].v ELSE l[1].v END * u"
    " / nullif(CAST(CAST(l[1].t AS HUGEINT) - l[2].t AS DOUBLE), 0) END)[1]"
)
_IRATE = macro("irate", f"(x, t, u) AS {finite}({_RATE})", calls=(FINITE,))


def irate(args: Arguments, scope: QueryScope) -> exp.Expr:
    """Write irate of a value and the ticks of its row, which the binder has added."""
    value, ticks = args
    return _IRATE([value, ticks, exp.Literal.number(TICKS_PER_SECOND[scope.precision])], scope)
