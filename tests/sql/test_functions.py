"""Each function of the registry on both engines: equal to each other, and to plain Python."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from penstock.sql.functions import REGISTRY
from penstock.types import TIME_LIMITS
from tests.sql.engines import DuckRows, frame_of, polars_values
from tests.sql.plain_casts import CASTS, TIME_CASTS
from tests.sql.plain_numbers import CHOICES, NUMBERS, Case
from tests.sql.plain_text import OPERATORS, TEXTS
from tests.sql.plain_times import TIMES
from tests.sql.rows import ZONES, make_rows

ROWS = make_rows()
FRAME = frame_of(ROWS)
DUCK = DuckRows(FRAME)
CASES = [
    *((case, ZONES[:1]) for case in (*NUMBERS, *CHOICES, *TEXTS, *OPERATORS, *CASTS)),
    *((case, ZONES) for case in (*TIMES, *TIME_CASTS)),
]


def alike(left: Any, right: Any) -> bool:
    """Tell if two values are one: the last digits of a double may differ."""
    if isinstance(left, float) and isinstance(right, float | int) and not isinstance(right, bool):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-300)
    return type(left) is type(right) and left == right


def differences(found: list[Any], wanted: list[Any]) -> list[tuple[int, Any, Any]]:
    """Return row, found value and wanted value, where they are not alike."""
    assert len(found) == len(wanted)
    pairs = enumerate(zip(found, wanted, strict=True))
    return [(i, f, w) for i, (f, w) in pairs if not alike(f, w)][:5]


@pytest.mark.parametrize(("case", "zones"), CASES, ids=[case[0] for case, _ in CASES])
def test_both_engines_give_what_the_words_say(case: Case, zones: tuple[str, ...]) -> None:
    text, plain = case
    for zone in zones:
        wanted = [plain(row, zone) for row in ROWS]
        in_stream = polars_values(text, FRAME, zone)
        in_query = DUCK.values(text, zone)
        assert not differences(in_stream, wanted), (zone, "in a stream")
        assert not differences(in_query, wanted), (zone, "in a query")
        assert not differences(in_query, in_stream), (zone, "between the engines")


def test_every_function_is_in_a_case() -> None:
    called = {name for case, _ in CASES for name in re.findall(r"(\w+)\(", case[0])}
    assert not REGISTRY.keys() - called


def test_null_in_gives_null_where_the_registry_says_so() -> None:
    types = {
        "unit": "1h",
        "text": "'a'",
        "time": "0",
        "bool": "true",
        "any": "'a'",
        "number": "1",
        "integer": "1",
        "double": "1",
    }
    texts = {}
    for function in REGISTRY.values():
        if not function.strict or function.name == "trim":
            continue
        needed = [p for p in function.parameters if not p.optional]
        for place, parameter in enumerate(needed):
            if parameter.literal or parameter.kind == "unit":
                continue
            given = [types[p.kind] for p in needed]
            given[place] = "NULL"
            texts[function.name, place] = f"{function.name}({', '.join(given)})"
    assert len(texts) > 50
    one = FRAME.head(1)
    for text in texts.values():
        assert polars_values(text, one, "UTC") == [None], text
    every = " AND ".join(f"isnull({text})" for text in texts.values())
    assert set(DUCK.values(every, "UTC")) == {True}


def test_both_engines_know_the_same_letters_and_days() -> None:
    texts = [
        f"{chr(code)}a{chr(code)}" for code in (*range(0x20, 0x2200), *range(0x10400, 0x10450))
    ]
    low, high = TIME_LIMITS["ms"]
    steps = len(texts) - 1
    times = [low + (high - low) * i // steps for i in range(steps)] + [high]
    rows = [{**ROWS[0], "s": s, "ts": ts} for s, ts in zip(texts, times, strict=True)]
    frame = frame_of(rows)
    duck = DuckRows(frame)
    for call in (
        *("upper(s)", "lower(s)", "trim(s)", "trim(LEADING 'a' FROM lower(upper(s)))"),
        *(f"{name}(ts)" for name in ("date", "day", "dayofweek", "weekday", "weekofyear")),
    ):
        assert duck.values(call, "UTC") == polars_values(call, frame, "UTC"), call
