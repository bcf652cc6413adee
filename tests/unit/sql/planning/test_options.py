"""Trigger and options: defaults, and which go with which window and source."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penstock.sql.plan import Count, Duration, Event, Interval, Session, State, Trigger, Window
from penstock.sql.planning.options import DEFAULT_RECALCULATE, PlannedOptions, plan_options
from penstock.sql.planning.view import TableDef
from penstock.types import ColumnType
from tests.unit.sql.planning.binding import MET, PLAIN, context, refused_at, statement

S10 = Duration(10, "s")
TUMBLING = Interval(S10, S10)
HOPPING = Interval(S10, Duration(5, "s"))
COUNT = Count(3, 3)
STATE = State("Amps", ColumnType("INT"))
EVENT = Event("b", "b")
SESSION = Session(S10)
VIRTUAL = dataclasses.replace(PLAIN, kind="virtual")


def options(
    head: str,
    window: Window | None = TUMBLING,
    source: TableDef = PLAIN,
    *,
    by_table: bool = False,
    fill: str | None = None,
    sliding: bool = False,
) -> PlannedOptions:
    made = statement(f"1 FROM p {_clause(window)}", head)
    return plan_options(context(made, source), window, by_table, fill, sliding)


def _clause(window: Window | None) -> str:
    if window is None:
        return ""
    if isinstance(window, Interval):
        return "INTERVAL(10s) SLIDING(5s) FILL(LINEAR)"
    return {
        "count": "COUNT_WINDOW(3)",
        "state": "STATE_WINDOW(Amps)",
        "event": "EVENT_WINDOW START WITH b END WITH b",
        "session": "SESSION(ts, 10s)",
    }[window.kind]


def test_defaults() -> None:
    assert options("") == PlannedOptions(
        Trigger("window_close"),
        Duration(0, "a"),
        ignore_expired=True,
        ignore_update=True,
        delete_mark=None,
        idle_timeout=None,
        fill_history=False,
        fill_history_async=False,
    )


@pytest.mark.parametrize(
    ("head", "field", "value"),
    [
        ("TRIGGER AT_ONCE", "trigger", Trigger("at_once")),
        ("TRIGGER MAX_DELAY 5s", "trigger", Trigger("max_delay", Duration(5, "s"))),
        (
            "TRIGGER CONTINUOUS_WINDOW_CLOSE",
            "trigger",
            Trigger("continuous_window_close", DEFAULT_RECALCULATE),
        ),
        (
            "TRIGGER CONTINUOUS_WINDOW_CLOSE RECALCULATE 10m",
            "trigger",
            Trigger("continuous_window_close", Duration(10, "m")),
        ),
        ("WATERMARK 0s", "watermark", Duration(0, "a")),
        ("WATERMARK 3s", "watermark", Duration(3, "s")),
        ("IGNORE EXPIRED 0", "ignore_expired", False),
        ("IGNORE UPDATE 0", "ignore_update", False),
        ("IGNORE UPDATE 1", "ignore_update", True),
        ("IDLE_TIMEOUT 3s", "idle_timeout", Duration(3, "s")),
        ("DELETE_MARK 1h", "delete_mark", Duration(1, "h")),
        ("DELETE_MARK 1s", "delete_mark", S10),
        ("WATERMARK 20s DELETE_MARK 1s", "delete_mark", Duration(20, "s")),
        ("DELETE_MARK 1n", "delete_mark", Duration(30 * 86_400, "s")),
        ("FILL_HISTORY 1", "fill_history", True),
        ("FILL_HISTORY 1 ASYNC", "fill_history_async", True),
        ("FILL_HISTORY 0 ASYNC", "fill_history_async", False),
    ],
)
def test_an_option_is_taken_as_it_is_meant(head: str, field: str, value: Any) -> None:
    assert getattr(options(head), field) == value


def test_continuous_closing_is_for_late_rows_and_updates() -> None:
    found = options("TRIGGER CONTINUOUS_WINDOW_CLOSE IGNORE EXPIRED 1 IGNORE UPDATE 1")
    assert (found.ignore_expired, found.ignore_update) == (False, False)


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("TRIGGER FORCE_WINDOW_CLOSE", {"window": SESSION}, "E_FWC_WINDOW", "TRIGGER FORC"),
    ("TRIGGER FORCE_WINDOW_CLOSE", {"window": None}, "E_FWC_WINDOW", "TRIGGER FORC"),
    ("TRIGGER CONTINUOUS_WINDOW_CLOSE", {"window": COUNT}, "E_CWC_WINDOW", "TRIGGER CONT"),
    ("TRIGGER MAX_DELAY 4s", {}, "E_MAX_DELAY_MIN", "TRIGGER MAX_"),
    ("TRIGGER MAX_DELAY 1n", {}, "E_DURATION", "TRIGGER MAX_"),
    ("TRIGGER CONTINUOUS_WINDOW_CLOSE RECALCULATE 9m", {}, "E_CWC_RECALC_MIN", "TRIGGER CONT"),
    ("WATERMARK 1n", {}, "E_DURATION", "WATERMARK 1n"),
    ("WATERMARK 1u", {}, "E_INTERVAL_PRECISION", "WATERMARK 1u"),
    ("IDLE_TIMEOUT 0s", {}, "E_DURATION", "IDLE_TIMEOUT"),
    ("DELETE_MARK 0s", {}, "E_DURATION", "DELETE_MARK "),
    ("WATERMARK 0s", {"window": COUNT}, "E_COUNT_WATERMARK", "WATERMARK 0s"),
    (
        "WATERMARK 1s IGNORE EXPIRED 0",
        {"window": COUNT},
        "E_COUNT_IGNORE_EXPIRED",
        "IGNORE EXPIR",
    ),
    # windows of rows in one order
    ("", {"window": STATE, "source": MET}, "E_STATE_NEEDS_TBNAME", "STATE_WINDOW"),
    ("", {"window": EVENT, "source": MET}, "E_EVENT_NEEDS_TBNAME", "EVENT_WINDOW"),
    ("WATERMARK 1s", {"window": COUNT, "source": MET}, "E_COUNT_NEEDS_TBNAME", "COUNT_WINDOW"),
    (
        "",
        {"window": STATE, "source": dataclasses.replace(PLAIN, key_column="Amps")},
        "E_WINDOW_ON_COMPOSITE_KEY",
        "STATE_WINDOW",
    ),
    # windows closed by the clock
    (
        "TRIGGER FORCE_WINDOW_CLOSE",
        {"window": HOPPING, "sliding": True},
        "E_FWC_SLIDING",
        "5s) FILL(LIN",
    ),
    ("TRIGGER FORCE_WINDOW_CLOSE FILL_HISTORY 1", {}, "E_FWC_FILL_HISTORY", "FILL_HISTORY"),
    ("TRIGGER FORCE_WINDOW_CLOSE IGNORE EXPIRED 0", {}, "E_FWC_IGNORE_EXPIRED", "IGNORE EXPIR"),
    ("TRIGGER FORCE_WINDOW_CLOSE IGNORE UPDATE 0", {}, "E_FWC_IGNORE_UPDATE", "IGNORE UPDAT"),
    ("TRIGGER FORCE_WINDOW_CLOSE", {"source": MET}, "E_FWC_NEEDS_TBNAME", "TRIGGER FORC"),
    ("TRIGGER FORCE_WINDOW_CLOSE", {"fill": "linear"}, "E_FWC_FILL_MODE", "FILL(LINEAR)"),
    ("TRIGGER FORCE_WINDOW_CLOSE", {"fill": "next"}, "E_FWC_FILL_MODE", "FILL(LINEAR)"),
    # virtual tables
    ("TRIGGER MAX_DELAY 5s", {"source": VIRTUAL}, "E_VTABLE_TRIGGER", "TRIGGER MAX_"),
    ("WATERMARK 1s", {"source": VIRTUAL}, "E_VTABLE_WATERMARK", "WATERMARK 1s"),
    ("IGNORE UPDATE 0", {"source": VIRTUAL}, "E_VTABLE_DISORDER", "IGNORE UPDAT"),
    ("IGNORE EXPIRED 0", {"source": VIRTUAL}, "E_VTABLE_DISORDER", "IGNORE EXPIR"),
    ("FILL_HISTORY 1", {"source": VIRTUAL}, "E_VTABLE_FILL_HISTORY", "FILL_HISTORY"),
    (
        "",
        {"source": VIRTUAL, "window": COUNT},
        "E_VTABLE_COUNT_WINDOW",
        "COUNT_WINDOW",
    ),
]


@pytest.mark.parametrize(
    ("head", "given", "code", "at"), REFUSED, ids=[f"{r[2]}-{i}" for i, r in enumerate(REFUSED)]
)
def test_what_does_not_go_together_is_refused_where_it_stands(
    head: str, given: dict[str, Any], code: str, at: str
) -> None:
    window = given.get("window", TUMBLING)
    made = statement(f"1 FROM p {_clause(window)}", head)
    of = context(made, given.get("source", PLAIN))
    sliding = given.get("sliding", False)
    call = lambda: plan_options(of, window, False, given.get("fill"), sliding)  # noqa: E731
    assert refused_at(made, call) == (code, at)


@pytest.mark.parametrize(
    ("head", "given"),
    [
        ("", {"window": STATE, "source": MET, "by_table": True}),
        ("WATERMARK 1s", {"window": COUNT}),
        ("TRIGGER FORCE_WINDOW_CLOSE", {"source": MET, "by_table": True, "fill": "prev"}),
        ("TRIGGER FORCE_WINDOW_CLOSE", {"sliding": True}),
        ("TRIGGER AT_ONCE", {"window": None, "source": VIRTUAL}),
    ],
)
def test_what_goes_together_is_taken(head: str, given: dict[str, Any]) -> None:
    assert isinstance(options(head, **given), PlannedOptions)
