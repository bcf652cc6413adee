"""Every conformance case: the refused ones give their key, the others plan, and plans survive
JSON.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import SqlError
from penstock.sql.plan import StreamPlan
from penstock.sql.planner import PlannedStream
from tests.conformance.case import tags_of
from tests.unit.sql.memory_view import MemoryView, plan

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "conformance" / "stream-cases.json").read_text()
)


def _plan(case: dict[str, Any]) -> PlannedStream:
    return plan(case["stream"], MemoryView(*case["tables"]), timezone=case.get("timezone", "UTC"))


@pytest.mark.parametrize("case", [c for c in CASES if "expect_error" in c], ids=lambda c: c["id"])
def test_refused(case: dict[str, Any]) -> None:
    with pytest.raises(SqlError) as caught:
        _plan(case)
    if case["expect_error"] != "*":
        assert caught.value.code == case["expect_error"]
    assert caught.value.line == 1 and caught.value.column > 0 and "^" in caught.value.snippet
    assert caught.value.hint


@pytest.mark.parametrize(
    "case", [c for c in CASES if "expect_error" not in c], ids=lambda c: c["id"]
)
def test_planned(case: dict[str, Any]) -> None:
    made = _plan(case).plan
    assert StreamPlan.from_json(made.to_json()) == made
    columns = [c.name for c in made.target.columns]
    _, tags = tags_of(made.target)
    for row in case.get("expect") or []:
        assert list(row) == columns + tags
    if case["expect"]:
        keyed = re.search(r"PARTITION BY", case["stream"]) is not None
        assert keyed == bool(made.keys)
