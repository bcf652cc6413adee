"""What RESUME STREAM … IGNORE UNTREATED leaves out stays out, also where windows are computed again
from the source, which has it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.windows import Control, make_kernel
from tests.fuzz import draw
from tests.fuzz.__main__ import Trial
from tests.fuzz.calculator import Plan
from tests.unit.windows.test_controls import Past, frame, planned, shown

_PLAN = Plan(
    ("interval", 100, 100), "AT_ONCE", 0, True, True, "tbname", False, history=False, fill=False
)
_PLANS = [
    _PLAN,
    replace(_PLAN, by="c"),
    replace(_PLAN, ignore_update=False),
    replace(_PLAN, ignore_expired=False, ignore_update=False, by="", window=("interval", 100, 50)),
    replace(_PLAN, trigger="WINDOW_CLOSE"),
    replace(_PLAN, window=("session", 30)),
    replace(_PLAN, window=("session", 30), ignore_update=False),
]


def _row(at: int, **values: int) -> list[Any]:
    return ["d1", {"ts": draw.BASE + at, "a": 1, "b": 1, "c": 0, "d": 8} | values]


@pytest.mark.parametrize("room", [None, 1])
@pytest.mark.parametrize(
    "plan", _PLANS, ids=lambda p: f"{p.window[0]} {p.trigger} {p.by} {p.ignore_update}"
)
def test_rows_that_were_left_out_do_not_come_back(plan: Plan, room: int | None) -> None:
    writes = [["BATCH", [_row(at)]] for at in (1, 5, 7)]
    left_out = [["BATCH", [_row(3, a=5), _row(1, a=6)]], ["BATCH", [_row(7, a=7)]]]
    later = [["BATCH", [_row(at)]] for at in (400, 900, 1_400)]
    happened: list[list[Any]] = [
        *writes,
        ["PAUSE"],
        *left_out,
        ["RESUME", "IGNORE UNTREATED"],
        *later,
        ["DELETE", "d1", draw.BASE + 5, draw.BASE + 5],
        ["ADVANCE", 60_000],
    ]
    for split in (None, 0, 1):
        fault = Trial("skipped", plan, draw.statement(plan, False), happened, split, room).fault()
        assert fault is None, (split, fault)


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("window", ["INTERVAL(10a)", "SESSION(ts, 10a)"])
def test_what_was_left_out_counts_once_it_is_recalculated(window: str, saved: bool) -> None:
    plan = planned(
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n FROM met"
        f" PARTITION BY tbname {window}"
    )
    history = Past()
    kernel = make_kernel(plan, history)
    counted, earlier = frame(("d1", 50, 1)), frame(("d1", 0, 1))
    kernel.apply(counted)
    history.add(counted)
    kernel.control(Control("pause"))
    kernel.apply(earlier)
    history.add(earlier)
    kernel.control(Control("resume_skip"))
    if saved:
        delta = kernel.delta(True)
        kernel = make_kernel(plan, history)
        kernel.restore([delta])
    again = Control("recalculate", low=draw.BASE, high=draw.BASE + 9)
    assert shown(kernel.control(again)) == [(0, 0, 1)]


@pytest.mark.parametrize("saved", [False, True])
def test_rows_that_are_left_out_wait_for_history_as_others_do(saved: bool) -> None:
    plan = planned(
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n FROM met"
        " PARTITION BY tbname INTERVAL(10a)"
    )
    history = Past()
    kernel = make_kernel(plan, history)
    kernel.control(Control("fill"))
    for control, row in (("pause", ("d1", 0, 1)), ("resume_skip", ("d1", 1, 1))):
        rows = frame(row)
        assert shown(kernel.apply(rows)) == []
        history.add(rows)
        kernel.control(Control(control))
    if saved:
        delta = kernel.delta(True)
        kernel = make_kernel(plan, history)
        kernel.restore([delta])
    assert shown(kernel.control(Control("filled"))) == [(0, 0, 1)]
    both = frame(("d1", 2, 1), ("d1", 3, 1))
    kernel.apply(both)
    history.add(both)
    deleted = Control("delete", low=draw.BASE + 3, high=draw.BASE + 3)
    assert shown(kernel.control(deleted)) == [(0, 0, 2)]
