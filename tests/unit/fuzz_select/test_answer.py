"""The plain-Python answers, against answers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.fuzz_select import operations
from tests.fuzz_select.answer import Answerer
from tests.fuzz_select.tree import (
    Aggregate,
    Apply,
    Derived,
    Exists,
    InQuery,
    Join,
    Ordered,
    Query,
    Select,
    TableSource,
    Union,
    Value,
    Window,
    WindowColumn,
)
from tests.unit.fuzz_select.kit import column, compared, number, row, world

M = TableSource("m", "m")
INT = column("i")
WORLD = world(
    row("a", 0, i=1, s="x", g="north"),
    row("a", 1000, i=None, s="y", g="north"),
    row("b", 500, i=3, s="x", g="south", d=math.nan),
    row("b", 6000, i=3, s=None, g="south", d=0.5),
)
COUNT = Aggregate("BIGINT", "count", None)
START = WindowColumn("TIMESTAMP", "_wstart")
END = WindowColumn("TIMESTAMP", "_wend")


def answer(query: Query) -> list[Any]:
    return Answerer(WORLD, "UTC").answer(query)


def test_where_keeps_what_is_true() -> None:
    condition = compared(">", INT, number(1))
    assert answer(Select((INT,), M, condition)) == [(3,), (3,)]
    negated = Apply(operations.LOGIC[2], (condition,))
    assert answer(Select((INT,), M, negated)) == [(1,)]


def test_groups_and_having() -> None:
    s = column("s", "VARCHAR")
    select = Select((s, COUNT), M, group=(s,))
    assert answer(select) == [("x", 2), ("y", 1), (None, 1)]
    more = compared(">", COUNT, number(1))
    assert answer(Select((s, COUNT), M, group=(s,), having=more)) == [("x", 2)]


def test_a_select_of_aggregates_has_a_row_even_without_rows() -> None:
    never = compared("=", INT, number(9))
    total = Aggregate("BIGINT", "sum", INT)
    assert answer(Select((COUNT, total), M, never)) == [(0, None)]
    assert answer(Select((COUNT,), M, never, group=(INT,))) == []


def test_aggregates_skip_nan() -> None:
    d = column("d", "DOUBLE")
    items = (Aggregate("BIGINT", "count", d), Aggregate("DOUBLE", "max", d))
    assert answer(Select(items, M)) == [(1, 0.5)]


@pytest.mark.parametrize(
    ("values", "kind", "total"),
    [([2**62, 2**62], "BIGINT", None), ([2**62, 2**62], "BIGINT UNSIGNED", 2**63)],
)
def test_a_sum_that_does_not_fit_is_null(values: list[int], kind: str, total: Any) -> None:
    rows = [row("a", i, b=value) for i, value in enumerate(values)]
    select = Select((Aggregate("BIGINT", "sum", column("b", kind)),), M)
    assert Answerer(world(*rows), "UTC").answer(select) == [(total,)]


def test_order_limit_and_distinct() -> None:
    order = (Ordered(0, descending=True, nulls_first=None),)
    assert answer(Select((INT,), M, order=order)) == [(3,), (3,), (1,), (None,)]
    first = (Ordered(0, descending=False, nulls_first=True),)
    assert answer(Select((INT,), M, distinct=True, order=first, limit=2)) == [(None,), (1,)]
    assert answer(Select((INT,), M, order=order, limit=5, offset=3)) == [(None,)]


def test_limits_count_in_each_partition() -> None:
    name = column("tbname", "VARCHAR")
    order = (Ordered(1, descending=False, nulls_first=None),)
    select = Select((name, INT), M, partition=(name,), order=order, limit=1)
    assert sorted(answer(select)) == [("a", 1), ("b", 3)]


def test_joins_keep_what_has_no_partner() -> None:
    one, two = column("s", "VARCHAR", "q1"), column("s", "VARCHAR", "q2")
    left = TableSource("a", "q1")
    right = TableSource("b", "q2")

    def joined(side: str) -> list[Any]:
        found = answer(Select((one, two), Join(left, right, side, compared("=", one, two))))
        return sorted(found, key=str)

    assert joined("INNER") == [("x", "x")]
    assert joined("LEFT") == [("x", "x"), ("y", None)]
    assert joined("RIGHT") == [("x", "x"), (None, None)]
    assert joined("FULL") == [("x", "x"), ("y", None), (None, None)]
    assert len(answer(Select((one,), Join(left, right, "CROSS", None)))) == 4


def test_subqueries() -> None:
    inner = Select((column("i", "INT", "q1"),), TableSource("m", "q1"))
    is_in = InQuery(number(9), inner)
    # of the NULL among them nobody knows whether it is 9
    assert answer(Select((INT,), M, Apply(operations.LOGIC[2], (is_in,)))) == []
    assert answer(
        Select((Aggregate("BIGINT", "sum", column("c0", "INT", "q")),), Derived(inner, "q"))
    ) == [(7,)]
    theirs = column("s", "VARCHAR", "q1")
    same = compared("=", theirs, column("s", "VARCHAR"))
    y = compared("=", theirs, Value("VARCHAR", "y", "'y'"))
    found = Exists(
        Select((number(1),), TableSource("a", "q1"), Apply(operations.LOGIC[0], (same, y)))
    )
    assert answer(Select((column("s", "VARCHAR"),), M, found)) == [("y",)]


def test_union() -> None:
    select = Select((INT,), M)
    once = answer(Union(select, select, every=False))
    assert sorted(once, key=str) == [(1,), (3,), (None,)]
    assert len(answer(Union(select, select, every=True))) == 8


@pytest.mark.parametrize(
    ("window", "rows"),
    [
        (Window("INTERVAL", 1000), [(0, 1000, 2), (1000, 2000, 1), (6000, 7000, 1)]),
        (Window("INTERVAL", 1000, offset=500), [(-500, 500, 1), (500, 1500, 2), (5500, 6500, 1)]),
        (
            Window("INTERVAL", 2000, sliding=1000),
            [(-1000, 1000, 2), (0, 2000, 3), (1000, 3000, 1), (5000, 7000, 1), (6000, 8000, 1)],
        ),
        (Window("INTERVAL", days=1), [(0, 86_400_000, 4)]),
        (Window("SESSION", 500), [(0, 1500, 3), (6000, 6500, 1)]),
        (Window("SESSION", 499), [(0, 499, 1), (500, 999, 1), (1000, 1499, 1), (6000, 6499, 1)]),
        (Window("COUNT_WINDOW", numbers=(3, 2)), [(0, 1000, 3), (1000, 6000, 2)]),
        (Window("STATE_WINDOW", of=(INT,)), [(0, 0, 1), (500, 6000, 2)]),
        (Window("STATE_WINDOW", of=(INT,), true_for=1), [(500, 6000, 2)]),
        (
            Window(
                "EVENT_WINDOW",
                of=(compared("=", INT, number(1)), compared("=", INT, number(3))),
            ),
            [(0, 500, 2)],
        ),
    ],
)
def test_windows(window: Window, rows: list[Any]) -> None:
    assert answer(Select((START, END, COUNT), M, window=window)) == rows


def test_days_of_windows_are_local() -> None:
    """On 2024-03-31 a day of Berlin has 23 hours."""
    noon = 1_711_882_800_000
    select = Select((START, END), M, window=Window("INTERVAL", days=1))
    (found,) = Answerer(world(row("a", noon)), "Europe/Berlin").answer(select)
    assert found == (1_711_839_600_000, 1_711_839_600_000 + 23 * 3_600_000)
