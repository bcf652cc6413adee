"""Whatever an expression raises ends the row that it was raised on, and nothing else."""

from __future__ import annotations

import itertools

import pytest

from tests.conformance.case import Case, Outcome
from tests.conformance.kernel_backend import KernelBackend

_BASE = 1_700_006_400_000
#: times that no calendar has, and one that it has
_VALUES = [1, 2**63 - 1, -(2**63), 10**17, -(10**15), 86_400_000]


def _run(stream: str) -> Outcome:
    rows = [["d1", {"ts": _BASE + i, "a": value}] for i, value in enumerate(_VALUES)]
    case = Case.read(
        {
            "id": "failing",
            "tables": ["CREATE TABLE d1 (ts TIMESTAMP, a BIGINT)"],
            "stream": stream,
            "events": [
                ["BATCH", rows],
                ["d1", {"ts": _BASE + 50, "a": 2**62}],
                ["d1", {"ts": _BASE + 100, "a": 2}],
            ],
        }
    )
    outcome = KernelBackend().run(case)
    assert outcome.crash is None and outcome.error is None, (outcome.crash, outcome.error)
    return outcome


_FUNCTIONS = (
    "to_char({}, 'YYYY-MM-DD')",
    "to_iso8601({})",
    "date({})",
    "dayofweek({})",
    "week({})",
    "timetruncate({}, 1d)",
    "timediff({}, ts, 1d)",
)
_SELECTS = (
    "SELECT ts, {} r FROM d1",
    "SELECT _wstart, count(*) n, last({}) r FROM d1 INTERVAL(10s)",
    "SELECT _wstart, count(*) n FROM d1 WHERE {} IS NOT NULL INTERVAL(10s)",
    "SELECT _wstart, count(*) n FROM d1 PARTITION BY {} AS k SESSION(ts, 10s)",
    "SELECT _wstart, count(*) n FROM d1 STATE_WINDOW(CASE WHEN {} IS NULL THEN 1 ELSE 2 END)",
)


@pytest.mark.parametrize(("function", "select"), list(itertools.product(_FUNCTIONS, _SELECTS)))
def test_a_time_that_no_calendar_has_ends_its_row_only(function: str, select: str) -> None:
    outcome = _run(
        f"CREATE STREAM s1 TRIGGER AT_ONCE INTO out1 AS {select.format(function.format('cast(a AS TIMESTAMP)'))}"
    )
    assert outcome.rows


@pytest.mark.parametrize("window", ["INTERVAL(10s)", "SESSION(ts, 10s)"])
def test_a_child_name_that_cannot_be_worked_out_is_the_automatic_one(window: str) -> None:
    name = "SUBTABLE(to_iso8601(cast(k AS TIMESTAMP)))"
    outcome = _run(
        f"CREATE STREAM s1 TRIGGER AT_ONCE INTO out1 {name} AS SELECT _wstart, count(*) n FROM d1 PARTITION BY a AS k {window}"
    )
    assert len(outcome.rows) == len(_VALUES) + 2
    assert len(outcome.tables) == len(_VALUES) + 2
