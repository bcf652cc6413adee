"""Kernels against the oracle, and against themselves cut, saved, restored and made to forget at
random.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import settings as run
from hypothesis import strategies as st

from tests.conformance.case import Case, Outcome
from tests.conformance.kernel_backend import KernelBackend
from tests.nightly import drawn
from tests.unit.windows.oracle import Oracle, Setting
from tests.unit.windows.streams import case, events, settings, statement

quick = run(deadline=None, max_examples=drawn(40), suppress_health_check=list(HealthCheck))


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(r, sort_keys=True) for r in rows)


def _without_repeats(happened: list[list[Any]]) -> list[list[Any]]:
    """Two rows of one time may begin two windows, and the target has one row for both: whose,
    nobody promises.
    """
    seen: set[tuple[str, int]] = set()
    made: list[list[Any]] = []
    for kind, *rest in happened:
        if kind == "BATCH":
            fresh = []
            for table, row in rest[0]:
                if (table, row["ts"]) not in seen:
                    seen.add((table, row["ts"]))
                    fresh.append([table, row])
            rest = [fresh]
        if kind != "BATCH" or rest[0]:
            made.append([kind, *rest])
    return made


def _ran(outcome: Outcome) -> Outcome:
    assert outcome.crash is None and outcome.error is None, (outcome.crash, outcome.error)
    return outcome


@quick
@given(settings(), events(), st.none() | st.integers(0, 99))
def test_publishes_what_the_oracle_says(
    setting: Setting, happened: list[list[Any]], split: int | None
) -> None:
    if setting.window[0] in ("state", "event", "count") and setting.ignore_update:
        happened = _without_repeats(happened)
    oracle = Oracle(setting)
    for event in happened:
        if event[0] == "BATCH":
            oracle.write([(table, row) for table, row in event[1]])
        else:
            oracle.delete(*event[1:])
    outcome = _ran(KernelBackend(split).run(case(statement(setting), happened)))
    assert _sorted(outcome.rows) == _sorted(oracle.published())


TRIGGERS = st.sampled_from(["AT_ONCE", "WINDOW_CLOSE", "MAX_DELAY 5s"])
NOTIFY = st.sampled_from(["", "NOTIFY ('ws://127.0.0.1:1/n') ON ('WINDOW_OPEN', 'WINDOW_CLOSE')"])


@quick
@given(settings(), events(controls=True), TRIGGERS, NOTIFY, st.integers(0, 999))
def test_cuts_restarts_and_forgetting_change_nothing(
    setting: Setting, happened: list[list[Any]], trigger: str, notify: str, seed: int
) -> None:
    one = case(statement(setting, trigger=trigger, notify=notify), happened)
    straight = _ran(KernelBackend().run(one))
    cut = _ran(KernelBackend(seed).run(one))
    assert (_sorted(cut.rows), cut.snapshots) == (_sorted(straight.rows), straight.snapshots)
    assert cut.notify == straight.notify


def _behind_history(
    setting: Setting, before: list[list[Any]], after: list[list[Any]], trigger: str
) -> Case:
    """A stream that is created between these events and fills its history."""
    happened = [*before, ["CREATE_STREAM"], *after]
    if setting.ignore_update:
        happened = _without_repeats(happened)
    return case(statement(setting, "FILL_HISTORY 1", trigger=trigger), happened)


@quick
@given(settings(), events(), events(), TRIGGERS, st.integers(0, 999))
def test_history_in_stretches_is_history(
    setting: Setting, before: list[list[Any]], after: list[list[Any]], trigger: str, seed: int
) -> None:
    one = _behind_history(setting, before, after, trigger)
    straight = _ran(KernelBackend().run(one))
    cut = _ran(KernelBackend(stretches=seed).run(one))
    assert _sorted(cut.rows) == _sorted(straight.rows)


@quick
@given(settings(), events(), events(controls=True), TRIGGERS, st.integers(0, 999))
def test_cuts_change_nothing_behind_history(
    setting: Setting, before: list[list[Any]], after: list[list[Any]], trigger: str, seed: int
) -> None:
    one = _behind_history(setting, before, after, trigger)
    straight = _ran(KernelBackend().run(one))
    cut = _ran(KernelBackend(seed).run(one))
    assert (_sorted(cut.rows), cut.snapshots) == (_sorted(straight.rows), straight.snapshots)


INTERVAL_ONLY = st.sampled_from(
    [
        ("CONTINUOUS_WINDOW_CLOSE RECALCULATE 10m", ""),
        ("AT_ONCE", "FILL(PREV)"),
        ("WINDOW_CLOSE", "FILL(LINEAR)"),
        ("AT_ONCE", "FILL(NULL)"),
        ("MAX_DELAY 5s", "FILL(NEXT)"),
    ]
)


@quick
@given(settings(), events(controls=True), INTERVAL_ONLY, st.integers(0, 999))
def test_cuts_change_nothing_of_interval(
    setting: Setting, happened: list[list[Any]], mode: tuple[str, str], seed: int
) -> None:
    interval = replace(setting, window=("interval", 100, 100), by="tbname")
    one = case(statement(interval, trigger=mode[0], notify=mode[1]), happened)
    straight = _ran(KernelBackend().run(one))
    cut = _ran(KernelBackend(seed).run(one))
    assert (_sorted(cut.rows), cut.snapshots) == (_sorted(straight.rows), straight.snapshots)
