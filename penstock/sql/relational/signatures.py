"""Result types of the functions that only a SELECT has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.sql.functions import AGGREGATES, QUERY_AGGREGATES, QUERY_ONLY
from penstock.sql.functions.base import BIGINT, BOOL, DOUBLE, NULL, TIMESTAMP, UNKNOWN_LENGTH
from penstock.types import ColumnType

#: result type from the types of the arguments
_Rule = Callable[[Sequence[ColumnType]], ColumnType]


def _text(length: int = UNKNOWN_LENGTH) -> ColumnType:
    return ColumnType("VARCHAR", length=length)


def _first(types: Sequence[ColumnType]) -> ColumnType:
    return types[0] if types else NULL


def _middle(types: Sequence[ColumnType]) -> ColumnType:
    """Return the type of a quantile: a time's is a time, a number's a DOUBLE."""
    return TIMESTAMP if _first(types) == TIMESTAMP else DOUBLE


def _as_text(types: Sequence[ColumnType]) -> ColumnType:
    kind = _first(types)
    return kind if kind.kind in ("VARCHAR", "NCHAR") else _text()


_WHOLE = """century date_diff date_part date_sub datediff datepart datesub day dayofyear decade
    epoch_ms epoch_ns epoch_us hour isodow isoyear microsecond millisecond minute month quarter
    second year yearweek bit_count gcd lcm xor damerau_levenshtein hamming instr levenshtein ord
    strlen strpos unicode json_array_length approx_count_distinct count_if regr_count"""
_TIMES = """date_trunc datetrunc last_day make_date make_timestamp make_timestamp_ms
    make_timestamp_ns strptime time_bucket current_timestamp earliest_timestamp earliest_ts"""
_REALS = """epoch acosh add asinh atan2 atanh cbrt cosh cot divide even fmod gamma lgamma log10 log2
    multiply nextafter random sinh subtract tanh jaccard corr covar_pop covar_samp entropy favg fsum
    geomean kahan_sum kurtosis kurtosis_pop mean product regr_avgx regr_avgy
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem skewness sumkahan
    variance_pop"""
_TRUTHS = """isfinite isinf isnan signbit contains ends_with prefix regexp_full_match regexp_matches
    starts_with suffix json_exists json_valid bool_and bool_or"""
_TEXTS = """bin chr dayname hex monthname split_part strftime typeof json_extract_string json_keys
    json_type json_value group_concat string_agg regexp_extract client_version current_user database
    server_version"""
_CUT = "left right reverse strip_accents"
_SAME = """any_value arg_max arg_min argmax argmin bit_and bit_or bit_xor max_by min_by
    quantile_disc"""
_MIDDLES = "approx_quantile median quantile quantile_cont mad"
#: aggregates of numbers or times, of which DuckDB would read a text as one
OF_NUMBERS = frozenset(_MIDDLES.split())


def _rules(names: str, rule: _Rule) -> dict[str, _Rule]:
    return dict.fromkeys(names.split(), rule)


_RULES: dict[str, _Rule] = {
    **_rules(_WHOLE, lambda _: BIGINT),
    **_rules(_TIMES, lambda _: TIMESTAMP),
    **_rules(_REALS, lambda _: DOUBLE),
    **_rules(_TRUTHS, lambda _: BOOL),
    **_rules(_TEXTS, lambda _: _text()),
    **_rules(_CUT, _as_text),
    **_rules(_SAME, _first),
    **_rules(_MIDDLES, _middle),
    "hash": lambda _: ColumnType("BIGINT UNSIGNED"),
    "json_extract": lambda _: ColumnType("JSON"),
    "md5": lambda _: _text(32),
    "server_status": lambda _: ColumnType("INT"),
    "sha1": lambda _: _text(40),
    "sha256": lambda _: _text(64),
}
#: functions that make one value of many rows
AGGREGATE_NAMES = frozenset(
    {
        *AGGREGATES,
        *(name for name, group in QUERY_ONLY.items() if group == "Aggregates"),
        *QUERY_AGGREGATES,
        "variance_pop",
    }
)


def result_type(name: str, types: Sequence[ColumnType]) -> ColumnType | None:
    """Return the type of a call of *name*; None when no SELECT has such a function."""
    rule = _RULES.get(name)
    return rule(types) if rule is not None else None
