"""The select list of a stream without window."""

from __future__ import annotations

import pytest

from penstock.sql.planning.select.rows import select_rows
from penstock.sql.planning.view import TableDef
from tests.unit.sql.planning.binding import MET, TAGGED, bound, context, refused_at, statement


def outputs(items: str, source: TableDef = MET) -> list[tuple[str, str, str]]:
    made = statement(f"{items} FROM met")
    listed = select_rows(context(made, source), bound(made, source))
    assert listed.filled == [False] * len(listed.outputs)
    assert not listed.aggregates
    return [(o.name, o.sql, str(o.type)) for o in listed.outputs]


def test_items_are_bound_and_typed() -> None:
    assert outputs("TS, amps + 1 AS n, tbname") == [
        ("ts", "ts", "TIMESTAMP"),
        ("n", "Amps + 1", "DOUBLE"),
        ("tbname", "tbname", "VARCHAR(192)"),
    ]
    assert [name for name, _, _ in outputs("*")] == ["ts", "Amps", "b", "d", "s", "ta", "tb"]


def test_a_value_from_json_may_be_a_column_once_it_is_text() -> None:
    assert outputs("ts, CAST(j -> 'k' AS VARCHAR(5)) AS k", TAGGED)[1] == (
        "k",
        "CAST(j -> 'k' AS VARCHAR(5))",
        "VARCHAR(5)",
    )


@pytest.mark.parametrize(
    ("items", "code", "at"),
    [
        ("ts, 1 + count(*)", "E_NONWINDOW_AGG", "count(*) FRO"),
        ("ts, _wstart", "E_UNKNOWN_COLUMN", "_wstart FROM"),
        ("ts, _wend - 1", "E_UNKNOWN_COLUMN", "_wend - 1 FR"),
        ("ts, j", "E_UNSUPPORTED_QUERY", "j FROM met"),
        ("ts, j -> 'k'", "E_UNSUPPORTED_QUERY", "j -> 'k' FRO"),
        ("ts, nosuch", "E_UNKNOWN_COLUMN", "nosuch FROM "),
    ],
)
def test_what_needs_a_window_is_refused(items: str, code: str, at: str) -> None:
    made = statement(f"{items} FROM met")
    call = lambda: select_rows(context(made, TAGGED), bound(made, TAGGED))  # noqa: E731
    assert refused_at(made, call) == (code, at)
