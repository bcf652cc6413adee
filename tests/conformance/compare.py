"""Whether an outcome is what a case expects.

Floats compare to 1e-9 relative; integers and timestamps exactly; rows in their order by partition
values and first column, those that tie in any order. A case without expectations passes when it ran
to its end or was refused with a key.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tests.conformance.case import Case, Outcome, Row

TOLERANCE = 1e-9


def judge(case: Case, outcome: Outcome) -> list[str]:
    """What is wrong with *outcome*, a line each; empty when the case passes."""
    raw = case.raw
    if outcome.crash:
        return [f"could not be run: {outcome.crash}"]
    if "expect_error" in raw:
        wanted = raw["expect_error"]
        if outcome.error is None:
            return [f"accepted, expected refusal {wanted}"]
        return (
            []
            if wanted in ("*", outcome.error)
            else [f"refused with {outcome.error}, expected {wanted}"]
        )
    expects = any(k in raw for k in ("expect", "snapshots", "expect_notify", "expect_tables"))
    if outcome.error is not None:
        return [f"refused with {outcome.error}"] if expects else []
    faults: list[str] = []
    if "expect" in raw:
        faults += _rows("rows", outcome.rows, raw["expect"])
    if "snapshots" in raw:
        if len(raw["snapshots"]) != len(outcome.snapshots):
            faults.append(f"{len(outcome.snapshots)} snapshots, expected {len(raw['snapshots'])}")
        for i, (found, wanted) in enumerate(zip(outcome.snapshots, raw["snapshots"], strict=False)):
            faults += _rows(f"snapshot {i}", found, wanted)
    if "expect_notify" in raw:
        faults += _events(outcome.notify, raw["expect_notify"])
    if "expect_tables" in raw:
        faults += _tables(outcome.tables, raw["expect_tables"])
    return faults


def same(found: Any, wanted: Any) -> bool:
    """Value comparison of the format."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return type(found) is type(wanted) and found == wanted
    if isinstance(found, Decimal):
        found = float(found)
        wanted = (
            float(wanted) if isinstance(wanted, int) and not isinstance(wanted, bool) else wanted
        )
    if isinstance(found, float) or isinstance(wanted, float):
        if not isinstance(found, int | float) or not isinstance(wanted, int | float):
            return False
        return math.isclose(found, wanted, rel_tol=TOLERANCE, abs_tol=1e-12)
    return type(found) is type(wanted) and bool(found == wanted)


def _same_row(found: Row, wanted: Row) -> bool:
    return found.keys() == wanted.keys() and all(same(found[k], wanted[k]) for k in wanted)


def _rows(label: str, found: Sequence[Row], wanted: Sequence[Row]) -> list[str]:
    """Each wanted row has a found one of its own: order is checked by the values it is made of."""
    left = list(found)
    missing = []
    for row in wanted:
        match = next((i for i, f in enumerate(left) if _same_row(f, row)), None)
        if match is None:
            missing.append(row)
        else:
            left.pop(match)
    return [f"{label}: missing {json.dumps(r)}" for r in missing] + [
        f"{label}: too many {json.dumps(r, default=str)}" for r in left
    ]


def _covers(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            k in found and _covers(found[k], v) for k, v in wanted.items()
        )
    return same(found, wanted)


def _events(found: Sequence[Row], wanted: Sequence[Row]) -> list[str]:
    rest = iter(found)
    for event in wanted:
        if not any(_covers(f, event) for f in rest):
            return [
                f"notify: no {json.dumps(event)} in its place among {json.dumps(list(found), default=str)}"
            ]
    return []


def _tables(found: Sequence[str], wanted: Sequence[str]) -> list[str]:
    left = list(found)
    for pattern in wanted:
        match = next((t for t in left if re.search(pattern, t)), None)
        if match is None:
            return [f"tables: none of {left} matches {pattern}"]
        left.remove(match)
    return [f"tables: too many {left}"] if left else []
