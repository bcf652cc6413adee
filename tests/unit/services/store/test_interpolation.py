"""Values at points in time, beside plain Python that looks at every row for every point."""

from __future__ import annotations

import math
import random
from typing import Any

import polars as pl
import pytest

from services.store.interpolation import FILLED, GROUP, TIME, Filled, Mode, Points, interpolate

MODES: tuple[Mode, ...] = ("none", "null", "value", "prev", "next", "linear", "near")
Row = tuple[int, int, float | None, int | None]


def _rows(seed: int) -> list[Row]:
    dice = random.Random(seed)
    rows = [
        (
            dice.randrange(3),
            dice.randrange(-20, 60),
            dice.choice((None, math.nan, 1.0, dice.uniform(-5, 5), 1e308, -1e308)),
            dice.choice((None, 7, dice.randrange(-100, 100), 2**62, -(2**62))),
        )
        for _ in range(dice.randrange(1, 40))
    ]
    return sorted(rows, key=lambda row: row[1])


def _frame(rows: list[Row]) -> pl.DataFrame:
    schema = {GROUP: pl.UInt32, TIME: pl.Int64, "d": pl.Float64, "i": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _line(low: Any, high: Any, passed: int, length: int) -> Any:
    if low is None or high is None:
        return None
    if isinstance(low, int):
        whole = low * length + (high - low) * passed
        return abs(whole) // length * (1 if whole >= 0 else -1)
    value = low + (high - low) * (passed / length)
    return value if math.isfinite(value) else None


def _read(
    rows: list[tuple[int, Any]], at: int, mode: Mode, points: Points, value: Any, given: bool
) -> tuple[bool, bool, Any]:
    """Return (there is an answer, a row has the very time, the value) of one column at *at*."""
    near = [r for r in rows if points.around is None or abs(r[0] - at) <= points.around]
    exact = [v for t, v in near if t == at]
    if exact:
        return True, True, exact[0]
    before = [r for r in near if r[0] < at][-1:]
    if before:
        before = [r for r in near if r[0] == before[0][0]][:1]
    behind = [r for r in near if r[0] > at][:1]
    if mode == "linear" and before and behind:
        (t, low), (u, high) = before[0], behind[0]
        return True, False, _line(low, high, at - t, u - t)
    chosen = {"prev": before, "next": behind}.get(mode, [])
    if mode == "near":
        chosen = sorted(before + behind, key=lambda r: (abs(r[0] - at), r[0]))[:1]
    if chosen:
        return True, False, chosen[0][1]
    if mode in ("null", "value") or (given and mode in ("prev", "next", "near")):
        return True, False, value
    return False, False, None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(12))
def test_values_are_those_of_plain_python(mode: Mode, seed: int) -> None:
    rows = _rows(seed)
    dice = random.Random(seed)
    start = dice.randrange(-30, 20)
    around = dice.choice((None, 0, 4)) if mode in ("prev", "next", "near") else None
    points = Points(start, start + dice.randrange(60), dice.randrange(1, 9), around)
    given = mode in ("prev", "next", "near") and dice.random() < 0.5
    value = 5 if given or mode == "value" else None
    ignore = dice.random() < 0.5
    columns = [Filled("d", ignore, value), Filled("i", ignore, value)]
    found = interpolate(_frame(rows), points, mode, columns, given=given)
    wanted = []
    for at in range(points.start, points.end + 1, points.step):
        for group in sorted({row[0] for row in rows}):
            answers = []
            for place in (2, 3):
                own = [(r[1], r[place]) for r in rows if r[0] == group]
                if ignore:
                    own = [(t, v) for t, v in own if v is not None and not math.isnan(v)]
                answers.append(_read(own, at, mode, points, value, given))
            if any(answered for answered, _, _ in answers):
                filled = not any(exact for _, exact, _ in answers)
                wanted.append((group, at, filled, *(v for _, _, v in answers)))
    assert repr(found.rows()) == repr(_as_types(wanted))
    assert found.columns == [GROUP, TIME, FILLED, "d", "i"]


def _as_types(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows with the doubles of the first column as doubles."""
    return [(*row[:3], None if row[3] is None else float(row[3]), row[4]) for row in rows]


def test_times_and_texts_are_read_too() -> None:
    rows = pl.DataFrame(
        {
            GROUP: pl.Series([0, 0], dtype=pl.UInt32),
            TIME: [0, 10],
            "t": pl.Series([100, 200], dtype=pl.Int64).cast(pl.Datetime("us")),
            "s": ["a", "b"],
        }
    )
    point = Points(5, 5, 1)
    line = interpolate(rows, point, "linear", [Filled("t")], given=False)
    assert line["t"].dtype == pl.Datetime("us")
    assert line["t"].cast(pl.Int64).to_list() == [150]
    near = interpolate(rows, point, "near", [Filled("s")], given=False)
    assert near["s"].to_list() == ["a"]


def test_no_rows_give_no_points() -> None:
    points = Points(0, 10, 5)
    found = interpolate(_frame([]), points, "null", [Filled("d"), Filled("i")], given=False)
    assert found.height == 0
    assert points.count == 3
