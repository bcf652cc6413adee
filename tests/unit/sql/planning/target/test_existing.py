"""A result table that exists: outputs mapped to its columns."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penstock.sql.plan import Column
from penstock.sql.planning.target.existing import MAX_CONVERTED_BYTES, plan_existing
from penstock.sql.planning.target.request import PlannedTarget
from penstock.sql.planning.view import TableDef
from penstock.types import ColumnType
from tests.unit.sql.memory_view import MemoryView
from tests.unit.sql.planning.binding import INT, MET, PLAIN, refused_at, request, statement

TARGET = TableDef(
    9,
    "db",
    "o",
    "stable",
    (Column("Ts", ColumnType("TIMESTAMP")), Column("n", INT), Column("m", INT)),
    (Column("g", ColumnType("BIGINT UNSIGNED")),),
    "us",
)
WINDOW = "_wstart, count(*) AS c, max(amps) FROM met INTERVAL(1s)"
TWO = "_wstart, count(*) AS c FROM met INTERVAL(1s)"


def planned(
    tail: str, head: str = "INTO o", table: TableDef = TARGET, **options: Any
) -> PlannedTarget:
    asked = request(statement(tail, head), **options)
    return plan_existing(asked, tuple(asked.selection.outputs), "sub", table)


def test_outputs_fill_the_columns_in_their_order() -> None:
    found = planned(WINDOW)
    assert found.definition is None
    target = found.target
    assert (target.table_id, target.table, target.precision) == (9, "o", "us")
    assert target.column_of == ("_wstart", "c", "max(amps)")
    assert (target.tag_of, target.subtable_sql) == (("group_id",), "sub")


def test_a_column_list_says_which_ones_are_filled() -> None:
    assert planned(TWO, "INTO o (ts, M)").target.column_of == (
        "_wstart",
        None,
        "c",
    )


def test_a_stream_that_is_replaced_keeps_its_target() -> None:
    view = MemoryView()
    view.streams["db", "o"] = ["S"]
    made = dataclasses.replace(statement(WINDOW), or_replace=True)
    asked = request(made, view)
    assert plan_existing(asked, tuple(asked.selection.outputs), None, TARGET).target.table_id == 9


KEYED = dataclasses.replace(TARGET, key_column="n")


@pytest.mark.parametrize(
    ("tail", "head", "table", "code", "at"),
    [
        (WINDOW, "INTO o", {"kind": "child"}, "E_TARGET_NOT_STABLE", "o AS SELECT "),
        (WINDOW, "INTO o", {"kind": "plain"}, "E_TARGET_NOT_STABLE", "o AS SELECT "),
        (WINDOW, "INTO o", {"kind": "virtual"}, "E_TARGET_NOT_STABLE", "o AS SELECT "),
        (WINDOW, "INTO o", {"id": MET.id}, "E_TARGET_IS_SOURCE", "o AS SELECT "),
        (WINDOW, "INTO o TAGS (g INT)", {}, "E_TARGET_EXISTS", "TAGS (g INT)"),
        (TWO, "INTO o", {}, "E_TARGET_COLUMNS", "o AS SELECT "),
        (TWO, "INTO o (ts)", {}, "E_TARGET_COLUMNS", "(ts) AS SELE"),
        (TWO, "INTO o (ts, x)", {}, "E_TARGET_COLUMNS", "x) AS SELECT"),
        (TWO, "INTO o (ts, TS)", {}, "E_TARGET_COLUMNS", "TS) AS SELEC"),
        (TWO, "INTO o (m, n)", {}, "E_TARGET_NO_TS", "(m, n) AS SE"),
        (TWO, "INTO o (m, ts)", {}, "E_TARGET_COLUMNS", "count(*) AS "),
        (TWO, "INTO o (ts, m)", {"key_column": "n"}, "E_TARGET_COLUMNS", "o (ts, m) AS"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    tail: str, head: str, table: dict[str, Any], code: str, at: str
) -> None:
    made = statement(tail, head)

    def call() -> Any:
        asked = request(made)
        outputs = tuple(asked.selection.outputs)
        return plan_existing(asked, outputs, None, dataclasses.replace(TARGET, **table))

    assert refused_at(made, call) == (code, at)


def test_a_table_that_another_stream_fills_is_refused() -> None:
    view = MemoryView()
    view.streams["db", "o"] = ["s", "other"]
    for replace in (False, True):
        made = dataclasses.replace(statement(WINDOW), or_replace=replace)
        asked = request(made, view)
        call = lambda asked=asked: plan_existing(asked, (), None, TARGET)  # noqa: E731
        code, at = refused_at(made, call)
        assert (code, at) == ("E_TARGET_IN_USE", "o AS SELECT ")


def test_rows_that_pass_need_a_key_where_their_source_has_one() -> None:
    source = dataclasses.replace(PLAIN, key_column="Amps")
    made = statement("ts, amps, b FROM p")
    asked = request(made, source=source)
    outputs = tuple(asked.selection.outputs)
    assert plan_existing(asked, outputs, None, KEYED).target.key_column == "n"
    code, _ = refused_at(made, lambda: plan_existing(asked, outputs, None, TARGET))
    assert code == "E_TARGET_COLUMNS"


def test_a_long_text_is_not_converted() -> None:
    long = ColumnType("VARCHAR", length=MAX_CONVERTED_BYTES + 1)
    source = dataclasses.replace(PLAIN, columns=(*PLAIN.columns, Column("big", long)))
    made = statement("ts, big, b FROM p")
    asked = request(made, source=source)
    outputs = tuple(asked.selection.outputs)
    call = lambda: plan_existing(asked, outputs, None, TARGET)  # noqa: E731
    assert refused_at(made, call) == ("E_RESULT_TOO_LONG", "big, b FROM ")
    same = dataclasses.replace(
        TARGET, columns=(TARGET.columns[0], Column("n", long), TARGET.columns[2])
    )
    assert plan_existing(asked, outputs, None, same).target.column_of == ("ts", "big", "b")
