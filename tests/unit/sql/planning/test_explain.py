"""EXPLAIN: the plan in words, and warnings where it surprises."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penstock.sql.plan import (
    Aggregate,
    Count,
    Duration,
    Event,
    Interval,
    Session,
    State,
    StreamPlan,
    Trigger,
)
from penstock.sql.planning.explain import explain, warnings
from penstock.types import ColumnType
from tests.unit.sql.memory_view import MemoryView, plan

S10 = Duration(10, "s")
PLAN = plan(
    "CREATE STREAM s TRIGGER AT_ONCE WATERMARK 1s IGNORE UPDATE 0 INTO o"
    " AS SELECT _wstart, count(*) n FROM met WHERE a > 1 PARTITION BY tbname INTERVAL(10s)",
    MemoryView("CREATE STABLE met (ts TIMESTAMP, a INT) TAGS (t INT)"),
).plan


def line(word: str, **change: Any) -> str:
    """What EXPLAIN says behind *word* of the plan with a change."""
    made: StreamPlan = dataclasses.replace(PLAN, **change)
    (found,) = [text for text in explain(made) if text.startswith(word.ljust(8))]
    return found.split(None, 1)[1]


def source(**change: Any) -> dict[str, Any]:
    return {"source": dataclasses.replace(PLAN.source, **change)}


def target(**change: Any) -> dict[str, Any]:
    return {"target": dataclasses.replace(PLAN.target, **change)}


def aggregate(function: str) -> dict[str, Any]:
    return {"aggregates": (Aggregate("_a0", function, "a", ColumnType("DOUBLE")),)}


@pytest.mark.parametrize(
    ("word", "change", "text"),
    [
        ("stream", {}, "s of database db"),
        ("source", {}, "supertable db.met, times in ms"),
        ("source", source(kind="child", child="d1"), "child table db.d1, times in ms"),
        (
            "source",
            source(result_of=7),
            "supertable db.met, times in ms, the result of another stream: repeats replace",
        ),
        ("filter", {}, "a > 1"),
        ("filter", {"where": None}, "all rows"),
        ("groups", {}, "tbname"),
        ("groups", {"keys": ()}, "one group of all rows"),
        ("window", {}, "intervals of 10s"),
        ("window", {"window": None}, "none"),
        (
            "window",
            {"window": Interval(Duration(1, "d"), S10, Duration(1, "h"))},
            "intervals of 1d, sliding by 10s, starting 1h off the grid, cut in time zone UTC",
        ),
        ("window", {"window": Session(S10)}, "sessions: rows no more than 10s apart"),
        ("window", {"window": State("a", ColumnType("INT"))}, "runs of equal a"),
        (
            "window",
            {"window": State("a", ColumnType("INT"), S10)},
            "runs of equal a that last 10s",
        ),
        ("window", {"window": Event("a", "b")}, "from a row with a to one with b"),
        ("window", {"window": Count(3, 3)}, "3 rows each"),
        ("window", {"window": Count(3, 1)}, "3 rows each, a new one every 1 rows"),
        ("publish", {}, "after every write, each window it touched"),
        ("publish", {"window": None}, "every row, as it comes"),
        (
            "publish",
            {"trigger": Trigger("max_delay", S10)},
            "when a window closes, and every 10s the open windows that changed",
        ),
        (
            "late",
            {},
            "windows wait 1s for late rows; rows later than that are dropped and counted;"
            " a repeated time replaces the row",
        ),
        (
            "late",
            {"watermark": Duration(0, "a"), "ignore_expired": False, "ignore_update": True},
            "rows later than that are still added; a repeated time is one more row",
        ),
        (
            "state",
            {},
            "a few numbers per open window and group; corrections read the rows again from storage",
        ),
        ("state", {"window": None}, "none"),
        (
            "state",
            {"window": Session(S10), "ignore_update": True, "delete_mark": S10},
            "the rows of open windows; dropped 10s behind the latest row",
        ),
        (
            "state",
            {**aggregate("hyperloglog"), "ignore_update": True},
            "a few numbers per open window and group (hyperloglog: 16384 registers at most)",
        ),
        ("result", {}, "db.o(_wstart TIMESTAMP, n BIGINT)"),
        ("tags", {}, "tag_tbname VARCHAR(192), group_id BIGINT UNSIGNED"),
        ("children", {}, "one per group, named t_ and a hash"),
        ("children", {"keys": ()}, "one, named t_ and a hash"),
        (
            "children",
            target(subtable_sql="concat('x', _k0)"),
            "one per group, named concat('x', _k0) and a suffix that makes it unique",
        ),
        ("children", {**target(subtable_sql="'x'"), "keys": ()}, "'x'"),
    ],
)
def test_a_plan_is_told_in_words(word: str, change: dict[str, Any], text: str) -> None:
    assert line(word, **change) == text


def test_the_path_is_told() -> None:
    assert line("path").startswith("scan: every group lies in one partition")
    assert line("path", path="exchange").startswith("scan, then exchange: ")


CLOSING = {"trigger": Trigger("window_close")}


@pytest.mark.parametrize(
    ("change", "begins"),
    [
        ({}, []),
        (CLOSING, ["the open window is not shown"]),
        ({**CLOSING, "idle_timeout": S10}, []),
        (
            {**CLOSING, "idle_timeout": S10, "watermark": Duration(0, "a")},
            ["without WATERMARK a row that comes after"],
        ),
        ({"ignore_update": True}, ["IGNORE UPDATE is 1"]),
        ({"ignore_update": True, **source(result_of=7)}, []),
        ({"ignore_update": True, "window": None}, []),
        ({"window": Event("a", "b")}, ["an event window is published only once"]),
        ({"window": Session(S10), "path": "exchange"}, ["rows of such windows travel"]),
        ({"window": Interval(Duration(1000, "s"), S10)}, ["every row counts in 100 windows"]),
        ({"window": Interval(Duration(999, "s"), S10)}, []),
        (
            {**CLOSING, "idle_timeout": S10, "fill_history": True},
            ["history is published at once"],
        ),
        (
            {"trigger": Trigger("continuous_window_close", S10)},
            ["late rows, updates and deletes show in the results only every 10s"],
        ),
        (
            {"trigger": Trigger("force_window_close"), "ignore_update": True},
            ["rows that come after their window was published"],
        ),
        (aggregate("apercentile"), ["apercentile() is approximate"]),
    ],
)
def test_a_surprise_is_a_warning(change: dict[str, Any], begins: list[str]) -> None:
    made = dataclasses.replace(PLAN, **change)
    found = warnings(made)
    assert len(found) == len(begins)
    assert all(f.startswith(b) for f, b in zip(found, begins, strict=True))
    assert [t for t in explain(made) if t.startswith("warning: ")] == [
        f"warning: {w}" for w in found
    ]
