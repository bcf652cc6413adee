"""A result table that the stream creates."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penstock.sql.plan import Column
from penstock.sql.planning.target.new import plan_new
from penstock.sql.planning.target.request import PlannedTarget
from penstock.sql.planning.view import TableDef
from penstock.types import ColumnType
from tests.unit.sql.memory_view import MemoryView
from tests.unit.sql.planning.binding import INT, MET, PLAIN, refused_at, request, statement

BIGINT = ColumnType("BIGINT")
TIMESTAMP = ColumnType("TIMESTAMP")


def planned(tail: str, head: str = "INTO o", source: TableDef = MET) -> PlannedTarget:
    asked = request(statement(tail, head), source=source)
    return plan_new(asked, tuple(asked.selection.outputs), "sub", 99)


WINDOW = "_wstart, count(*) AS n, max(amps) FROM met PARTITION BY ta INTERVAL(1s)"


def test_columns_are_those_of_the_list() -> None:
    found = planned(WINDOW)
    assert found.definition == TableDef(
        99,
        "db",
        "o",
        "stable",
        (Column("_wstart", TIMESTAMP), Column("n", BIGINT), Column("max(amps)", INT)),
        (Column("ta", INT), Column("group_id", ColumnType("BIGINT UNSIGNED"))),
    )
    target = found.target
    assert (target.table_id, target.column_of) == (99, ("_wstart", "n", "max(amps)"))
    assert (target.tag_of, target.subtable_sql, target.beside) == ((0, "group_id"), "sub", True)


def test_columns_may_have_other_names() -> None:
    found = planned(WINDOW, "INTO o (t, k COMPOSITE KEY, m)")
    assert [c.name for c in found.target.columns] == ["t", "k", "m"]
    assert found.target.column_of == ("_wstart", "n", "max(amps)")
    assert found.target.key_column == "k"


def test_rows_that_pass_keep_the_composite_key_of_their_source() -> None:
    keyed = dataclasses.replace(PLAIN, key_column="Amps")
    assert planned("ts, amps, b FROM p", source=keyed).target.key_column == "Amps"
    assert planned("ts, amps, b FROM p", source=PLAIN).target.key_column is None


def test_a_new_table_has_the_precision_of_its_database() -> None:
    asked = request(statement(WINDOW), MemoryView(precision="us"))
    made = plan_new(asked, tuple(asked.selection.outputs), None, 99)
    assert made.target.precision == "us"
    assert made.definition is not None and made.definition.precision == "us"


LONG = "x" * 65


@pytest.mark.parametrize(
    ("tail", "head", "code", "at"),
    [
        (WINDOW, "INTO o (a, b)", "E_TARGET_COLUMNS", "(a, b) AS SE"),
        (WINDOW, f"INTO o (a, {LONG}, c)", "E_NAME_LENGTH", "x" * 12),
        (
            f"_wstart, count(*) AS {LONG} FROM met INTERVAL(1s)",
            "INTO o",
            "E_NAME_LENGTH",
            "count(*) AS ",
        ),
        (WINDOW, "INTO o (a, B, b)", "E_DUPLICATE_COLUMN", "b) AS SELECT"),
        (
            "_wstart, count(*) AS n, max(b) AS N FROM met INTERVAL(1s)",
            "INTO o",
            "E_DUPLICATE_COLUMN",
            "max(b) AS N ",
        ),
        (
            "_wstart, count(*) AS op FROM met INTERVAL(1s)",
            "INTO o",
            "E_RESERVED_NAME",
            "count(*) AS ",
        ),
        (WINDOW, "INTO o (a, tbname, c)", "E_RESERVED_NAME", "tbname, c) A"),
        (WINDOW, "INTO o (a, b, c COMPOSITE KEY)", "E_TARGET_COLUMNS", "c COMPOSITE "),
        (
            "_wstart, avg(b), max(b) FROM met INTERVAL(1s)",
            "INTO o (a, b COMPOSITE KEY, c)",
            "E_TARGET_COLUMNS",
            "o (a, b COMP",
        ),
        (WINDOW, "INTO o (a, ta, c) TAGS (ta INT)", "E_DUPLICATE_COLUMN", "TAGS (ta INT"),
    ],
)
def test_a_table_that_cannot_be_is_refused(tail: str, head: str, code: str, at: str) -> None:
    made = statement(tail, head)

    def call() -> Any:
        asked = request(made)
        return plan_new(asked, tuple(asked.selection.outputs), None, 99)

    assert refused_at(made, call) == (code, at)
