"""The mesh of the fault suite, and the table of what was seen: printed at the end, and kept in
docs/faults.md with RECORD=1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.faults.report import Report
from tests.faults.scenarios import SCENARIOS

#: 1: the part for CI; 0: all but that part; else all
QUICK = {"1": True, "0": False}.get(os.environ.get("QUICK", ""))
#: only scenarios whose name matches this
SCENARIO = os.environ.get("SCENARIO", "")
_report = Report()


@pytest.fixture(scope="session")
def report() -> Report:
    """Where tests say how long recovery took: `report.recovered(scenario, seconds, limit)`."""
    return _report


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome = yield
    result = outcome.get_result()  # type: ignore[attr-defined]
    params = getattr(getattr(item, "callspec", None), "params", {})
    if {"outcome", "check"} <= params.keys() and (
        result.when == "call" or result.outcome != "passed"
    ):
        _report.outcome(params["outcome"].name, params["check"].name, result.outcome)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _report.rows:
        terminalreporter.section("faults")
        terminalreporter.write(_report.text())
        if os.environ.get("RECORD") == "1":
            _report.record(s.name for s in SCENARIOS)
