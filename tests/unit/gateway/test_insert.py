from __future__ import annotations

from datetime import UTC

import pyarrow as pa
import pytest

from gateway import insert
from gateway.insert import BoundRows
from penstock.errors import SqlSemanticError
from penstock.sql import parse_one
from penstock.sql.statements import Insert, InsertSelect
from penstock.sql.words import TIME_FORMS
from tests.unit.gateway.test_rows import METERS, NOW


def bind(text: str, child: str | None = "d1") -> BoundRows:
    statement = parse_one(text)
    assert isinstance(statement, Insert)
    return insert.bind(statement, statement.parts[0], METERS, child, UTC, NOW * 1_000_000)


def test_all_columns_in_order_and_tags() -> None:
    made = bind(
        "INSERT INTO d1 USING m TAGS ('a') VALUES (NOW, 1, '2', 'x') (5, NULL, 3, NULL)"
    ).frame
    assert made.rows() == [("d1", 0, NOW, 1.0, 2, "x", "a"), ("d1", 0, 5, None, 3, None, "a")]


def test_named_columns_keep_what_is_stored() -> None:
    made = bind("INSERT INTO d1 (N, TS) VALUES (1, '1970-01-01 00:00:00.007')").frame
    assert made.rows() == [("d1", 2, 7, None, 1, None, None)]


def test_rows_of_several_children_by_tbname() -> None:
    made = bind("INSERT INTO m (tbname, ts, v) VALUES ('a', 1, 1) ('b', 2, 2)", None).frame
    assert made["tbname"].to_list() == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("INSERT INTO d1 VALUES (1, 2, 3, 'x') (1, 2, 'y', 'x')", "E_ROW", 38),
        ("INSERT INTO d1 VALUES (1, 2, 3)", "E_ROW", 23),
        ("INSERT INTO d1 VALUES (1, 2, 3, 'x') (1, 2, 3, 'too long')", "E_ROW", 38),
        ("INSERT INTO d1 (ts, w) VALUES (1, 2)", "E_NO_COLUMN", 13),
        ("INSERT INTO d1 (v) VALUES (1)", "E_ROW", None),
        ("INSERT INTO d1 USING m TAGS ('a', 2) VALUES (1, 2, 3, 'x')", "E_TAGS", 13),
        ("INSERT INTO d1 USING m (zone) TAGS ('a') VALUES (1, 2, 3, 'x')", "E_NO_COLUMN", 13),
    ],
)
def test_errors_point_into_the_text(text: str, code: str, column: int | None) -> None:
    with pytest.raises(SqlSemanticError) as caught:
        bind(text)
    assert caught.value.code == code
    assert column is None or caught.value.column == column


def selected(text: str, columns: dict[str, list[object]], child: str | None = None) -> BoundRows:
    statement = parse_one(text)
    assert isinstance(statement, InsertSelect)
    return insert.bind_selected(statement, pa.table(columns), METERS, child, NOW * 1_000_000)


def test_selected_columns_go_by_place_and_tbname_by_name() -> None:
    given: dict[str, list[object]] = {
        "x": [5],
        "TbName": ["d7"],
        "y": [1],
        "z": [2],
        "w": ["s"],
        "site": ["a"],
    }
    assert selected("INSERT INTO m SELECT * FROM far", given).frame.rows() == [
        ("d7", 0, 5, 1.0, 2, "s", "a")
    ]
    assert selected(
        "INSERT INTO d1 (n, ts) SELECT a, b FROM far", {"a": [1], "b": [5]}, "d1"
    ).frame.rows() == [("d1", 2, 5, None, 1, None, None)]


def test_rows_of_a_child_table_may_leave_its_tags_out() -> None:
    given: dict[str, list[object]] = {"ts": [5], "v": [1], "n": [2], "s": ["x"]}
    named, whole = (
        selected(f"INSERT INTO d1 {columns} SELECT * FROM far", given, "d1").frame.to_dicts()
        for columns in ("(ts, v, n, s)", "")
    )
    assert {k: v for k, v in whole[0].items() if k != "_op"} == {
        k: v for k, v in named[0].items() if k != "_op"
    }
    with pytest.raises(SqlSemanticError, match="SELECT gives 4 columns for"):
        selected("INSERT INTO m SELECT tbname, * FROM far", {"tbname": ["d1"], **given})


@pytest.mark.parametrize(
    ("text", "columns", "words"),
    [
        ("INSERT INTO d1 (ts, n) SELECT a FROM far", {"a": [1]}, "SELECT gives 1 columns for 2"),
        ("INSERT INTO d1 SELECT a FROM far", {"a": [1]}, "SELECT gives 1 columns for 5"),
        ("INSERT INTO d1 (ts, w) SELECT a, b FROM far", {"a": [1], "b": [2]}, 'no column "w"'),
        ("INSERT INTO d1 (ts, n) SELECT a, b FROM far", {"a": [1], "b": [2.5]}, "2.5 is not"),
        ("INSERT INTO m (ts, n) SELECT a, b FROM far", {"a": [1], "b": [2]}, "tbname"),
    ],
)
def test_what_a_select_gives_must_fit(
    text: str, columns: dict[str, list[object]], words: str
) -> None:
    with pytest.raises(SqlSemanticError, match=words) as caught:
        selected(text, columns, "d1" if " d1 " in text else None)
    assert "SELECT" in caught.value.snippet or caught.value.code == "E_NO_COLUMN"


def test_parts_of_one_table_are_one_write() -> None:
    text = (
        "INSERT INTO d1 (ts, v) VALUES (1, 1.0) d2 (ts, n) VALUES (2, 2) d1 VALUES (3, 3.0, 3, 'x')"
    )
    statement = parse_one(text)
    assert isinstance(statement, Insert)
    parts = [
        insert.bind(statement, part, METERS, part.table.name, UTC, NOW * 1_000_000)
        for part in statement.parts
    ]
    (write,) = insert.join_by_table(parts)
    assert write.frame.select("tbname", "ts").rows() == [("d1", 1), ("d2", 2), ("d1", 3)]


def test_a_time_that_cannot_be_read_names_the_forms() -> None:
    with pytest.raises(SqlSemanticError, match="'yesterday' is not TIMESTAMP") as caught:
        bind("INSERT INTO d1 VALUES ('yesterday', 2, 3, 'x')")
    assert (caught.value.column, caught.value.hint) == (23, TIME_FORMS)
    with pytest.raises(SqlSemanticError) as other:
        bind("INSERT INTO d1 VALUES (1, 'x', 3, 'x')")
    assert other.value.hint == ""
