"""One plan for all values of a statement's parameters: with any of them it answers as a plan of
its own would.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.rows.parameters import Moment
from tests.nightly import drawn
from tests.unit.services.store.test_free_literals import (
    SHAPES,
    TIMES,
    WHERES,
    WORDS,
    Asked,
    Planned,
    asked,
)

__all__ = ["asked"]

#: what an atom leaves open → parameters in its place
PARAMETERS: dict[str, st.SearchStrategy[Any]] = {
    "T": TIMES.flatmap(lambda form: st.integers(0, 9).map(lambda s: form.format(s)[1:-1]))
    | st.integers(0, 9).map(lambda s: Moment(f"1970-01-01T00:00:0{s}"))
    | st.sampled_from([Moment("1969-12-31T23:59:58.5Z"), Moment("9999-12-31"), 5000, None]),
    "W": st.integers(-2, 9) | st.sampled_from([5000, 10**15, 2**63 - 1, Decimal(3), None, True]),
    "R": st.sampled_from([0.5, -0.5, 1e-7, 7919.0625, Decimal("0.75"), 3]),
    "V": st.sampled_from(WORDS) | st.text("ab'\\$1%-;", max_size=4) | st.just(5),
}


@given(
    st.sampled_from(SHAPES),
    WHERES,
    st.sampled_from(["p_ms", "p_us", "p_ns"]),
    st.sampled_from(["UTC", "Asia/Shanghai"]),
    st.data(),
)
@settings(max_examples=drawn(12), deadline=None)
def test_other_parameters_are_answered_as_by_a_plan_of_their_own(
    asked: Asked, shape: str, where: str, table: str, timezone: str, data: st.DataObject
) -> None:
    open_text = shape.format(table=table, where=where)
    kinds = re.findall(r"\{([TWRV])\}", open_text)
    sql = re.sub(r"\{[TWRV]\}", "?", open_text).replace("LIKE ?", "LIKE 'a'").replace("?d", "3d")
    for _ in range(4):
        values = [data.draw(PARAMETERS[kind]) for kind in kinds][: sql.count("?")]
        assert asked.ask(sql, timezone, values) == asked.ask_anew(sql, timezone, values), values


def test_a_statement_with_parameters_is_planned_twice_and_then_never(asked: Asked) -> None:
    in_order = "SELECT t, i FROM p_ms WHERE t >= ? AND t < ? AND d < ? AND w <> ? AND i < 100"
    named = "SELECT t, i FROM p_us WHERE t >= :from AND (d > :x OR d < :x)"
    Planned.count = 0
    for number in range(6):
        moment = Moment(f"1970-01-01T00:00:0{number}Z")
        assert asked.ask(in_order, "UTC", [moment, 60_000 + number, number + 0.5, f"x{number}"])[1]
        assert asked.ask(named, "UTC", {"from": moment, "x": number + 0.5})[1]
    assert Planned.count == 4


def test_a_text_is_not_answered_by_the_plan_of_one_with_parameters(asked: Asked) -> None:
    sql = "SELECT i FROM p_ms WHERE i = ?"
    for number in (1, 2, 3):
        assert asked.ask(sql, "UTC", [number])[1] == [{"i": number}]
    for wrong in (f"{sql}5", sql, f"{sql} 5"):
        assert asked.ask(wrong)["code"] in ("E_SYNTAX", "E_PARAMETER")
    for parameters in ([], [1, 2], {"a": 1}):
        assert asked.ask(sql, "UTC", parameters)["code"] == "E_PARAMETER"


def test_a_parameter_that_decides_more_than_rows_has_a_plan_of_its_own(asked: Asked) -> None:
    sql = "SELECT i, ? AS x FROM p_ms WHERE i >= 0 ORDER BY t LIMIT ?"
    for value, rows in ((1, 2), ("a", 1), (1, 3), (None, 2), (1.5, 1), (b"a", 1)) * 2:
        made = asked.ask(sql, "UTC", [value, rows])
        assert made == asked.ask_anew(sql, "UTC", [value, rows])
        assert [row["x"] for row in made[1]] == [value] * rows
