"""Functions that DuckDB may be asked to call, and calls whose result is kept short."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.duck.quoting import quote
from penstock.errors import SqlSemanticError
from penstock.sql.functions import AGGREGATES, QUERY_ONLY, REGISTRY
from penstock.sql.functions.base import MAX_TEXT

#: functions of DuckDB's that the translation of the dialect's own functions needs
_DUCKDB_ONLY = frozenset(
    (
        "approx_count_distinct",
        "approx_quantile",
        "arg_max",
        "arg_max_null",
        "arg_min",
        "ceil",
        "coalesce",
        "dayofweek",
        "epoch_ms",
        "epoch_us",
        "greatest",
        "isodow",
        "length",
        "ln",
        "log",
        "make_timestamp",
        "make_timestamp_ms",
        "make_timestamp_ns",
        "now",
        "regexp_full_match",
        "regexp_matches",
        "row",
        "stddev_pop",
        "strftime",
        "strlen",
        "strpos",
        "substring",
        "time_bucket",
        "trunc",
        "var_pop",
    )
)
#: every function that DuckDB may be asked to call
FUNCTIONS = _DUCKDB_ONLY | REGISTRY.keys() | AGGREGATES.keys() | QUERY_ONLY.keys()
#: characters of arguments that are written more than once
_LARGEST = 1 << 20


def _concat(*texts: str) -> str:
    """Write a concatenation that is NULL when any part is. It is no longer than a VARCHAR can be:
    else it would double with every level of a query.
    """
    return f"left({' || '.join(f'CAST({t} AS VARCHAR)' for t in texts)}, {MAX_TEXT})"


def _concat_ws(between: str, *texts: str) -> str:
    parts = [texts[0]]
    for text in texts[1:]:
        parts += [between, text]
    return _concat(*parts)


def _repeat(text: str, count: str) -> str:
    """Write a repetition, as often as it fits; `least` alone would take no notice of a NULL."""
    fits = f"least({count}, {MAX_TEXT} // greatest(strlen({text}), 1))"
    return f"repeat({text}, CASE WHEN {count} IS NOT NULL THEN {fits} END)"


def _replace(text: str, old: str, new: str) -> str:
    """Write a replacement that is NULL where it is longer than a VARCHAR can be. New text may be
    longer than old, so the places are counted first.
    """
    places = (
        f"((strlen({text}) - strlen(replace({text}, {old}, ''))) // greatest(strlen({old}), 1))"
    )
    grown = f"strlen({text}) + {places} * greatest(strlen({new}) - strlen({old}), 0) > {MAX_TEXT}"
    # inside the call, because the branches of a CASE over constants are all computed
    return f"replace({text}, {old}, CASE WHEN {grown} THEN NULL ELSE {new} END)"


def _cut(name: str) -> Callable[[str], str]:
    return lambda value: f"left({name}({value}), {MAX_TEXT})"


#: functions whose result may be longer than what they are given: (fewest and most arguments, how
#: they are written)
_WRITERS: dict[str, tuple[int, int, Callable[..., str]]] = {
    "concat": (1, 1000, _concat),
    "concat_ws": (2, 1000, _concat_ws),
    "repeat": (2, 2, _repeat),
    "replace": (3, 3, _replace),
    "bin": (1, 1, _cut("bin")),
    "hex": (1, 1, _cut("hex")),
    # the text itself, as in streams; DuckDB's own quotes it, and quotes double with every level
    "to_json": (1, 1, lambda text: f"CAST({text} AS VARCHAR)"),
}


def write_call(name: str, arguments: Sequence[str]) -> str:
    """Return a call of *name*, one of those that may be called, with *arguments* as text."""
    writer = _WRITERS.get(name)
    if writer is None:
        return f"{quote(name) if name.startswith('_') else name}({', '.join(arguments)})"
    least, most, write = writer
    if not least <= len(arguments) <= most:
        raise SqlSemanticError(
            f"{name}() does not take {len(arguments)} arguments", code="E_FUNCTION_ARGUMENT"
        )
    # an argument written several times doubles with each level of nesting
    if sum(map(len, arguments)) > _LARGEST:
        raise SqlSemanticError(
            f"{name}() is nested too deeply",
            code="E_FUNCTION_ARGUMENT",
            hint="use a subquery for the inner value",
        )
    return write(*arguments)
