"""Which of a few rows a stream reads, and how results lie that are columns of them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from penstock.rows.rows import Rows
from penstock.windows.emit.few_results import FewLayout, Picked

_TYPES = {"_op": pl.Int8(), "tbname": pl.String(), "v": pl.Int64(), "s": pl.String()}


def rows(*listed: tuple[str, int | None], op: int = 0) -> Rows:
    columns: dict[str, list[Any]] = {
        "_op": [op] * len(listed),
        "tbname": [name for name, _ in listed],
        "v": [v for _, v in listed],
        "s": [str(v) for _, v in listed],
    }
    return Rows.of_values(columns, _TYPES)


THREE = rows(("d1", 1), ("D1", None), ("d2", 3))


@pytest.mark.parametrize(
    ("child", "where", "read"),
    [
        (None, None, [1, None, 3]),
        ("D1", None, [1, None]),
        ("d9", None, []),
        (None, pl.col("v") > 1, [3]),
        (None, pl.col("v").is_null() | (pl.col("s") == "1"), [1, None]),
        ("d1", pl.col("v") > 1, []),
        ("d9", pl.col("v") > 1, []),
    ],
)
def test_rows_of_the_child_that_pass_where_are_read(
    child: str | None, where: pl.Expr | None, read: list[int | None]
) -> None:
    found = Picked(child, where).of(THREE)
    assert found is not None
    assert found.column("v") == read
    assert found.column("s") == [str(v) for v in read]


def test_nothing_is_copied_where_all_are_read() -> None:
    assert Picked(None, pl.col("s").is_not_null()).of(THREE) is THREE


@pytest.mark.parametrize(
    ("given", "where"),
    [
        (rows(("d1", 1), op=1), None),
        (rows(("d1", 1), op=2), None),
        (rows(("d1", 1), ("d1", 2)), pl.lit(True)),
        (rows(("d1", None)), pl.col("s").cast(pl.Int64) > 0),
    ],
    ids=["deleted", "merged", "one answer for all rows", "an expression that fails"],
)
def test_what_a_frame_is_needed_for_is_left_to_it(given: Rows, where: pl.Expr | None) -> None:
    assert Picked(None, where).of(given) is None


def test_results_are_laid_out_as_the_target_has_them() -> None:
    types = {
        "tbname": pl.String(),
        "_op": pl.Int8(),
        "t": pl.Int64(),
        "x": pl.Float64(),
        "g": pl.UInt64(),
    }
    layout = FewLayout({"t": "_wstart", "x": None}, ["g"], types)
    made = layout.upserts({"_wstart": [10, 20]}, [("a", 5, (7,)), ("b", 6, (8,))])
    assert made.hashes == [5, 6]
    assert made.rows.frame.schema == types
    assert made.rows.frame.rows() == [("a", 0, 10, None, 7), ("b", 0, 20, None, 8)]
    assert not len(layout.none.rows)
    assert layout.none.rows.frame.schema == types
