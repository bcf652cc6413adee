"""A row written again that then fails WHERE or belongs to another partition: a DELETE takes all
that counted of it, and nothing else.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.fuzz import draw
from tests.fuzz.__main__ import Trial
from tests.fuzz.calculator import Plan

_PLAN = Plan(
    ("interval", 100, 100), "AT_ONCE", 0, True, True, "tbname", True, history=False, fill=False
)
_WINDOWS: dict[tuple[Any, ...], list[str]] = {
    ("interval", 100, 100): ["", "tbname", "c", "tbname, c"],
    ("interval", 100, 50): ["", "c"],
    ("session", 30): ["", "tbname", "c"],
    ("state",): ["tbname"],
    ("event",): ["tbname"],
    ("count", 3, 3): ["tbname"],
    ("rows",): ["tbname", "tbname, c"],
}
_AGAIN: list[dict[str, int]] = [{"d": 0}, {"c": 1}, {"c": 1, "d": 0}]
_CASES = [
    (
        replace(
            _PLAN,
            window=window,
            by=by,
            trigger=trigger,
            watermark=40 if window[0] == "count" else 0,
        ),
        again,
    )
    for window, keys in _WINDOWS.items()
    for by in keys
    for trigger in (["AT_ONCE"] if window[0] == "rows" else ["AT_ONCE", "WINDOW_CLOSE"])
    for again in _AGAIN
    # two event windows of one time have one row in the result: whose, nobody promises
    if window[0] != "event" or "d" in again
]


def _row(at: int, **values: int) -> list[Any]:
    return ["d1", {"ts": draw.BASE + at, "a": 1, "b": 1, "c": 0, "d": 8} | values]


def _named(value: Plan | dict[str, int]) -> str:
    return (
        f"{value.window[0]} by {value.by or 'nothing'} {value.trigger}"
        if isinstance(value, Plan)
        else " ".join(value)
    )


@pytest.mark.parametrize(("plan", "again"), _CASES, ids=_named)
def test_a_delete_takes_all_that_counted_of_a_row(plan: Plan, again: dict[str, int]) -> None:
    chance = random.Random(f"{plan} {again}")
    for low in (100, 105):
        for after in ([], [2_000, 3_000, 4_000, 5_000]):
            writes = [
                [_row(100)],
                [_row(105, a=2)],
                [_row(100, a=4, **again)],
                *([_row(at)] for at in after),
            ]
            happened = [
                *(["BATCH", rows] for rows in writes),
                ["DELETE", "d1", draw.BASE + low, draw.BASE + low + 3],
                ["ADVANCE", 60_000],
            ]
            notify = plan.window[0] != "rows" and chance.random() < 0.5
            room = chance.choice([None, 1])
            split = chance.choice([None, 0, 1, 2])
            fault = Trial(
                "moved", plan, draw.statement(plan, notify), happened, split, room
            ).fault()
            assert fault is None, (low, after, notify, room, split, fault)


#: versions of one row by their group: 0 is far ahead of the row, 1 and 2 are not
_VERSIONS = [[1, 0], [2, 1, 0], [1, 0, 2], [0, 1, 0]]


@pytest.mark.parametrize("before", [[], [0], [2]], ids=str)
@pytest.mark.parametrize("versions", _VERSIONS, ids=str)
@pytest.mark.parametrize("together", [True, False])
def test_a_version_leaves_the_one_before_it_in_windows_that_are_over_for_it(
    together: bool, versions: list[int], before: list[int]
) -> None:
    chance = random.Random(f"{together} {versions} {before}")
    rows = [_row(296, a=10 + i, c=c) for i, c in enumerate(versions)]
    writes = [
        *([_row(296, c=c)] for c in before),
        [_row(344)],
        *([rows] if together else [[row] for row in rows]),
    ]
    happened: list[list[Any]] = [["BATCH", write] for write in writes]
    later: list[list[Any]] = [["BATCH", [_row(at, c=c)]] for at in (900, 2_000) for c in (0, 1, 2)]
    delete = ["DELETE", "d1", draw.BASE + 296, draw.BASE + 296]
    for rest, room in (([], None), (later, 1), ([*later, delete], 1)):
        plan = replace(
            _PLAN,
            window=("interval", 100, 50),
            by=chance.choice(["c", "tbname, c"]),
            trigger=chance.choice(["AT_ONCE", "WINDOW_CLOSE"]),
            ignore_update=False,
            where=False,
        )
        split = chance.choice([None, 0, 1, 2])
        fault = Trial(
            "late", plan, draw.statement(plan, False), [*happened, *rest], split, room
        ).fault()
        assert fault is None, (rest, room, split, plan, fault)
