"""Arguments of aggregates: each is evaluated once, under its number."""

from __future__ import annotations

import math

import polars as pl

from penstock.windows.accumulate.arguments import ROWS, Arguments
from penstock.windows.rows.scope import Scope
from tests.unit.windows.plans import window_plan


def arguments_of(*texts):
    made = Arguments(Scope(window_plan()))
    return made, [made.number(text) for text in texts]


def test_equal_texts_share_a_number_and_nothing_is_the_rows_themselves():
    made, numbers = arguments_of("v", "i", "v", None)

    assert numbers == [0, 1, 0, ROWS]
    assert made.texts == ["v", "i"]


def test_values_are_columns_under_their_numbers():
    made, _ = arguments_of("i", "i + 1")
    rows = pl.DataFrame({"i": [1, 2]}, schema={"i": pl.Int32})

    values = rows.select(made.expressions)

    assert values.to_dict(as_series=False) == {"_x0": [1, 2], "_x1": [2, 3]}
    assert made.type_of(0).kind == "INT"


def test_nan_is_no_value_whichever_way_values_are_made():
    made, _ = arguments_of("v", "v * 2")
    rows = pl.DataFrame({"v": [1.0, math.nan, None]})

    assert rows.select(made.expressions).to_dict(as_series=False) == {
        "_x0": [1.0, None, None],
        "_x1": [2.0, None, None],
    }
    quick, none = made.quick
    assert quick is not None and none is None
    assert (found := quick(pl.DataFrame({"v": [1.0, 3.0]}))) is not None
    assert found.to_list() == [1.0, 3.0]
