"""Windows → rows of the target table."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest

from penstock.rows.versions import DELETE
from penstock.sql.plan import Column
from penstock.types import ColumnType
from penstock.windows.emit.projection import Projection
from penstock.windows.emit.result import Results
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.table_names import TableNames
from penstock.windows.rows.cast import cast_expression
from penstock.windows.rows.scope import Scope, evaluate
from tests.unit.windows.plans import TIMESTAMP, aggregate, frame, window_plan


def results(plan):
    scope = Scope(plan)
    groups = Groups(scope, TableNames())
    groups.numbers(frame([[("d1", 1, 1.0), ("d2", 1, 1.0)]]).with_columns(groups.expressions))
    return Results(scope, groups)


def windows(**columns):
    return pl.DataFrame(
        {"_g": [1, 0], "_wstart": [10_000, 0], "_wend": [20_000, 10_000], **columns}
    )


def test_rows_have_the_layout_of_an_emission():
    made = results(window_plan(aggregates=(aggregate(0, "count", None), aggregate(1, "sum"))))
    rows = made.upserts(windows(_a0=[3, 4], _a1=[1.5, None])).rows
    assert rows.columns == ["tbname", "_op", "_wstart", "c_a0", "c_a1", "group_id", "tname"]
    assert rows.select("_op", "_wstart", "c_a0", "c_a1").rows() == [
        (0, 10_000, 3, 1.5),
        (0, 0, 4, None),
    ]


def test_deletes_need_no_aggregates():
    rows = results(window_plan()).deletes(windows()).rows
    assert rows.select("_op", "_wstart").rows() == [(DELETE, 10_000), (DELETE, 0)]


def test_values_that_do_not_fit_become_null_with_a_reason():
    plan = window_plan(aggregates=(aggregate(0, "sum"),))
    columns = (plan.target.columns[0], Column("c", ColumnType("TINYINT")))
    plan = dataclasses.replace(plan, target=dataclasses.replace(plan.target, columns=columns))
    made = results(plan).upserts(windows(_a0=[300.0, -7.9]))
    assert made.rows["c"].to_list() == [None, -7]
    assert made.failed is not None and made.failed["_reason"].to_list() == [
        "300.0 does not fit column c"
    ]
    # the window that it was, so that it can be computed again
    assert made.failed.select("_wstart", "_wend").rows() == [(10_000, 20_000)]
    assert "_op" not in made.failed.columns


def test_times_are_rescaled_to_the_target():
    plan = window_plan(aggregates=(aggregate(0, "count", None),))
    plan = dataclasses.replace(plan, target=dataclasses.replace(plan.target, precision="us"))
    assert results(plan).upserts(windows(_a0=[1, 1])).rows["_wstart"].to_list() == [10_000_000, 0]


@pytest.mark.parametrize(
    ("given", "wanted", "value", "expected"),
    [
        ("DOUBLE", "INT", [1.9, -1.9, 1e20, float("inf"), None], [1, -1, None, None, None]),
        ("BIGINT", "TINYINT UNSIGNED", [255, 256, -1], [255, None, None]),
        ("VARCHAR", "INT", ["12", " 7 ", "1.9", "x", None], [12, 7, 1, None, None]),
        ("VARCHAR", "BOOL", ["true", "FALSE", "1", "0", "x"], [True, False, True, False, None]),
        ("BOOL", "VARCHAR", [True, False, None], ["true", "fals", None]),
        ("DOUBLE", "BOOL", [0.0, 0.5], [False, True]),
        ("BOOL", "INT", [True, False], [1, 0]),
        ("BIGINT", "VARCHAR", [12, None], ["12", None]),
        ("VARCHAR", "VARCHAR", ["abcdef", "äöü"], ["abcd", "äö"]),
        ("VARCHAR", "NCHAR", ["abcdef", "äöüßx"], ["abcd", "äöüß"]),
        ("TIMESTAMP", "BIGINT", [5], [5]),
    ],
)
def test_casts(given, wanted, value, expected):
    kinds = {
        k: ColumnType(k, 4) if k in ("VARCHAR", "NCHAR") else ColumnType(k) for k in (given, wanted)
    }
    source = ColumnType("VARCHAR", 40) if given == "VARCHAR" else kinds[given]
    frame_ = pl.DataFrame({"x": pl.Series(value, dtype=source.polars())})
    assert (
        frame_.select(cast_expression(pl.col("x"), source, kinds[wanted], "ms", "ms"))
        .to_series()
        .to_list()
        == expected
    )


def test_times_lose_digits_toward_the_past():
    frame_ = pl.DataFrame({"x": [1_999, -1]})
    assert frame_.select(
        cast_expression(pl.col("x"), TIMESTAMP, TIMESTAMP, "us", "ms")
    ).to_series().to_list() == [1, -1]


def test_one_bad_row_costs_only_itself():
    rows = pl.DataFrame({"s": ["1", "2", "x", "4"]})
    made, failed = evaluate(rows, Projection([pl.col("s").cast(pl.Int64).alias("n")]))
    assert made["n"].to_list() == [1, 2, 4]
    assert failed is not None and failed["s"].to_list() == ["x"] and "x" in failed["_reason"][0]
