"""Aggregates and selection functions: names, arguments and result types. How they are computed is
`penstock.windows`' business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.sql.functions import duck_aggregates as duck
from penstock.sql.functions.base import BIGINT, DOUBLE
from penstock.sql.functions.duckdb import DuckForm
from penstock.sql.functions.exact import decimal_sum
from penstock.types import ColumnType

#: refused under their TDengine names: what each would need, and what to write instead
FORBIDDEN = {
    "leastsquares": (
        "it fits a line over all rows",
        "keep count, sum(x), sum(x*x) per window and fit in a SELECT over the result table",
    ),
    "percentile": (
        "an exact percentile needs every row of the window again",
        "apercentile(x, p) is approximate and streams",
    ),
    "top": (
        "it gives several rows per window",
        "max(x), or SELECT top(x, k) over the source table",
    ),
    "bottom": (
        "it gives several rows per window",
        "min(x), or SELECT bottom(x, k) over the source table",
    ),
    "elapsed": ("it depends on the neighbouring windows", "last(ts) - first(ts), or spread(ts)"),
    "interp": ("it makes rows up where there are none", "INTERVAL(…) FILL(LINEAR)"),
    "derivative": (
        "it gives a row per source row",
        "(last(x) - first(x)) / timediff(last(ts), first(ts), 1s)",
    ),
    "irate": (
        "it depends on the last two rows only",
        "(last(x) - first(x)) / timediff(last(ts), first(ts), 1s)",
    ),
    "twa": ("it needs the rows beside the window", "avg(x) over a window with equal steps"),
    "histogram": (
        "it gives several rows per window",
        "sum(CASE WHEN x < 10 THEN 1 ELSE 0 END) per bin",
    ),
    "diff": ("it gives a row per source row", "last(x) - first(x), or spread(x)"),
    "statecount": ("it gives a row per source row", "STATE_WINDOW(…) with count(*)"),
    "stateduration": ("it gives a row per source row", "STATE_WINDOW(…) with _wduration"),
    "csum": ("it gives a row per source row", "sum(x) per window"),
    "mavg": (
        "it gives a row per source row",
        "avg(x) with INTERVAL(…) SLIDING(…) or COUNT_WINDOW(n, 1)",
    ),
    "sample": ("its result is random, so a replay would differ", "first(x) or last(x)"),
    "tail": ("it gives several rows per window", "last(x), or SELECT over the source table"),
    "unique": (
        "it gives several rows per window",
        "hyperloglog(x) counts distinct values; PARTITION BY x gives a row each",
    ),
    "mode": ("it must keep every distinct value", "PARTITION BY x with count(*)"),
}

#: functions of TDengine whose result differs from one call to the next
RANDOM = frozenset({"rand"})


def _sum(kind: ColumnType) -> ColumnType:
    if kind.integer:
        return ColumnType("BIGINT UNSIGNED") if "UNSIGNED" in kind.kind else BIGINT
    return BIGINT if kind.kind == "BOOL" else decimal_sum(kind) or DOUBLE


@dataclass(frozen=True)
class AggregateFunction:
    """`argument`: what the first argument must be (number, any, spread = number or time); `returns`
    gives the result type from it. `chooses`: whether it picks one row, beside which plain columns
    take that row's values.
    """

    name: str
    doc: str
    argument: str
    returns: Callable[[ColumnType], ColumnType]
    #: how a query has it
    duckdb: DuckForm
    chooses: bool = False
    #: most arguments, the first one included
    at_most: int = 1
    least: int = 1
    #: function name in the plan, when this is another name of it
    plan_name: str = ""

    @property
    def signature(self) -> str:
        """As documentation shows it."""
        special = {"count": "count(* | any)", "apercentile": "apercentile(number, p, [algorithm])"}
        return special.get(self.name, f"{self.name}({self.argument})")

    def takes(self, kind: ColumnType) -> bool:
        """Tell if its first argument may be of *kind*."""
        if self.name in ("min", "max"):
            return kind.kind not in ("JSON", "VARBINARY")
        if self.argument == "any" or kind.numeric or kind.kind == "BOOL":
            return True
        return self.argument == "spread" and kind.kind == "TIMESTAMP"


def _same(kind: ColumnType) -> ColumnType:
    return kind


AGGREGATES: dict[str, AggregateFunction] = {
    f.name: f
    for f in (
        AggregateFunction(
            "count",
            "Rows, or values that are not NULL. A window without rows is no window, so never 0"
            " rows.",
            "any",
            lambda t: BIGINT,
            duckdb=duck.count,
        ),
        AggregateFunction(
            "sum",
            "Sum; NULL without values. Integers give BIGINT, and BIGINT UNSIGNED from unsigned"
            " ones: exact whatever is between, and NULL where the whole does not fit. DECIMAL(p, s)"
            " of up to 28 digits gives DECIMAL(38, s), exact; one of more digits gives DOUBLE.",
            "number",
            _sum,
            duckdb=duck.SUM,
        ),
        AggregateFunction(
            "avg",
            "Mean, a DOUBLE; of DECIMAL it is that of the exact sum.",
            "number",
            lambda t: DOUBLE,
            duckdb=duck.AVG,
        ),
        AggregateFunction(
            "stddev",
            "Standard deviation of the population.",
            "number",
            lambda t: DOUBLE,
            duckdb=duck.STDDEV,
        ),
        AggregateFunction(
            "stddev_pop",
            "The same as stddev.",
            "number",
            lambda t: DOUBLE,
            duckdb=duck.STDDEV,
            plan_name="stddev",
        ),
        AggregateFunction(
            "std",
            "The same as stddev.",
            "number",
            lambda t: DOUBLE,
            duckdb=duck.STDDEV,
            plan_name="stddev",
        ),
        AggregateFunction(
            "var_pop",
            "Variance of the population.",
            "number",
            lambda t: DOUBLE,
            duckdb=duck.VARIANCE,
        ),
        AggregateFunction(
            "variance",
            "The same as var_pop.",
            "number",
            lambda t: DOUBLE,
            duckdb=duck.VARIANCE,
            plan_name="var_pop",
        ),
        AggregateFunction(
            "stddev_samp",
            "Standard deviation of a sample; NULL below two values.",
            "number",
            lambda t: DOUBLE,
            duckdb=duck.STDDEV_SAMPLE,
        ),
        AggregateFunction(
            "var_samp",
            "Variance of a sample; NULL below two values.",
            "number",
            lambda t: DOUBLE,
            duckdb=duck.VARIANCE_SAMPLE,
        ),
        AggregateFunction(
            "min",
            "Smallest value; of equal ones the earliest row is chosen.",
            "any",
            _same,
            duckdb=duck.MIN,
            chooses=True,
        ),
        AggregateFunction(
            "max",
            "Largest value; of equal ones the earliest row is chosen.",
            "any",
            _same,
            duckdb=duck.MAX,
            chooses=True,
        ),
        AggregateFunction(
            "first",
            "Value that is not NULL with the earliest time.",
            "any",
            _same,
            duckdb=duck.by_time("first", "arg_min"),
            chooses=True,
        ),
        AggregateFunction(
            "last",
            "Value that is not NULL with the latest time.",
            "any",
            _same,
            duckdb=duck.by_time("last", "arg_max"),
            chooses=True,
        ),
        AggregateFunction(
            "last_row",
            "Value of the latest row, NULL too; NaN is NULL.",
            "any",
            _same,
            duckdb=duck.by_time("last_row", "arg_max_null"),
            chooses=True,
        ),
        AggregateFunction(
            "spread", "Largest minus smallest.", "spread", lambda t: DOUBLE, duckdb=duck.SPREAD
        ),
        AggregateFunction(
            "apercentile",
            "Approximate percentile p (0 to 100), by 'default' or 't-digest'.",
            "number",
            lambda t: DOUBLE,
            duckdb=duck.share("apercentile", "approx_quantile"),
            at_most=3,
            least=2,
        ),
        AggregateFunction(
            "hyperloglog",
            "Approximate number of distinct values.",
            "any",
            lambda t: BIGINT,
            duckdb=duck.DISTINCT,
        ),
    )
}
