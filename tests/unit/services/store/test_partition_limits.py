"""LIMIT in each partition and SLIMIT over partitions: of rows, of groups and of windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import SqlError
from tests.unit.services.store.kit import STABLE
from tests.unit.services.store.test_query_run import Asking

ROWS = (
    ("d1", 1_000, 10, "x", 1),
    ("d2", 2_000, 20, "y", 2),
    ("d1", 3_000, 30, "x", 1),
    ("d3", 4_000, 5, "z", 1),
    ("d2", 5_000, 1, "y", 2),
    ("d1", 6_000, 7, "q", 1),
)


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    made = Asking(tmp_path)
    made.put(STABLE, *ROWS)
    return made


def answer(asking: Asking, rest: str) -> list[tuple[Any, ...]]:
    return [
        tuple(int(x) if x.__class__.__name__ == "Decimal" else x for x in row)
        for row in asking.rows(rest)
    ]


@pytest.mark.parametrize(
    ("tail", "wanted"),
    [
        ("LIMIT 1", [("d1", 10), ("d2", 20), ("d3", 5)]),
        ("LIMIT 0", []),
        ("LIMIT 9 OFFSET 1", [("d1", 30), ("d2", 1), ("d1", 7)]),
        ("LIMIT 1, 1", [("d1", 30), ("d2", 1)]),
        ("ORDER BY v DESC LIMIT 1", [("d1", 30), ("d2", 20), ("d3", 5)]),
        ("ORDER BY 2 LIMIT 1", [("d2", 1), ("d3", 5), ("d1", 7)]),
        ("ORDER BY v DESC LIMIT 1 OFFSET 1", [("d1", 10), ("d2", 1)]),
        ("SLIMIT 1", [("d1", 10), ("d1", 30), ("d1", 7)]),
        ("SLIMIT 2 SOFFSET 1 LIMIT 1", [("d2", 20), ("d3", 5)]),
        ("SOFFSET 2", [("d3", 5)]),
    ],
)
def test_rows_of_partitions(asking: Asking, tail: str, wanted: list[Any]) -> None:
    assert asking.rows(f"SELECT tbname, v FROM meters PARTITION BY tbname {tail}") == wanted


def test_rows_keep_their_columns_and_types(asking: Asking) -> None:
    found = asking.result("SELECT * FROM meters PARTITION BY tbname LIMIT 1")
    assert found.schema.names == ["ts", "v", "w", "g"]
    assert found.schema.field("w").metadata == {b"type": b"VARCHAR(16)"}


def test_a_condition_comes_before_and_partitions_may_be_computed(asking: Asking) -> None:
    sql = "SELECT v FROM meters WHERE v >= 7 PARTITION BY g + 1 ORDER BY v LIMIT 1"
    assert asking.rows(sql) == [(7,), (20,)]
    assert asking.rows("SELECT v FROM meters WHERE v > 99 PARTITION BY g LIMIT 1") == []


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("PARTITION BY tbname SLIMIT 2", [("d1", 47), ("d2", 21)]),
        ("PARTITION BY tbname ORDER BY s LIMIT 1", [("d3", 5), ("d2", 21), ("d1", 47)]),
        ("PARTITION BY tbname LIMIT 5 OFFSET 1", []),
        ("GROUP BY tbname ORDER BY s DESC LIMIT 2", [("d1", 47), ("d2", 21)]),
        ("GROUP BY tbname ORDER BY s SLIMIT 2", [("d2", 21), ("d1", 47)]),
        ("GROUP BY 1 ORDER BY sum(v) SLIMIT 2 LIMIT 1", [("d2", 21)]),
        ("GROUP BY tbname HAVING sum(v) < 40 SLIMIT 1", [("d2", 21)]),
    ],
)
def test_groups(asking: Asking, sql: str, wanted: list[Any]) -> None:
    assert answer(asking, f"SELECT tbname, sum(v) AS s FROM meters {sql}") == wanted


@pytest.mark.parametrize(
    ("tail", "wanted"),
    [
        ("LIMIT 1", [("d1", 10), ("d2", 20), ("d3", 5)]),
        ("LIMIT 1 OFFSET 1", [("d1", 30), ("d2", 1)]),
        ("ORDER BY s DESC LIMIT 1", [("d1", 30), ("d2", 20), ("d3", 5)]),
        ("SLIMIT 1", [("d1", 10), ("d1", 30), ("d1", 7)]),
        ("SLIMIT 1 SOFFSET 1 LIMIT 1", [("d2", 20)]),
        ("SOFFSET 3", []),
    ],
)
def test_windows_of_partitions(asking: Asking, tail: str, wanted: list[Any]) -> None:
    sql = f"SELECT tbname, sum(v) AS s FROM meters PARTITION BY tbname INTERVAL(2s) {tail}"
    assert asking.rows(sql) == wanted


def test_windows_of_partitions_whose_keys_are_not_selected(asking: Asking) -> None:
    select = "SELECT sum(v) AS s FROM meters"
    assert asking.rows(f"{select} PARTITION BY tbname INTERVAL(2s) LIMIT 1") == [(10,), (20,), (5,)]
    assert asking.rows(f"{select} PARTITION BY g INTERVAL(2s) SLIMIT 1 SOFFSET 1") == [(20,), (1,)]
    assert asking.rows(f"{select} WHERE v > 99 PARTITION BY g INTERVAL(2s) LIMIT 1") == []
    assert asking.rows(f"{select} INTERVAL(2s) LIMIT 2") == [(10,), (50,)]


@pytest.mark.parametrize(
    ("inner", "wanted"),
    [
        ("SELECT v AS s FROM meters PARTITION BY tbname LIMIT 1", 3),
        ("SELECT sum(v) AS s FROM meters PARTITION BY tbname", 3),
        ("SELECT sum(v) AS s FROM meters PARTITION BY tbname SLIMIT 2", 2),
        ("SELECT sum(v) AS s FROM meters PARTITION BY tbname INTERVAL(2s) LIMIT 1", 3),
    ],
)
def test_limits_of_partitions_in_a_subquery(asking: Asking, inner: str, wanted: int) -> None:
    assert asking.rows(f"SELECT count(*) AS n FROM ({inner})") == [(wanted,)]


@pytest.mark.parametrize(
    ("sql", "code", "column", "hint"),
    [
        ("SELECT v FROM meters SLIMIT 2", "E_UNSUPPORTED_QUERY", 29, "add PARTITION BY"),
        ("SELECT sum(v) FROM meters INTERVAL(2s) SOFFSET 2", "E_UNSUPPORTED_QUERY", 48, "add PAR"),
        ("SELECT DISTINCT v FROM meters PARTITION BY g LIMIT 2", "E_UNSUPPORTED_QUERY", 1, "leave"),
        (
            "SELECT v FROM meters PARTITION BY g ORDER BY 2 LIMIT 2",
            "E_QUERY",
            46,
            "1 to 1",
        ),
    ],
)
def test_limits_that_are_refused(
    asking: Asking, sql: str, code: str, column: int, hint: str
) -> None:
    with pytest.raises(SqlError) as caught:
        asking.rows(sql)
    assert (caught.value.code, caught.value.column) == (code, column)
    assert hint in caught.value.hint
