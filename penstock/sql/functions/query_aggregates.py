"""Aggregates that a SELECT has and a stream has not, as DuckDB computes them. NULL and NaN are
skipped, as in all aggregates.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.sql.functions import duck_aggregates as duck
from penstock.sql.functions.aggregate import FORBIDDEN
from penstock.sql.functions.base import DOUBLE, Compiled
from penstock.sql.functions.bins import bin_edges
from penstock.sql.functions.duck_series import irate
from penstock.sql.functions.duckdb import Arguments, DuckForm, QueryScope, macro
from penstock.sql.functions.macros import FINITE, finite
from penstock.sql.functions.query_function import QueryAggregate
from penstock.sql.plan import TICKS_PER_SECOND
from penstock.types import ColumnType

_NANOS = 1_000_000_000
#: units that elapsed() counts in
_UNITS = ("1b", "1u", "1a", "1s", "1m", "1h", "1d", "1w")
_MOST_PERCENTILES = 10
_KNOWN = "FILTER (WHERE x IS NOT NULL AND NOT isnan(CAST(x AS DOUBLE)))"
_SEVERAL = (
    "twa() needs one value at a time, and there are several: add PARTITION BY tbname, or take the"
    " avg() of each time in a subquery"
)
#: areas between neighbours, over the time from the first to the last
_TWA = (
    "list_transform([list({'t': CAST(ts AS HUGEINT), 'v': CAST(x AS DOUBLE)} ORDER BY ts)"
    f" {_KNOWN}], lambda l: CASE WHEN len(l) = 1 THEN l[1].v ELSE"
    " list_sum(list_transform(list_zip(l, l[2:], true), lambda z:"
    f" CASE WHEN z[1].t = z[2].t THEN error('{_SEVERAL}')"
    " ELSE (z[1].v / 2 + z[2].v / 2) * (z[2].t - z[1].t) END))"
    " / CAST(l[-1].t - l[1].t AS DOUBLE) END)[1]"
)
#: `a`: the slope by place, from sums of values and of values times places
_SLOPE = (
    "list_transform([list(CAST(x AS DOUBLE) ORDER BY ts, x)"
    f" {_KNOWN}], lambda l: list_transform([{{'n': CAST(len(l) AS DOUBLE), 'y': list_sum(l),"
    " 'xy': list_sum(list_transform(l, lambda v, i: v * (i - 1)))}], lambda q:"
    " {'a': (q.xy - (q.n - 1) / 2 * q.y) / (q.n * (q.n * q.n - 1) / 12) / step,"
    " 'n': q.n, 'y': q.y})[1])"
)
_LINE = (
    f"list_transform({_SLOPE}, lambda r:"
    " list_transform([r.y / r.n - r.a * (begin + step * (r.n - 1) / 2)], lambda b:"
    " CASE WHEN isfinite(r.a) AND isfinite(b)"
    " THEN printf('{slop:%.6f, intercept:%.6f}', r.a, b) END)[1])[1]"
)
_BIN = """printf('{"lower_bin":%g, "upper_bin":%g, "count":@}', q.e[i], q.e[i + 1], ~)"""
_COUNTS = (
    "unnest(list_transform([{'m': histogram(CAST(x AS DOUBLE), CAST(edges AS DOUBLE[]))"
    f" {_KNOWN}, 'e': CAST(edges AS DOUBLE[])}}], lambda q: list_transform(range(1, len(q.e)),"
    f" lambda i: {_BIN}))[1])"
)
_COUNT = "coalesce(q.m[q.e[i + 1]], 0)"
_WITHIN = "list_sum(list_transform(q.e[2:], lambda e: q.m[e]))"
_PERCENTILES = (
    "'[' || array_to_string(list_transform(quantile_cont(@, CAST(shares AS DOUBLE[])), lambda v:"
    " CASE WHEN isfinite(v) THEN printf('%.6f', v) ELSE 'null' END), ', ') || ']'"
)

_twa = macro("twa", f"(x, ts) AS {finite}({_TWA})", calls=(FINITE,))
_leastsquares = macro("leastsquares", f"(x, begin, step, ts) AS {_LINE}")
_mode = macro("mode", f"(x) AS mode({duck.KNOWN} ORDER BY {duck.KNOWN})", calls=(duck.NAN,))
_elapsed = macro(
    "elapsed",
    "(t, unit) AS CAST(CAST(max(t) AS HUGEINT) - CAST(min(t) AS HUGEINT) AS DOUBLE) / unit",
)
_counts = macro("bins", f"(x, edges) AS {_COUNTS.replace('@', '%d').replace('~', _COUNT)}")
_shares = macro(
    "bin_shares",
    "(x, edges) AS "
    + _COUNTS.replace("@", "%.6f").replace("~", f"coalesce({_COUNT} / {_WITHIN}, 0.0)"),
)
_one_percentile = duck.share("percentile", "quantile_cont")
_of_all = macro(
    "percentiles",
    f"(x BOOLEAN, shares) AS {_PERCENTILES.replace('@', 'CAST(x AS DOUBLE)')}",
    f"(x DOUBLE, shares) AS {_PERCENTILES.replace('@', 'CASE WHEN NOT isnan(x) THEN x END')}",
)
_of_different = macro(
    "distinct_percentiles",
    f"(x BOOLEAN, shares) AS {_PERCENTILES.replace('@', 'DISTINCT CAST(x AS DOUBLE)')}",
    "(x DOUBLE, shares) AS "
    + _PERCENTILES.replace("@", "DISTINCT CASE WHEN NOT isnan(x) THEN x END"),
)


def _percentile(args: Arguments, scope: QueryScope) -> exp.Expr:
    """Write one percentile as a number, several as a JSON array."""
    values = duck.values_of(args)
    if len(values) == 2:
        return _one_percentile(args, scope)
    shares = ", ".join(str(float(part.this) / 100) for part in values[1:])
    form = _of_different if isinstance(args[0], exp.Distinct) else _of_all
    return form([values[0], exp.Literal.string(f"[{shares}]")], scope)


def _write_elapsed(args: Arguments, scope: QueryScope) -> exp.Expr:
    return _elapsed([args[0], args[1] if len(args) > 1 else exp.Literal.number(1)], scope)


def _histogram(args: Arguments, scope: QueryScope) -> exp.Expr:
    """Write a histogram with its edges, which DuckDB reads as a list of DOUBLE."""
    edges = ", ".join(map(repr, bin_edges(args[1].this, args[2].this)))
    form = _shares if str(args[3].this) == "1" else _counts
    return form([args[0], exp.Literal.string(f"[{edges}]")], scope)


# ---------------------------------------------------------------- constants


def _check_percentages(constants: Sequence[Compiled], precision: str) -> str:
    fit = all(_is_number(c.value) and 0 <= c.value <= 100 for c in constants)
    return "" if fit else "percentages are numbers from 0 to 100, written as constants"


def _check_unit(constants: Sequence[Compiled], precision: str) -> str:
    for constant in constants:
        unit = constant.duration
        if unit is None or str(unit) not in _UNITS:
            return f"the unit is one of {' '.join(_UNITS)}"
        # of a whole unit, so that a unit below a tick is found
        if unit.value * _nanos(str(unit)) < _NANOS // TICKS_PER_SECOND[precision]:
            return f"the unit {unit} is finer than the database's precision {precision}"
    return ""


def _nanos(unit: str) -> int:
    """Return the length of a unit up to a second in nanoseconds; longer ones are long enough."""
    return {"1b": 1, "1u": 1_000, "1a": 1_000_000}.get(unit, _NANOS)


def _check_line(constants: Sequence[Compiled], precision: str) -> str:
    if not all(_is_number(c.value) for c in constants):
        return "the start and the step are numbers, written as constants"
    return "" if constants[1].value else "the step must not be 0"


def _check_bins(constants: Sequence[Compiled], precision: str) -> str:
    kind, text, normalized = (c.value for c in constants)
    if normalized not in (0, 1) or isinstance(normalized, bool | float):
        return "the last argument is 1 for shares of 1, or 0 for counts"
    try:
        bin_edges(kind, text)
    except ValueError as error:
        return str(error)
    return ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# ---------------------------------------------------------------- result types


def _real(kind: ColumnType, count: int) -> ColumnType:
    return DOUBLE


def _line(kind: ColumnType, count: int) -> ColumnType:
    return ColumnType("VARCHAR", length=128)


def _percentile_type(kind: ColumnType, count: int) -> ColumnType:
    return DOUBLE if count == 2 else ColumnType("VARCHAR", length=4096)


def _aggregate(
    name: str, signature: str, doc: str, form: DuckForm, counts: tuple[int, int], **more: object
) -> QueryAggregate:
    least, at_most = counts
    return QueryAggregate(
        name,
        signature,
        doc,
        form,
        FORBIDDEN[name][0],
        least=least,
        at_most=at_most,
        **more,  # type: ignore[arg-type]
    )


#: by name
QUERY_AGGREGATES: dict[str, QueryAggregate] = {
    function.name: function
    for function in (
        _aggregate(
            "twa",
            "twa(number)",
            "Mean weighted by time: the area under straight lines between neighbours in time,"
            " divided by the time from the first to the last.",
            _twa,
            (1, 1),
            kinds=("number", "spread"),
            returns=_real,
            timed=True,
        ),
        _aggregate(
            "irate",
            "irate(number)",
            "Change in a second between the last two values, in the order of time. Where the last"
            " is lower, as of a counter that began anew, it counts from 0. Of one value it is 0,"
            " and NULL where both are of one time.",
            irate,
            (1, 1),
            kinds=("number", "spread"),
            returns=_real,
            timed=True,
        ),
        _aggregate(
            "elapsed",
            "elapsed(ts, [unit])",
            "Time from the first to the last row, in units of `1b` to `1w` (ticks without one).",
            _write_elapsed,
            (1, 2),
            kinds=("time",),
            returns=_real,
            check=_check_unit,
        ),
        _aggregate(
            "mode",
            "mode(any)",
            "The most frequent value; of equally frequent ones the smallest.",
            _mode,
            (1, 1),
        ),
        _aggregate(
            "percentile",
            "percentile(number, p, …)",
            "Percentile p (0 to 100), exact: between two values in proportion. Of up to ten"
            " percentages, a JSON array as text.",
            _percentile,
            (2, 1 + _MOST_PERCENTILES),
            kinds=("number",),
            returns=_percentile_type,
            check=_check_percentages,
            of_different=True,
        ),
        _aggregate(
            "leastsquares",
            "leastsquares(number, start, step)",
            "The line nearest to the values in order of time, as text: `{slop:…, intercept:…}`. The"
            " first value stands at start, each further one a step behind.",
            _leastsquares,
            (3, 3),
            kinds=("number", "number", "number", "spread"),
            returns=_line,
            check=_check_line,
            timed=True,
        ),
        _aggregate(
            "histogram",
            "histogram(number, bins, description, normalized)",
            "A row for each bin with the number of values in it (above the lower edge, up to the"
            " upper one), or with their share if normalized is 1. Bins are `'user_input'`"
            ' (`\'[1, 3, 5]\'`), `\'linear_bin\'` (`\'{"start": 0, "width": 5, "count": 5,'
            " \"infinity\": true}'`) or `'log_bin'` (with `factor` for `width`); with infinity"
            " there is one more at each end.",
            _histogram,
            (4, 4),
            kinds=("number",),
            returns=_line,
            check=_check_bins,
            many_rows=True,
        ),
    )
}
