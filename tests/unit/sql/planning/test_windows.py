"""The window clause: what becomes of it, and its limits."""

from __future__ import annotations

import dataclasses

import pytest

from penstock.sql.plan import Count, Duration, Event, Interval, Session, State, Window
from penstock.sql.planning.windows import MOST_WINDOWS_PER_ROW, check_length, plan_window
from penstock.types import ColumnType
from tests.unit.sql.planning.binding import MET, bound, context, refused_at, statement


def window(clause: str, precision: str = "ms") -> Window:
    made = statement(f"count(*) FROM met {clause}")
    source = dataclasses.replace(MET, precision=precision)
    node = bound(made, source).window
    assert node is not None
    return plan_window(node, context(made, source))


def length(text: str) -> Duration:
    return Duration(int(text[:-1]), text[-1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("clause", "wanted"),
    [
        ("INTERVAL(10s)", Interval(length("10s"), length("10s"))),
        ("INTERVAL(10a)", Interval(length("10a"), length("10a"))),
        ("INTERVAL(10s, 2s)", Interval(length("10s"), length("10s"), length("2s"))),
        ("INTERVAL(10s, 0s)", Interval(length("10s"), length("10s"))),
        ("INTERVAL(10s) SLIDING(5s)", Interval(length("10s"), length("5s"))),
        ("INTERVAL(1y) SLIDING(12n)", Interval(length("1y"), length("12n"))),
        ("INTERVAL(1n) SLIDING(1d)", Interval(length("1n"), length("1d"))),
        ("INTERVAL(1n, 3d)", Interval(length("1n"), length("1n"), length("3d"))),
        (
            f"INTERVAL({MOST_WINDOWS_PER_ROW}s) SLIDING(1s)",
            Interval(length(f"{MOST_WINDOWS_PER_ROW}s"), length("1s")),
        ),
        ("SESSION(ts, 10s)", Session(length("10s"))),
        ("SESSION(met._rowts, 10s)", Session(length("10s"))),
        ("STATE_WINDOW(AMPS)", State("Amps", ColumnType("INT"))),
        ("STATE_WINDOW(d > 1) TRUE_FOR(3s)", State("d > 1", ColumnType("BOOL"), length("3s"))),
        ("STATE_WINDOW(s) TRUE_FOR(0s)", State("s", ColumnType("VARCHAR", length=20))),
        (
            "EVENT_WINDOW START WITH amps > b END WITH amps < 1 TRUE_FOR(1s)",
            Event("Amps > b", "Amps < 1", ("Amps", "b"), ("Amps",), length("1s")),
        ),
        ("EVENT_WINDOW START WITH b END WITH 1", Event("b", "1", ("b",), ())),
        ("COUNT_WINDOW(2)", Count(2, 2)),
        ("COUNT_WINDOW(2147483647, 1)", Count(2147483647, 1)),
    ],
)
def test_a_clause_becomes_a_window(clause: str, wanted: Window) -> None:
    assert window(clause) == wanted


@pytest.mark.parametrize(
    ("clause", "code", "at"),
    [
        ("INTERVAL(9a)", "E_INTERVAL_TOO_SMALL", "9a)"),
        ("INTERVAL(10000001u)", "E_INTERVAL_PRECISION", "10000001u)"),
        ("INTERVAL(10s, 10s)", "E_OFFSET_GE_INTERVAL", "10s)"),
        ("INTERVAL(10s, 1u)", "E_INTERVAL_PRECISION", "1u)"),
        ("INTERVAL(10s, AUTO)", "E_OFFSET_AUTO", "INTERVAL(10s"),
        ("INTERVAL(1y, 1n)", "E_OFFSET_UNIT", "1n)"),
        ("INTERVAL(10s) SLIDING(11s)", "E_SLIDING_GT_INTERVAL", "11s)"),
        ("INTERVAL(1y) SLIDING(13n)", "E_SLIDING_GT_INTERVAL", "13n)"),
        ("INTERVAL(10s) SLIDING(0s)", "E_SLIDING_TOO_SMALL", "0s)"),
        (
            f"INTERVAL({MOST_WINDOWS_PER_ROW + 1}s) SLIDING(1s)",
            "E_SLIDING_TOO_SMALL",
            "1s)",
        ),
        ("INTERVAL(60d) SLIDING(1n)", "E_SLIDING_UNIT", "1n)"),
        ("INTERVAL(10s) SLIDING(1500u)", "E_INTERVAL_PRECISION", "1500u)"),
        ("SESSION(amps, 10s)", "E_SESSION_COLUMN", "amps, 10s)"),
        ("SESSION(ts + 1s, 10s)", "E_SESSION_COLUMN", "ts + 1s, 10s"),
        ("SESSION(ts, 0s)", "E_SESSION_GAP", "0s)"),
        ("SESSION(ts, 1n)", "E_SESSION_GAP", "1n)"),
        ("SESSION(ts, 1500u)", "E_INTERVAL_PRECISION", "1500u)"),
        ("STATE_WINDOW(d)", "E_STATE_TYPE", "d)"),
        ("STATE_WINDOW(ta)", "E_STATE_COLUMN", "ta)"),
        ("STATE_WINDOW(tbname)", "E_STATE_COLUMN", "tbname)"),
        ("STATE_WINDOW(amps) TRUE_FOR(1n)", "E_DURATION", "1n)"),
        ("EVENT_WINDOW START WITH s END WITH b", "E_EVENT_CONDITION", "s END WITH b"),
        ("EVENT_WINDOW START WITH b END WITH ts", "E_EVENT_CONDITION", "ts"),
        ("COUNT_WINDOW(1)", "E_COUNT_SIZE", "1)"),
        ("COUNT_WINDOW(-2)", "E_COUNT_SIZE", "-2)"),
        ("COUNT_WINDOW(2147483648)", "E_COUNT_SIZE", "2147483648)"),
        ("COUNT_WINDOW(3, 4)", "E_COUNT_SLIDING", "4)"),
        ("COUNT_WINDOW(3, 0)", "E_COUNT_SLIDING", "0)"),
    ],
)
def test_a_clause_beyond_a_limit_is_refused_where_it_stands(
    clause: str, code: str, at: str
) -> None:
    made = statement(f"count(*) FROM met {clause}")
    node = bound(made).window
    assert node is not None
    assert refused_at(made, lambda: plan_window(node, context(made))) == (code, at[:12])


def test_whole_ticks_depend_on_the_precision() -> None:
    assert window("INTERVAL(10001u)", "us") == Interval(length("10001u"), length("10001u"))


def test_a_length_is_fixed_and_of_whole_ticks() -> None:
    made = statement("1 FROM met")
    of = context(made)
    assert check_length(of, length("1w"), "WATERMARK", None) == length("1w")
    assert refused_at(made, lambda: check_length(of, length("1n"), "X", 0))[0] == "E_DURATION"
    code = refused_at(made, lambda: check_length(of, length("1u"), "X", 0))[0]
    assert code == "E_INTERVAL_PRECISION"
