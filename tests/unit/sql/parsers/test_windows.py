"""Window clauses and FILL as the grammar reads them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.parsers.windows import WindowParser
from tests.unit.sql.reading import read, refused


class Alone(WindowParser):
    """The grammar without queries."""

    def query(self) -> exp.Query:
        raise AssertionError("there is no query in a window")

    def _select_item(self) -> exp.Expr:
        raise AssertionError("there is no cols() in a window")


class Clauses(Alone):
    """The clauses of a window alone."""

    def clauses(self) -> tuple[Any, Any]:
        """The window and FILL behind it, if there are any."""
        return self._window(), self._fill() if self.sees("FILL") else None


def clauses(text: str) -> tuple[Any, Any]:
    found = read(Clauses, text, Clauses.clauses)
    assert isinstance(found, tuple)
    return found


def window(text: str) -> Any:
    return clauses(text)[0]


@pytest.mark.parametrize(
    ("clause", "kind"),
    [
        ("INTERVAL(10s)", nodes.IntervalWindow),
        ("INTERVAL(10s, 2s) SLIDING(5s)", nodes.IntervalWindow),
        ("INTERVAL(1n, AUTO)", nodes.IntervalWindow),
        ("SESSION(ts, 10s)", nodes.SessionWindow),
        ("STATE_WINDOW(a > 1)", nodes.StateWindow),
        ("STATE_WINDOW(a) TRUE_FOR(1s)", nodes.StateWindow),
        ("EVENT_WINDOW START WITH a > 1 END WITH a < 1", nodes.EventWindow),
        ("EVENT_WINDOW START WITH a END WITH b TRUE_FOR(3s)", nodes.EventWindow),
        ("COUNT_WINDOW(10)", nodes.CountWindow),
        ("COUNT_WINDOW(10, 2)", nodes.CountWindow),
    ],
)
def test_a_window_is_read_and_written_alike(clause: str, kind: type[nodes.WindowClause]) -> None:
    found = window(clause)
    assert type(found) is kind
    assert to_sql(found) == clause
    assert window(clause.lower().replace("auto", "AUTO")) == found
    assert (found.meta["start"], found.meta["end"]) == (0, len(clause))


def test_the_parts_of_an_interval_are_told_apart() -> None:
    found = window("INTERVAL(10s, 2s) SLIDING('5s')")
    assert [str(found.args[k].duration) for k in ("size", "offset", "sliding")] == [
        "10s",
        "2s",
        "5s",
    ]
    assert window("INTERVAL(1w, AUTO)").args["offset"] == exp.Var(this="AUTO")


def test_a_negative_count_is_left_to_the_planner() -> None:
    found = window("COUNT_WINDOW(-3, 0)")
    assert found.args["size"] == exp.Neg(this=exp.Literal.number(3))
    assert found.args["sliding"] == exp.Literal.number(0)


@pytest.mark.parametrize("mode", ["NONE", "NULL", "NULL_F", "PREV", "NEXT", "LINEAR"])
def test_a_fill_mode_stands_alone(mode: str) -> None:
    found = clauses(f"INTERVAL(1s) FILL({mode.lower()})")[1]
    assert found == nodes.Fill(mode=mode, values=None)
    assert to_sql(found) == f"FILL({mode})"


@pytest.mark.parametrize("mode", ["VALUE", "VALUE_F"])
def test_fill_with_values_takes_any_expression(mode: str) -> None:
    found = clauses(f"INTERVAL(1s) FILL({mode}, 1, -2, 'x')")[1]
    assert [to_sql(v) for v in found.args["values"]] == ["1", "-2", "'x'"]


REFUSED = [
    ("INTERVAL(10)", 10, "expected a length of time such as 10s, found 10"),
    ("INTERVAL(10s", 13, 'expected "," or ")", but the statement ends'),
    ("INTERVAL(10s) SLIDING 5s", 23, 'expected "(", found 5'),
    ("SLIDING(5s)", 1, "SLIDING needs INTERVAL before it"),
    ("SESSION(ts)", 11, 'expected ",", found )'),
    ("EVENT_WINDOW END WITH a", 14, "expected START, found END"),
    ("EVENT_WINDOW START WITH a", 26, "expected END, but the statement ends"),
    ("STATE_WINDOW(a) TRUE_FOR(1)", 26, "expected a length of time such as 10s, found 1"),
    ("COUNT_WINDOW(1.5)", 14, "expected a whole number, found 1.5"),
    ("INTERVAL(1s) FILL(VALUE)", 24, "FILL(VALUE) needs values"),
    ("INTERVAL(1s) FILL(LAST)", 19, "expected a FILL mode, found LAST"),
    ("INTERVAL(1s) FILL(PREV, 1)", 23, 'expected "," or ")", found ,'),
]


@pytest.mark.parametrize(("clause", "column", "message"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_fault_in_a_window_is_refused_at_its_place(
    clause: str, column: int, message: str
) -> None:
    assert refused(lambda: clauses(clause)) == ("E_SYNTAX", 1, column, message)


class Points(Alone):
    """RANGE and FILL behind it."""

    def clauses(self) -> tuple[Any, Any]:
        return self._range(), self._fill(ranged=True) if self.sees("FILL") else None


@pytest.mark.parametrize(
    "text",
    [
        "RANGE('2024-01-01')",
        "RANGE(now() - 1h, now()) EVERY(10s)",
        "RANGE(1, 2, 1d) EVERY(1a)",
        "RANGE('2024-01-01', 1d)",
    ],
)
def test_points_in_time_are_read_and_written_alike(text: str) -> None:
    found = read(Points, text, Points.clauses)
    assert isinstance(found, tuple)
    assert to_sql(found[0]) == text


def test_a_length_behind_a_point_is_what_is_around_it() -> None:
    found = read(Points, "RANGE('2024-01-01', 1d) FILL(NEAR, 1, NULL)", Points.clauses)
    assert isinstance(found, tuple)
    points, fill = found
    assert points.args.get("end") is None
    assert to_sql(points.args["around"]) == "1d"
    assert to_sql(fill) == "FILL(NEAR, 1, NULL)"


@pytest.mark.parametrize(
    ("text", "column"),
    [("RANGE()", 7), ("RANGE(1, 2, 3)", 13), ("RANGE(1) EVERY(x)", 16), ("RANGE(1", 8)],
)
def test_points_that_cannot_be_read_are_refused(text: str, column: int) -> None:
    assert refused(lambda: read(Points, text, Points.clauses))[:3] == ("E_SYNTAX", 1, column)
