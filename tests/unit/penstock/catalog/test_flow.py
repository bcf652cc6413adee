"""Where rows flow, from one table to the next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.catalog.changes.flow import leads_to


@pytest.mark.parametrize(
    ("start", "goal", "reached"),
    [(1, 1, True), (1, 4, True), (4, 1, False), (1, 9, False), (5, 6, True), (5, 5, True)],
)
def test_a_table_is_reached_by_steps(start: int, goal: int, reached: bool) -> None:
    steps = {1: [2, 3], 2: [4], 3: [4], 5: [6], 6: [5]}
    assert leads_to(start, goal, lambda table: steps.get(table, [])) is reached


@given(
    some.dictionaries(some.integers(0, 6), some.lists(some.integers(0, 6))),
    some.integers(0, 6),
    some.integers(0, 6),
)
def test_a_walk_ends_in_any_graph(steps: dict[int, list[int]], start: int, goal: int) -> None:
    reached = {start}
    for _ in range(7):
        reached |= {n for table in reached for n in steps.get(table, [])}
    assert leads_to(start, goal, lambda table: steps.get(table, [])) is (goal in reached)
