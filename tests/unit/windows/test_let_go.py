"""Rows that were let go and are read again count as they did: what `make fuzz` found, each in its
smallest form.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz import draw
from tests.fuzz.__main__ import Trial
from tests.fuzz.calculator import Plan

T0 = draw.BASE


def _plan(window: tuple[Any, ...], **more: Any) -> Plan:
    usual: dict[str, Any] = {
        "trigger": "WINDOW_CLOSE",
        "watermark": 0,
        "ignore_expired": False,
        "ignore_update": True,
        "by": "tbname",
    }
    return Plan(window=window, **{**usual, "where": False, "history": False, "fill": False, **more})


def _write(*rows: tuple[str, int, int] | tuple[str, int, int, dict[str, Any]]) -> list[Any]:
    """One write of (table, time, a) and what else a row has; a row without it has all columns."""
    made = []
    for table, ts, a, *more in rows:
        made.append(
            [table, {"ts": T0 + ts, "a": a, **(more[0] if more else {"b": 1, "c": 1, "d": 5})}]
        )
    return ["BATCH", made]


CASES = {
    # the window 100..200 has a row in memory and none below the horizon
    "a sliding window whose only row is above where reading ends": (
        _plan(("interval", 100, 50), trigger="AT_ONCE", history=True),
        [
            _write(("d1", 385, 9)),
            _write(("d0", 147, 6), ("d1", 287, 0)),
            _write(("d1", 180, -2)),
            ["CREATE_STREAM"],
            _write(("d2", 206, -8)),
            _write(("d1", 213, 3)),
            _write(("d1", 180, 6)),
            draw._LATER,
        ],
    ),
    "a late row of a sliding window behind another one": (
        _plan(
            ("interval", 90, 30),
            trigger="CONTINUOUS_WINDOW_CLOSE",
            watermark=40,
            ignore_expired=True,
            ignore_update=False,
            by="c",
        ),
        [
            _write(("d2", 25, -5)),
            _write(("d0", 227, 4), ("d1", 476, 8)),
            _write(("d0", 57, 9)),
            _write(("d1", 0, 0)),
            draw._LATER,
        ],
    ),
    # storage has its other columns from the row before, and with those it passes
    "a partial row that fails WHERE by itself": (
        _plan(("interval", 100, 100), watermark=200, where=True, by=""),
        [
            _write(("d1", 120, 0)),
            _write(("d2", 559, -8), ("d0", 559, -5)),
            _write(("d1", 361, -2), ("d1", 120, -9, {"b": 1, "c": 1})),
            _write(("d0", 679, 1), ("d1", 506, 1)),
            _write(("d0", 704, 3)),
            _write(("d1", 729, 1), ("d0", 737, 3)),
            _write(("d1", 864, 2), ("d0", 115, -2), ("d2", 1009, 0), ("d2", 1009, -2)),
            _write(("d1", 120, -3)),
            draw._LATER,
        ],
    ),
    # the window before lies below the horizon, the change above it
    "a delete between two windows that become one": (
        _plan(("state",)),
        [
            _write(("d0", 94, -4, {"b": 0, "c": 0, "d": 8})),
            _write(("d0", 9, -5)),
            _write(("d0", 320, 1, {"b": 0, "c": 0, "d": 8})),
            _write(("d0", 230, -2)),
            ["DELETE", "d0", T0 + 223, T0 + 223],
            ["DELETE", "d0", T0 + 57, T0 + 137],
            draw._LATER,
        ],
    ),
    "a partial row and a whole one of one time in one write": (
        _plan(
            ("count", 4, 2),
            trigger="AT_ONCE",
            watermark=40,
            ignore_expired=True,
            ignore_update=False,
            history=True,
        ),
        [
            _write(("d1", 8, 2), ("d0", 33, -1, {"b": 2, "d": 1}), ("d0", 33, 1)),
            ["CREATE_STREAM"],
            draw._LATER,
        ],
    ),
}


@pytest.mark.parametrize("room", [None, 1, 2, 3, 5, 12])
@pytest.mark.parametrize("name", CASES)
def test_results_do_not_depend_on_what_was_let_go(name: str, room: int | None) -> None:
    plan, happened = CASES[name]
    assert Trial(name, plan, draw.statement(plan, False), happened, None, room).fault() is None
