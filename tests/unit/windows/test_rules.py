"""What the options of a stream mean for the general kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.sql.plan import Duration, Notify, StreamPlan, Trigger
from penstock.windows.rules import Rules
from tests.unit.windows.plans import window_plan

_NAMES = ("replaces", "keeps_late", "by_write", "shows_open", "every")


def _rules(plan: StreamPlan) -> dict[str, Any]:
    rules = Rules.of(plan)
    return {name: getattr(rules, name) for name in _NAMES}


def test_a_plain_stream_appends_and_drops_what_is_late():
    nothing = {"replaces": False, "keeps_late": False, "by_write": False, "shows_open": False}
    assert _rules(window_plan()) == {**nothing, "every": 0}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"ignore_update": False}, "replaces"),
        ({"ignore_expired": False}, "keeps_late"),
        ({"notify": Notify(("http://x",), ("WINDOW_OPEN",))}, "by_write"),
        ({"trigger": "max_delay"}, "by_write"),
        ({"trigger": "window_close", "fill_history": True}, "shows_open"),
    ],
)
def test_an_option_changes_its_rule_only(options, name):
    assert _rules(window_plan(**options)) == {**_rules(window_plan()), name: True}


def test_history_hides_nothing_where_windows_are_published_open():
    assert not Rules.of(window_plan(fill_history=True)).shows_open


def _of_result(plan: StreamPlan) -> StreamPlan:
    return replace(plan, source=replace(plan.source, result_of=3))


def test_the_result_of_a_stream_is_a_keyed_table():
    rules = Rules.of(_of_result(window_plan()))
    assert rules.replaces and rules.keeps_late
    assert not rules.by_write


def test_a_row_of_a_virtual_table_grows_but_may_be_late():
    rules = Rules.of(window_plan(source="virtual"))
    assert rules.replaces
    assert not rules.keeps_late


def test_continuous_window_close_recalculates_every_hour_or_as_said():
    plan = window_plan(trigger="continuous_window_close")
    rules = Rules.of(plan)
    assert rules.replaces and rules.keeps_late and rules.by_write
    assert rules.every == 3_600_000
    own = replace(plan, trigger=Trigger("continuous_window_close", Duration(5, "m")))
    assert Rules.of(own).every == 300_000


def test_times_are_in_ticks_of_the_source():
    plan = replace(window_plan(trigger="max_delay"), trigger=Trigger("max_delay", Duration(2, "s")))
    assert Rules.of(plan).every == 2_000
    fine = replace(plan, source=replace(plan.source, precision="ns"))
    assert Rules.of(fine).every == 2 * 10**9
