"""Python, numpy, pandas, polars and Arrow values mean the same, and none is changed to fit."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from penstock.client.table_handles import arrow_rows
from penstock.client.values import plain_parameters, to_json
from penstock.client.wire import to_table
from penstock.errors import PenstockError, SchemaError

NAN = float("nan")
TIME = pa.timestamp("ms", "UTC")
T0 = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    {
        "ts": TIME,
        "n": pa.int32(),
        "v": pa.float64(),
        "f": pa.float32(),
        "b": pa.bool_(),
        "s": pa.string(),
        "x": pa.binary(),
        "d": pa.decimal128(9, 2),
    }
)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("n", 5, 5),
        ("n", 5.0, 5),
        ("n", np.int64(5), 5),
        ("n", np.float32(5), 5),
        ("n", NAN, None),
        ("n", pd.NA, None),
        ("v", np.float32(0.5), 0.5),
        ("v", 5, 5.0),
        ("v", NAN, None),
        ("v", np.float64(NAN), None),
        ("v", Decimal("NaN"), None),
        ("b", np.bool_(True), True),
        ("b", 1, True),
        ("s", np.str_("x"), "x"),
        ("x", b"a", b"a"),
        ("x", bytearray(b"a"), b"a"),
        ("x", "\\x00ff", b"\x00\xff"),
        ("d", 5.5, Decimal("5.50")),
        ("d", "1", Decimal("1.00")),
        ("ts", "2026-01-01T00:00:00Z", T0),
        ("ts", date(2026, 1, 1), T0),
        ("ts", np.datetime64("2026-01-01T00:00"), T0),
        ("ts", pd.Timestamp(T0), T0),
        ("ts", pd.NaT, None),
        ("ts", 1_767_225_600_000, T0),
    ],
)
def test_values_that_fit(name: str, value: Any, expected: Any) -> None:
    for rows in ([{name: value}], {name: [value]}):
        assert arrow_rows(rows, SCHEMA).column(name).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 5.5),
        ("n", np.float64(5.5)),
        ("n", "5"),
        ("n", True),
        ("n", 2**40),
        ("n", float("inf")),
        ("v", "1.5"),
        ("v", True),
        ("v", float("-inf")),
        ("f", 1e300),
        ("b", 2),
        ("b", "true"),
        ("s", 5),
        ("s", b"x"),
        ("s", np.bytes_(b"x")),
        ("x", 5),
        ("d", 10**9),
        ("ts", 1.5),
        ("ts", "noon"),
        ("ts", object()),
    ],
)
def test_values_that_do_not_fit_are_refused(name: str, value: Any) -> None:
    for rows in ([{name: None}, {name: value}], {name: [None, value]}):
        with pytest.raises(SchemaError, match=f'"{name}"') as refused:
            arrow_rows(rows, SCHEMA)
        assert (
            refused.value.code == "E_ROW"
            and "row 1" in refused.value.detail + refused.value.message
        )


def test_columns_of_numpy() -> None:
    columns = {
        "ts": np.array(["2026-01-01"], "datetime64[ms]"),
        "n": np.array([5.0]),
        "v": np.array([NAN]),
        "f": np.array([2], np.uint8),
        "s": np.array(["a"]),
        "b": np.array([True]),
    }
    [row] = arrow_rows(columns, SCHEMA).to_pylist()
    assert {k: v for k, v in row.items() if k != "ts"} == {
        "n": 5,
        "v": None,
        "f": 2.0,
        "s": "a",
        "b": True,
    }
    assert arrow_rows({"v": pd.Series([1.0, NAN]), "n": pl.Series([1, 2])}, SCHEMA).to_pydict() == {
        "v": [1.0, None],
        "n": [1, 2],
    }
    for wrong in (
        {"n": np.array([5.5])},
        {"n": np.array([2**40])},
        {"s": np.array([1])},
        {"s": np.array([b"a"])},
    ):
        with pytest.raises(SchemaError):
            arrow_rows(wrong, SCHEMA)


@pytest.mark.parametrize(
    "rows",
    [
        [1],
        [{"n": 1}, 5],
        {"n": 5},
        {"n": "five"},
        {"n": [1], "v": [1.0, 2.0]},
        5,
        "rows",
        pd.DataFrame({"n": [1, "a"]}),
        {"n": [[1], "x"]},
    ],
)
def test_what_is_no_rows_raises_only_our_own(rows: Any) -> None:
    for schema in (SCHEMA, None):
        with pytest.raises(PenstockError):
            arrow_rows(rows, schema)


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"v": [1.0, NAN]}),
        pa.table({"v": [1.0, NAN]}).to_batches()[0],
        pl.DataFrame({"v": [1.0, NAN]}),
        pd.DataFrame({"v": [1.0, NAN]}),
        pl.DataFrame({"v": [1.0, NAN]}, schema={"v": pl.Float32}),
    ],
)
def test_nan_is_null_in_every_form(rows: Any) -> None:
    assert to_table(rows).column("v").to_pylist() == [1.0, None]
    assert json.loads(to_json([{"v": 1.0}, {"v": NAN}])) == [{"v": 1.0}, {"v": None}]


def test_rows_as_json() -> None:
    row = {
        "n": np.int64(5),
        "v": np.float32(0.5),
        "x": b"\x00\xff",
        "ts": T0,
        "d": Decimal("1.50"),
        "m": np.float32(NAN),
        "t": pd.NaT,
    }
    assert json.loads(to_json([row])) == [
        {
            "n": 5,
            "v": 0.5,
            "x": {"$bytes": "00ff"},
            "ts": str(T0),
            "d": "1.50",
            "m": None,
            "t": None,
        }
    ]
    for value in (float("inf"), np.float32("-inf")):
        with pytest.raises(SchemaError, match='row 1, column "v"'):
            to_json([{"v": 1.0}, {"v": value}])
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(SchemaError):
        to_json([{"v": loop}])


def test_parameters_are_pythons_values() -> None:
    given = {"a": np.int64(5), "b": np.float64("nan"), "c": np.str_("x"), "d": bytearray(b"y")}
    assert plain_parameters(given) == {"a": 5, "b": None, "c": "x", "d": b"y"}
    assert plain_parameters((np.bool_(True), None)) == [True, None]
    assert plain_parameters("ab") == "ab"  # refused by `encode`
