"""Rows cut into windows, in plain Python from the words of the documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.fuzz_select.evaluate import Row
from tests.fuzz_select.ordering import compare
from tests.fuzz_select.tree import Expression, Window

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
#: the value of an expression in a row
Value = Callable[[Expression, Row], Any]


@dataclass
class Stretch:
    """A window and its rows; `end` is `_wend`."""

    start: int
    end: int
    rows: list[Row]


def cut(
    window: Window, rows: Sequence[Row], time_key: str, value: Value, zone: str
) -> list[Stretch]:
    """Cut rows, which are in order of time, into windows.

    Args:
        time_key: key of the time in a row.
        value: computes a state or a condition.
    """

    def at(row: Row) -> int:
        return int(row[time_key])

    if window.clause == "INTERVAL":
        return _intervals(window, rows, at, zone)
    if window.clause == "SESSION":
        return _sessions(window.size, rows, at)
    if window.clause == "COUNT_WINDOW":
        size, step = window.numbers
        parts = [list(rows[i : i + size]) for i in range(0, len(rows), step)]
        return [_of_rows(part, at) for part in parts]
    cutter = _states if window.clause == "STATE_WINDOW" else _events
    found = [_of_rows(part, at) for part in cutter(window.of, rows, value)]
    return [w for w in found if w.end - w.start >= window.true_for]


def _of_rows(rows: list[Row], at: Callable[[Row], int]) -> Stretch:
    return Stretch(at(rows[0]), at(rows[-1]), rows)


def _intervals(
    window: Window, rows: Sequence[Row], at: Callable[[Row], int], zone: str
) -> list[Stretch]:
    found: dict[int, Stretch] = {}
    for row in rows:
        for start, end in _around(window, at(row), zone):
            found.setdefault(start, Stretch(start, end, [])).rows.append(row)
    return [found[start] for start in sorted(found)]


def _around(window: Window, ticks: int, zone: str) -> Iterator[tuple[int, int]]:
    """Yield the windows that a time is in."""
    if window.days:
        yield _local_days(window.days, ticks, zone)
        return
    step = window.sliding or window.size
    start = (ticks - window.offset) // step * step + window.offset
    while start + window.size > ticks:
        yield start, start + window.size
        start -= step


def _local_days(days: int, ticks: int, zone: str) -> tuple[int, int]:
    local = (_EPOCH + timedelta(milliseconds=ticks)).astimezone(ZoneInfo(zone))
    number = (local.date() - date(1970, 1, 1)).days // days * days
    first = datetime.combine(date(1970, 1, 1) + number * _DAY, time(), ZoneInfo(zone))
    behind = datetime.combine(first.date() + days * _DAY, time(), ZoneInfo(zone))
    start, end = (
        (m.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1) for m in (first, behind)
    )
    return start, end


def _sessions(gap: int, rows: Sequence[Row], at: Callable[[Row], int]) -> list[Stretch]:
    found: list[Stretch] = []
    for row in rows:
        if found and at(row) <= found[-1].end:
            found[-1].rows.append(row)
            found[-1].end = at(row) + gap
        else:
            found.append(Stretch(at(row), at(row) + gap, [row]))
    return found


def _states(of: Sequence[Expression], rows: Sequence[Row], value: Value) -> list[list[Row]]:
    """Cut where the state changes; rows without one are in no window."""
    found: list[list[Row]] = []
    last: Any = None
    for row in rows:
        state = value(of[0], row)
        if state is None:
            continue
        if found and compare(state, last) == 0:
            found[-1].append(row)
        else:
            found.append([row])
        last = state
    return found


def _events(of: Sequence[Expression], rows: Sequence[Row], value: Value) -> list[list[Row]]:
    """Cut from a row where the first condition holds to one where the second does; without such
    an end there is no window.
    """
    start, end = of
    found: list[list[Row]] = []
    opened: list[Row] = []
    for row in rows:
        if opened or value(start, row) is True:
            opened.append(row)
            if value(end, row) is True:
                found.append(opened)
                opened = []
    return found
