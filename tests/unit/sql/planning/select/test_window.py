"""The select list of a stream with a window: aggregates, keys and window times taken apart."""

from __future__ import annotations

import pytest

from penstock.sql.plan import Duration, Interval
from penstock.sql.planning.select.window import WindowSelect
from penstock.sql.planning.view import TableDef
from tests.unit.sql.planning.binding import (
    MET,
    TAGGED,
    bound,
    context,
    keys_of,
    refused_at,
    select_list,
    statement,
)

Parts = tuple[list[tuple[str, str | None, str | None]], list[str]]


def parts(items: str, clause: str = "INTERVAL(1s)", source: TableDef = MET) -> Parts:
    """Function, argument and chooser of each aggregate; the text of each output."""
    listed, _ = select_list(statement(f"{items} FROM met {clause}"), source)
    return [(a.function, a.sql, a.of) for a in listed.aggregates], [o.sql for o in listed.outputs]


def test_equal_aggregates_are_computed_once() -> None:
    assert parts("max(amps), MAX(Amps) + min(b), max(b)") == (
        [("max", "Amps", None), ("min", "b", None), ("max", "b", None)],
        ["_a0", "_a0 + _a1", "_a2"],
    )


def test_keys_and_window_times_are_no_aggregates() -> None:
    found = parts(
        "_WSTART, ta + 1, k, _group_key(ta), _wduration, count(*)",
        "PARTITION BY ta, Amps + b AS k INTERVAL(1s)",
    )
    assert found == (
        [("count", None, None)],
        ["_wstart", "_k0 + 1", "_k1", "_k0", "_wduration", "_a0"],
    )


def test_a_plain_column_takes_the_row_of_the_one_chooser() -> None:
    assert parts("max(amps), b, s, b + 1, count(*)") == (
        [
            ("max", "Amps", None),
            ("companion", "b", "_a0"),
            ("companion", "s", "_a0"),
            ("count", None, None),
        ],
        ["_a0", "_a1", "_a2", "_a1 + 1", "_a3"],
    )


def test_cols_takes_the_row_of_its_own_chooser() -> None:
    listed = "cols(max(amps), b, d * 2 AS t), cols(min(b), b), cols(MAX(amps), b), last(d), s"
    assert parts(listed) == (
        [
            ("max", "Amps", None),
            ("companion", "b", "_a0"),
            ("companion", "d * 2", "_a0"),
            ("min", "b", None),
            ("companion", "b", "_a3"),
            ("last", "d", None),
            ("companion", "s", "_a5"),
        ],
        ["_a1", "_a2", "_a4", "_a1", "_a5", "_a6"],
    )
    assert parts("cols(max(b), s), max(b), s") == (
        [("max", "b", None), ("companion", "s", "_a0"), ("companion", "s", "_a0")],
        ["_a1", "_a0", "_a2"],
    ), "the same call chooses for the list, too"


def test_a_state_is_the_same_in_every_row_of_its_window() -> None:
    assert parts("amps, count(*)", "PARTITION BY tbname STATE_WINDOW(Amps)") == (
        [("first", "Amps", None), ("count", None, None)],
        ["_a0", "_a1"],
    )
    assert parts("Amps > 1, count(*)", "PARTITION BY tbname STATE_WINDOW(Amps > 1)")[0] == [
        ("first", "Amps > 1", None),
        ("count", None, None),
    ]


def test_outputs_made_of_aggregates_are_filled() -> None:
    listed, _ = select_list(
        statement("_wstart, ta, 7, count(*), 1 + max(b) FROM met PARTITION BY ta INTERVAL(1s)")
    )
    assert listed.filled == [False, False, False, True, True]
    assert [o.name for o in listed.outputs] == ["_wstart", "ta", "7", "count(*)", "1 + max(b)"]
    assert [str(o.type) for o in listed.outputs] == [
        "TIMESTAMP",
        "INT",
        "INT",
        "BIGINT",
        "DOUBLE",
    ]


@pytest.mark.parametrize(
    ("items", "clause", "at"),
    [
        ("_wstart, ta", "PARTITION BY ta INTERVAL(1s)", "_wstart, ta "),
        ("amps, max(b), min(d)", "INTERVAL(1s)", "amps, max(b)"),
        ("count(*), amps + 1", "INTERVAL(1s)", "amps + 1 FRO"),
        ("cols(max(b), b), amps", "INTERVAL(1s)", "amps FROM me"),
        ("count(*), _group_key(amps)", "INTERVAL(1s)", "_group_key(a"),
        ("count(*), _group_key(ta, b)", "PARTITION BY ta INTERVAL(1s)", "_group_key(t"),
    ],
)
def test_a_list_that_no_window_has_is_refused(items: str, clause: str, at: str) -> None:
    made = statement(f"{items} FROM met {clause}")
    assert refused_at(made, lambda: select_list(made)) == ("E_UNSUPPORTED_QUERY", at)


def test_no_result_column_is_json() -> None:
    made = statement("count(*), j -> 'k' FROM met PARTITION BY tbname INTERVAL(1s)")
    assert refused_at(made, lambda: select_list(made, TAGGED))[0] == "E_UNSUPPORTED_QUERY"


def test_a_select_list_is_taken_apart_for_any_window() -> None:
    made = statement("max(b), amps FROM met PARTITION BY ta INTERVAL(1s)")
    second = Duration(1, "s")
    taking = WindowSelect(context(made), keys_of(made), Interval(second, second))
    listed = taking.run(bound(made))
    assert [(a.name, a.function, a.of) for a in listed.aggregates] == [
        ("_a0", "max", None),
        ("_a1", "companion", "_a0"),
    ]
