"""Faults that random SELECTs found and that the corpus cannot say: nobody can write a NaN in SQL."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from penstock.sql.compile import compile_expression
from penstock.types import ColumnType
from tests.fuzz_select.compare import rows_of
from tests.fuzz_select.engines import RandomStore
from tests.unit.fuzz_select.kit import row, world

WORLD = world(
    row("a", 0, q=1.5, f=0.5, n=2),
    row("a", 1000, q=math.nan, f=math.nan, n=0),
)
TEXT = ColumnType("VARCHAR", length=8)


def ask(directory: Path, sql: str) -> list[Any]:
    return rows_of(RandomStore(WORLD, directory).ask(sql, "UTC"))


def test_arithmetic_of_nan_is_null(tmp_path: Path) -> None:
    found = ask(tmp_path, "SELECT q + 1, f * 2 - f, q % n, n / q, q FROM m ORDER BY ts")
    assert found[0] == (2.5, 0.5, 1.5, 2 / 1.5, 1.5)
    assert found[1][:4] == (None,) * 4
    assert math.isnan(found[1][4])


@pytest.mark.parametrize("clause", ["", "INTERVAL(1m)", "SESSION(ts, 1m)"])
def test_the_latest_row_has_null_for_nan(tmp_path: Path, clause: str) -> None:
    assert ask(tmp_path, f"SELECT last_row(q), last_row(f), last(q) FROM a {clause}") == [
        (None, None, 1.5)
    ]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("'q' = nullif(w, w)", [None, None]),
        ("'q' = if(w = w, 'q', w)", [True, True]),
        ("'b' > w", [True, False]),
        ("'a' <> w", [False, True]),
        ("'q' IN (nullif(w, w), ' ')", [None, None]),
    ],
)
def test_a_constant_compared_with_a_choice_has_a_value_in_each_row(
    text: str, values: list[Any]
) -> None:
    frame = pl.DataFrame({"w": ["a", "b"]})
    compiled = compile_expression(text, {"w": TEXT})
    found = frame.select("w", compiled.expr.alias("found"))
    assert found.get_column("found").to_list() == values
