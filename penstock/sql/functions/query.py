"""Functions that a SELECT has and a stream has not: DuckDB's, under its names. No other function of DuckDB's can be called.

None of them reads files, settings or the environment, waits, or makes more of a text than there was.
"""

from __future__ import annotations

_TIME = (
    "century", "date_diff", "date_part", "date_sub", "date_trunc", "datediff", "datepart",
    "datesub", "datetrunc", "day", "dayname", "dayofyear", "decade", "epoch", "epoch_ms",
    "epoch_ns", "epoch_us", "hour", "isodow", "isoyear", "last_day", "make_date", "make_timestamp",
    "make_timestamp_ms", "make_timestamp_ns", "microsecond", "millisecond", "minute", "month",
    "monthname", "quarter", "second", "strftime", "strptime", "time_bucket", "year", "yearweek",
)  # fmt: skip
_NUMBERS = (
    "acosh", "add", "asinh", "atan2", "atanh", "bit_count", "cbrt", "cosh", "cot", "divide", "even",
    "fmod", "gamma", "gcd", "isfinite", "isinf", "isnan", "lcm", "lgamma", "log10", "log2",
    "multiply", "nextafter", "random", "signbit", "sinh", "subtract", "tanh", "xor",
)  # fmt: skip
_TEXT = (
    "bin", "chr", "contains", "damerau_levenshtein", "ends_with", "hamming", "hash", "hex", "instr",
    "jaccard", "left", "levenshtein", "md5", "ord", "prefix", "regexp_extract", "regexp_full_match",
    "regexp_matches", "reverse", "right", "sha1", "sha256", "split_part", "starts_with",
    "strip_accents", "strlen", "strpos", "suffix", "typeof", "unicode",
)  # fmt: skip
_JSON = (
    "json_array_length", "json_exists", "json_extract", "json_extract_string", "json_keys",
    "json_type", "json_valid", "json_value",
)  # fmt: skip
_AGGREGATES = (
    "any_value", "approx_count_distinct", "approx_quantile", "arg_max", "arg_min", "argmax",
    "argmin", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "corr", "count_if",
    "covar_pop", "covar_samp", "entropy", "favg", "fsum", "geomean", "group_concat", "kahan_sum",
    "kurtosis", "kurtosis_pop", "mad", "max_by", "mean", "median", "min_by", "mode", "product",
    "quantile", "quantile_cont", "quantile_disc", "regr_avgx", "regr_avgy", "regr_count",
    "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "sem",
    "skewness", "string_agg", "sumkahan",
)  # fmt: skip
GROUPS = {"Time": _TIME, "Numbers": _NUMBERS, "Text": _TEXT, "JSON": _JSON, "Aggregates": _AGGREGATES}
#: name → group
QUERY_ONLY: dict[str, str] = {name: group for group, names in GROUPS.items() for name in names}
#: functions that the store writes out itself, or that stand for what it knows
WRITTEN_OUT = frozenset(
    (
        "client_version", "current_timestamp", "current_user", "database", "earliest_timestamp",
        "earliest_ts", "percentile", "server_status", "server_version", "variance_pop",
    )
)  # fmt: skip
