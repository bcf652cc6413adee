"""Projections give what polars' own `with_columns` and `select` give."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from penstock.windows.emit.projection import Projection, cast_to, taken, where_above_0

EXPRESSIONS = [
    pl.col("a").alias("x"),
    pl.col("b"),
    (pl.col("a") * 2).alias("y"),
    pl.lit(7).alias("z"),
    pl.lit(None, dtype=pl.String).alias("n"),
]


@pytest.mark.parametrize("height", [0, 1, 3])
@pytest.mark.parametrize("count", range(1, len(EXPRESSIONS) + 1))
def test_the_same_as_a_query(height: int, count: int) -> None:
    rows = pl.DataFrame(
        {"a": range(height), "b": ["t"] * height, "c": [1.5] * height},
        schema_overrides={"a": pl.Int64, "b": pl.String},
    )
    for start in range(count):
        wanted = EXPRESSIONS[start:count]
        assert_frame_equal(
            Projection(wanted).add(rows), rows.with_columns(wanted), check_column_order=False
        )


def test_a_plain_column_is_cast_when_it_has_another_type() -> None:
    rows = pl.DataFrame({"a": [1, 300]})
    cast = Projection(
        [pl.col("a").cast(pl.Int8, strict=False).alias("x")], [cast_to(pl.Int8(), taken("a"))]
    )
    assert [c.to_list() for c in cast.columns(rows)] == [[1, None]]
    same = Projection(
        [pl.col("a").cast(pl.Int64, strict=False).alias("x")], [cast_to(pl.Int64(), taken("a"))]
    )
    assert [c.to_list() for c in same.columns(rows)] == [[1, 300]]


@pytest.mark.parametrize("counts", [[1, 2], [0, 2], [None, 2], []])
def test_values_without_a_query_count_only_where_they_hold(counts: list[int | None]) -> None:
    rows = pl.DataFrame(
        {"n": counts, "v": [7.0, 8.0][: len(counts)]}, schema={"n": pl.Int64, "v": pl.Float64}
    )
    wanted = pl.when(pl.col("n") > 0).then(pl.col("v")).alias("x")
    found = Projection([wanted], [where_above_0("n", taken("v"))]).columns(rows)  # type: ignore[arg-type]
    assert_frame_equal(pl.DataFrame(found), rows.select(wanted))
