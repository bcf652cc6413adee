"""Notifications of windows: which are made, in what order, and what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from penstock import names
from penstock.sql.plan import Event, Notify, Session, State, StreamPlan
from penstock.windows.assign.events import Events, Stamp, window_id
from tests.unit.windows.assembly import groups_of
from tests.unit.windows.plans import INT, duration, frame, window_plan

_NOW = Stamp(4, 5_000)
_BOTH = ("WINDOW_OPEN", "WINDOW_CLOSE")


def _plan(on: tuple[str, ...] = _BOTH, window: Any = None, **given: Any) -> StreamPlan:
    plan = window_plan((("sum", "i"),), notify=Notify(("http://x",), on), **given)
    return plan if window is None else replace(plan, window=window)


def _events(plan: StreamPlan) -> Events:
    """Events of a plan that knows the groups 0 (d1) and 1 (d22)."""
    groups = groups_of(plan)
    rows = frame([[("d1", 0, 1.0), ("d22", 0, 1.0)]])
    groups.numbers(rows.with_columns(groups.expressions))
    return Events(plan, groups)


def _windows(*lines: tuple[int, int, int], **more: Any) -> pl.DataFrame:
    """Windows of (group, start, last tick)."""
    made = pl.DataFrame(
        [(g, start, stop + 1, stop) for g, start, stop in lines],
        schema={"_g": pl.Int64, "_wstart": pl.Int64, "_wend": pl.Int64, "_stop": pl.Int64},
        orient="row",
    )
    return made.with_columns(**{name: pl.lit(value) for name, value in more.items()})


def _results(*sums: int) -> pl.DataFrame:
    return pl.DataFrame({"_wstart": [0] * len(sums), "c_a0": sums, "tname": ["d1"] * len(sums)})


_NONE = _windows()


def _made(events: Events, **given: Any) -> list[dict[str, Any]]:
    usual = {"opened": _NONE, "closed": _NONE, "results": None, "removed": _NONE, "stamp": _NOW}
    return [event for _, event in events.make(**{**usual, **given})]


def test_an_opening_tells_where_and_when():
    events = _events(_plan())
    [event] = _made(events, opened=_windows((1, 10_000, 19_999)))
    group = int(event.pop("groupId"))
    assert event == {
        "tableName": names.automatic_child("out", group),
        "eventType": "WINDOW_OPEN",
        "eventTime": 5_000,
        "windowId": window_id(group, 10_000),
        "windowType": "Time",
        "tags": {"tname": "d22"},
        "windowStart": 10_000,
    }


def test_an_event_of_a_stream_without_a_result_names_no_table():
    plan = _plan()
    plan = replace(plan, target=replace(plan.target, stored=False))
    made = _made(
        _events(plan),
        opened=_windows((1, 0, 9_999)),
        closed=_windows((0, 0, 9_999)),
        results=_results(42),
        removed=_windows((0, 10_000, 19_999)),
    )
    assert [e["eventType"] for e in made] == [
        "WINDOW_OPEN",
        "WINDOW_CLOSE",
        "WINDOW_INVALIDATION",
    ]
    assert not [e for e in made if "tableName" in e]
    assert made[1]["result"] == {"_wstart": 0, "c_a0": 42}


def test_a_closing_brings_its_result_and_end():
    [event] = _made(_events(_plan()), closed=_windows((0, 0, 9_999)), results=_results(42))
    assert event["windowEnd"] == 10_000
    assert event["result"] == {"_wstart": 0, "c_a0": 42}
    assert event["tags"] == {"tname": "d1"}


def test_a_window_of_rows_ends_with_its_last_row():
    events = _events(_plan(window=Session(duration("1s"))))
    [event] = _made(events, closed=_windows((0, 0, 9_999)), results=_results(1))
    assert (event["windowType"], event["windowEnd"]) == ("Session", 9_999)


def test_only_what_was_asked_for_is_made_but_taken_back_is_always_said():
    change = {
        "opened": _windows((0, 0, 9_999)),
        "closed": _windows((0, 0, 9_999)),
        "results": _results(1),
        "removed": _windows((1, 0, 9_999)),
    }
    wanted = {
        ("WINDOW_OPEN",): ["WINDOW_OPEN", "WINDOW_INVALIDATION"],
        ("WINDOW_CLOSE",): ["WINDOW_CLOSE", "WINDOW_INVALIDATION"],
    }
    for on, kinds in wanted.items():
        events = _events(_plan(on))
        assert [e["eventType"] for e in _made(events, **change)] == kinds
        assert events.wants("WINDOW_INVALIDATION")


def test_without_results_nothing_closes():
    assert _made(_events(_plan()), closed=_windows((0, 0, 9_999))) == []


def test_a_stream_without_notify_wants_nothing():
    plan = window_plan()
    events = Events(plan, groups_of(plan))
    assert not any(events.wants(k) for k in (*_BOTH, "WINDOW_INVALIDATION"))


def test_a_state_names_its_neighbours():
    events = _events(_plan(window=State("i", INT)))
    [opened] = _made(events, opened=_windows((0, 0, 5), _state=2, _before=1))
    assert (opened["prevState"], opened["curState"]) == (1, 2)
    closing = _windows((0, 0, 5), _state=2, _after=3)
    [closed] = _made(events, closed=closing, results=_results(1))
    assert (closed["curState"], closed["nextState"]) == (2, 3)
    assert "prevState" not in closed


@pytest.mark.parametrize("fields", [{}, {"_opened": {"i": 1}, "_closed_by": {"v": 9.0}}])
def test_an_event_names_the_values_that_met_its_conditions(fields):
    events = _events(_plan(window=Event("i = 1", "i = 9")))
    windows = _windows((0, 0, 5))
    for name, value in fields.items():
        windows = windows.with_columns(pl.Series(name, [value]))
    [opened] = _made(events, opened=windows)
    assert opened["triggerCondition"] == {
        "conditionIndex": 0,
        "fieldValue": fields.get("_opened", {}),
    }
    [closed] = _made(events, closed=windows, results=_results(1))
    assert closed["triggerCondition"] == {
        "conditionIndex": 1,
        "fieldValue": fields.get("_closed_by", {}),
    }


def test_events_are_in_order_of_write_start_and_kind():
    events = _events(_plan())
    stamp = Stamp(4, 5_000, {1: (3, 4_000)})
    made = events.make(
        _windows((0, 20_000, 29_999), (1, 90_000, 99_999)),
        _windows((0, 10_000, 19_999), (0, 20_000, 29_999)),
        _results(1, 2),
        _windows((0, 20_000, 29_999)),
        stamp,
    )
    ordered = [
        (e["windowStart"], e["eventType"], e["eventTime"])
        for _, e in sorted(made, key=lambda m: m[0])
    ]
    assert ordered == [
        (90_000, "WINDOW_OPEN", 4_000),  # of an earlier write
        (10_000, "WINDOW_CLOSE", 5_000),
        (20_000, "WINDOW_OPEN", 5_000),
        (20_000, "WINDOW_CLOSE", 5_000),
        (20_000, "WINDOW_INVALIDATION", 5_000),
    ]


def test_event_times_are_milliseconds_whatever_the_precision():
    plan = _plan()
    fine = replace(plan, source=replace(plan.source, precision="ns"))
    [event] = _made(_events(fine), opened=_windows((0, 0, 5)), stamp=Stamp(0, 5_000_000_000))
    assert event["eventTime"] == 5_000


def test_the_id_of_a_window_never_changes():
    assert window_id(7, 1_700_000_000_000) == "10997136456155767602"
    assert window_id(7, 0) != window_id(70, 0)


def test_without_groups_there_are_no_tags():
    plan = _plan(keys=())
    events = Events(plan, groups_of(plan))
    events.groups.numbers(frame([[("d1", 0, 1.0)]]))
    assert _made(events, opened=_windows((0, 0, 5)))[0]["tags"] == {}
