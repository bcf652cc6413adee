"""executemany's INSERTs of many rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.dbapi.many import ROWS, fold


def test_a_row_of_placeholders_is_written_for_every_row() -> None:
    found = fold("INSERT INTO t (ts, a) VALUES (?, ?)", [(1, "x"), (2, "y")])
    assert found is not None
    assert list(found) == [
        ("INSERT INTO t (ts, a) VALUES (?, ?), (?, ?)", [1, "x", 2, "y"]),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t (ts, a) SELECT ts, a FROM u WHERE a = ?",
        "INSERT INTO t VALUES (?, 1)",
        "INSERT INTO t VALUES (?, ?) (?, ?)",
        "INSERT INTO t VALUES (now(), 'values (?, ?)')",
        "DELETE FROM t WHERE ts = ?",
        "SELECT 'INSERT INTO t VALUES', (?, ?)",
    ],
)
def test_other_statements_stay_one_by_one(sql: str) -> None:
    assert fold(sql, [(1, 2)]) is None


def test_rows_of_another_width_are_for_the_gateway_to_refuse() -> None:
    assert fold("INSERT INTO t VALUES (?, ?)", [(1, 2), (3,)]) is None


@given(st.integers(0, 3 * ROWS), st.integers(1, 4))
def test_every_value_is_sent_once_and_in_order(count: int, width: int) -> None:
    rows = [tuple(range(i * width, (i + 1) * width)) for i in range(count)]
    marks = ", ".join("?" * width)
    found = fold(f"insert into t values ( {marks} ) ;", rows)
    assert found is not None
    sent = list(found)
    assert [v for _, values in sent for v in values] == [v for row in rows for v in row]
    for sql, values in sent:
        assert sql.count("?") == len(values) <= ROWS * width
