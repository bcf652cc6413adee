"""What aggregates and windows of other systems are here: hints where a function is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_DISTINCT = "hyperloglog(x)"
_MEDIAN = "apercentile(x, 50)"
_QUANTILE = "apercentile(x, p), p from 0 to 100"
_EVERY = "min(CASE WHEN condition THEN 1 ELSE 0 END)"
_ANY = "max(CASE WHEN condition THEN 1 ELSE 0 END)"

#: name elsewhere → the call that gives the same, or is nearest to it, in streams and in SELECT
_HERE = {
    **dict.fromkeys(("mean", "average", "favg"), "avg(x)"),
    **dict.fromkeys(("total", "fsum", "kahan_sum", "sumkahan"), "sum(x)"),
    "maximum": "max(x)",
    "minimum": "min(x)",
    "range": "spread(x)",
    **dict.fromkeys(("any_value", "arbitrary", "first_value", "earliest"), "first(x)"),
    **dict.fromkeys(("last_value", "latest", "anylast"), "last(x)"),
    **dict.fromkeys(("stdev", "stddevsamp", "std_dev"), "stddev_samp(x)"),
    **dict.fromkeys(("stdevp", "stddevpop", "stdev_pop"), "stddev_pop(x)"),
    **dict.fromkeys(("var", "varsamp", "variance_samp"), "var_samp(x)"),
    **dict.fromkeys(("varp", "varpop", "variance_pop"), "var_pop(x)"),
    "median": _MEDIAN,
    **dict.fromkeys(
        (
            "quantile",
            "quantile_cont",
            "quantile_disc",
            "percentile_cont",
            "percentile_disc",
            "approx_quantile",
            "approx_percentile",
            "percentile_approx",
        ),
        _QUANTILE,
    ),
    **dict.fromkeys(
        (
            "approx_count_distinct",
            "approx_distinct",
            "count_distinct",
            "countdistinct",
            "uniq",
            "uniqexact",
            "ndv",
        ),
        _DISTINCT,
    ),
    **dict.fromkeys(("count_if", "countif"), "sum(CASE WHEN condition THEN 1 ELSE 0 END)"),
    **dict.fromkeys(("sum_if", "sumif"), "sum(CASE WHEN condition THEN x ELSE 0 END)"),
    **dict.fromkeys(("avg_if", "avgif"), "avg(CASE WHEN condition THEN x END)"),
    **dict.fromkeys(("bool_and", "every", "logical_and"), _EVERY),
    **dict.fromkeys(("bool_or", "logical_or"), _ANY),
}
#: windows that are functions elsewhere
_WINDOWS = ("time", "tumble", "tumble_start", "tumble_end", "hop", "hop_start", "hop_end")
_CLAUSE = "a window is a clause of its own: FROM … INTERVAL(5m), and _wstart is where it begins"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the hint for a function that is not known: what other systems mean by *name*, else the
    nearest of the *known* names; "" without one.
    """
    if name.lower() in _WINDOWS:
        return _CLAUSE
    here = _HERE.get(name.lower())
    if here is not None:
        return f"did you mean {here}?"
    near = difflib.get_close_matches(name.lower(), list(known), 1)
    return f"did you mean {near[0]}()?" if near else ""
