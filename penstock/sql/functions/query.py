"""Functions that a SELECT has and a stream has not: DuckDB's, under its names. No other function of
DuckDB's can be called.

None of them reads files, settings or the environment, waits, or makes more of a text than there
was.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.sql.functions import duck_aggregates as duck
from penstock.sql.functions import duck_series, moments
from penstock.sql.functions.aggregate import FORBIDDEN
from penstock.sql.functions.duckdb import DuckForm

_TIME = (
    "century",
    "date_diff",
    "date_part",
    "date_sub",
    "date_trunc",
    "datediff",
    "datepart",
    "datesub",
    "datetrunc",
    "dayname",
    "dayofyear",
    "decade",
    "epoch",
    "epoch_ms",
    "epoch_ns",
    "epoch_us",
    "hour",
    "isodow",
    "isoyear",
    "last_day",
    "make_date",
    "make_timestamp",
    "make_timestamp_ms",
    "make_timestamp_ns",
    "microsecond",
    "millisecond",
    "minute",
    "month",
    "monthname",
    "quarter",
    "second",
    "strftime",
    "strptime",
    "time_bucket",
    "year",
    "yearweek",
)
_NUMBERS = (
    "acosh",
    "add",
    "asinh",
    "atan2",
    "atanh",
    "bit_count",
    "cbrt",
    "cosh",
    "cot",
    "divide",
    "even",
    "fmod",
    "gamma",
    "gcd",
    "isfinite",
    "isinf",
    "isnan",
    "lcm",
    "lgamma",
    "log10",
    "log2",
    "multiply",
    "nextafter",
    "random",
    "signbit",
    "sinh",
    "subtract",
    "tanh",
    "xor",
)
_TEXT = (
    "bin",
    "chr",
    "contains",
    "damerau_levenshtein",
    "ends_with",
    "hamming",
    "hash",
    "hex",
    "instr",
    "jaccard",
    "left",
    "levenshtein",
    "md5",
    "ord",
    "prefix",
    "regexp_extract",
    "regexp_full_match",
    "regexp_matches",
    "reverse",
    "right",
    "sha1",
    "sha256",
    "split_part",
    "starts_with",
    "strip_accents",
    "strlen",
    "strpos",
    "suffix",
    "typeof",
    "unicode",
)
_JSON = (
    "json_array_length",
    "json_exists",
    "json_extract",
    "json_extract_string",
    "json_keys",
    "json_type",
    "json_valid",
    "json_value",
)
_AGGREGATES = (
    "any_value",
    "approx_count_distinct",
    "approx_quantile",
    "arg_max",
    "arg_min",
    "argmax",
    "argmin",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count_if",
    "covar_pop",
    "covar_samp",
    "entropy",
    "favg",
    "fsum",
    "geomean",
    "group_concat",
    "kahan_sum",
    "kurtosis",
    "kurtosis_pop",
    "mad",
    "max_by",
    "mean",
    "median",
    "min_by",
    "mode",
    "product",
    "quantile",
    "quantile_cont",
    "quantile_disc",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "sem",
    "skewness",
    "string_agg",
    "sumkahan",
)
GROUPS = {
    "Time": _TIME,
    "Numbers": _NUMBERS,
    "Text": _TEXT,
    "JSON": _JSON,
    "Aggregates": _AGGREGATES,
}
#: name → group
QUERY_ONLY: dict[str, str] = {name: group for group, names in GROUPS.items() for name in names}
#: the version whose SQL and REST this is, with our name: clients of the reference compare numbers
SPOKEN_VERSION = "3.3.6.0 (penstock)"


@dataclass(frozen=True)
class QueryFunction:
    """A function of the dialect that a SELECT has and a stream has not."""

    name: str
    signature: str
    doc: str
    duckdb: DuckForm
    #: why a stream has no polars side of it
    reason: str
    aliases: tuple[str, ...] = ()
    least: int = 0
    at_most: int = 0

    @property
    def arity(self) -> tuple[int, int]:
        """Fewest and most arguments."""
        return self.least, self.at_most


def _text(value: str) -> DuckForm:
    return lambda _, __: exp.Literal.string(value)


_OF_SESSION = "it is about a session, and a stream has none"
QUERY_FUNCTIONS: dict[str, QueryFunction] = {
    name: function
    for function in (
        QueryFunction(
            "percentile",
            "percentile(number, p)",
            "Percentile p (0 to 100), exact: between two values in proportion.",
            duck.share("percentile", "quantile_cont"),
            FORBIDDEN["percentile"][0],
            least=2,
            at_most=2,
        ),
        QueryFunction(
            "irate",
            "irate(number)",
            "Change in a second between the last two values, in the order of time. Where the last"
            " is lower, as of a counter that began anew, it counts from 0. Of one value it is 0,"
            " and NULL where both are of one time.",
            duck_series.irate,
            FORBIDDEN["irate"][0],
            least=1,
            # the binder adds the time
            at_most=2,
        ),
        QueryFunction(
            "variance_pop",
            "variance_pop(number)",
            "The same as var_pop.",
            duck.VARIANCE,
            "var_pop is the name that a stream takes",
            least=1,
            at_most=1,
        ),
        QueryFunction(
            "current_timestamp",
            "current_timestamp()",
            "The same as now().",
            moments.now,
            "now() is the name that a stream takes",
        ),
        QueryFunction(
            "earliest_timestamp",
            "earliest_timestamp()",
            "The first moment of 1970.",
            moments.earliest,
            "a number does the same: 0",
            aliases=("earliest_ts",),
        ),
        QueryFunction(
            "server_version",
            "server_version()",
            "Version that clients of TDengine expect.",
            _text(SPOKEN_VERSION),
            _OF_SESSION,
            aliases=("client_version",),
        ),
        QueryFunction(
            "server_status",
            "server_status()",
            "1: the server works.",
            lambda _, __: exp.Literal.number(1),
            _OF_SESSION,
        ),
        QueryFunction(
            "database",
            "database()",
            "NULL.",
            lambda _, __: exp.Null(),
            _OF_SESSION,
        ),
    )
    for name in (function.name, *function.aliases)
}
