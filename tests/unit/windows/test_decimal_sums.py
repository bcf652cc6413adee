"""Sums of DECIMAL in streams: exact, whatever the window and however often it is corrected."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.functions.exact import decimal_sum
from penstock.types import ColumnType
from tests.conformance.case import Case, Outcome
from tests.conformance.kernel_backend import KernelBackend
from tests.nightly import drawn

_BASE = 1_700_006_400_000
_WINDOWS = ("INTERVAL(10s)", "INTERVAL(10s) SLIDING(5s)", "SESSION(ts, 1s)", "COUNT_WINDOW(100)")
_DEMANDS = (
    "TRIGGER AT_ONCE IGNORE UPDATE 0",
    "TRIGGER WINDOW_CLOSE WATERMARK 1s IGNORE EXPIRED 0",
    "TRIGGER AT_ONCE FILL_HISTORY 1",
)
#: of 28 digits, ten of them behind the point
values = st.integers(-(10**28) + 1, 10**28 - 1).map(
    lambda number: Decimal(number).scaleb(-10).normalize()
)


def _rows(outcome: Outcome) -> list[dict[str, Any]]:
    assert outcome.crash is None and outcome.error is None, (outcome.crash, outcome.error)
    return outcome.rows


@pytest.mark.parametrize("digits", [1, 18, 28])
def test_the_type_of_a_sum(digits: int) -> None:
    kind = decimal_sum(ColumnType("DECIMAL", precision=digits, scale=1))
    assert str(kind) == "DECIMAL(38,1)"


@pytest.mark.parametrize(
    "kind", [ColumnType("DECIMAL", precision=29, scale=1), ColumnType("DOUBLE"), ColumnType("INT")]
)
def test_no_exact_sum(kind: ColumnType) -> None:
    assert decimal_sum(kind) is None


@settings(max_examples=drawn(25), deadline=None)
@given(
    st.lists(st.none() | values, min_size=1, max_size=12),
    st.sampled_from(_WINDOWS),
    st.sampled_from(_DEMANDS),
    st.booleans(),
)
def test_sums_are_those_of_plain_python(
    given_: list[Decimal | None], window: str, demand: str, in_pieces: bool
) -> None:
    if window.startswith("COUNT"):
        demand = "TRIGGER AT_ONCE WATERMARK 1s"
    rows = [["d1", {"ts": _BASE + n, "c": v}] for n, v in enumerate(given_)]
    events: list[Any] = [["BATCH", [row]] for row in rows] if in_pieces else [["BATCH", rows]]
    # closes the window
    events.append(["BATCH", [["d1", {"ts": _BASE + 60_000, "c": None}]]])
    outcome = KernelBackend().run(
        Case.read(
            {
                "id": "decimals",
                "tables": ["CREATE TABLE d1 (ts TIMESTAMP, c DECIMAL(28,10))"],
                "stream": f"CREATE STREAM s1 {demand} INTO out1 AS"
                f" SELECT _wstart, sum(c) s, count(c) n FROM d1 {window}",
                "events": events,
            }
        )
    )
    there = [v for v in given_ if v is not None]
    # in whole numbers, because Python rounds sums of decimals to 28 digits
    total = sum(int(v.scaleb(10)) for v in there)
    found = next(row for row in _rows(outcome) if row["n"] == len(there))
    assert found["s"] == (Decimal(f"{total}E-10") if there else None)
