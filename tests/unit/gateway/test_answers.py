from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.answers import Affected, table_of, to_arrow, to_parquet, to_tdengine
from gateway.select import aware
from penstock.types import ColumnType


def test_affected_rows_as_tdengine_tells_them() -> None:
    assert json.loads(to_tdengine(Affected(3))) == {
        "code": 0,
        "column_meta": [["affected_rows", "INT", 4]],
        "data": [[3]],
        "rows": 1,
    }


def test_a_query_result() -> None:
    table = pa.table(
        {
            "ts": pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            "v": [float("nan")],
            "d": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
            "b": [b"\x0a"],
            "s": ["äb"],
            "u": pa.array([2**64 - 1], pa.uint64()),
        }
    )
    body = json.loads(to_tdengine(table, tz="Asia/Shanghai"))
    assert body["column_meta"] == [
        ["ts", "TIMESTAMP", 8],
        ["v", "DOUBLE", 8],
        ["d", "DECIMAL(10,2)", 8],
        ["b", "VARBINARY", 1],
        ["s", "VARCHAR", 3],
        ["u", "BIGINT UNSIGNED", 8],
    ]
    assert body["data"] == [
        ["2024-01-01T08:00:00.000000+08:00", None, "1.50", "0a", "äb", 2**64 - 1]
    ]
    assert body["rows"] == 1


def test_a_float_has_its_shortest_digits() -> None:
    values = [0.1, -3.4e38, None, float("nan"), 16777216.0]
    table = pa.table({"f": pa.array(values, pa.float32())})
    body = json.loads(to_tdengine(table))
    assert body["column_meta"] == [["f", "FLOAT", 4]]
    assert body["data"] == [[0.1], [-3.4e38], [None], [None], [16777216.0]]


def test_declared_types_win() -> None:
    columns = [
        ("name", ColumnType("VARCHAR", 64)),
        ("tag", ColumnType("JSON")),
        ("at", ColumnType("TIMESTAMP")),
    ]
    table = table_of(columns, [("x", '{"a":1}', 0)])
    body = json.loads(to_tdengine(table, objects=True, timing=5))
    assert body["column_meta"] == [
        ["name", "VARCHAR", 64],
        ["tag", "JSON", 4095],
        ["at", "TIMESTAMP", 8],
    ]
    assert body["data"] == [{"name": "x", "tag": {"a": 1}, "at": "1970-01-01T00:00:00.000Z"}]
    assert body["timing"] == 5


def test_arrow() -> None:
    assert pa.ipc.open_stream(to_arrow(Affected(2))).read_all().to_pydict() == {
        "affected_rows": [2]
    }


def test_no_rows() -> None:
    assert json.loads(to_tdengine(pa.table({"a": pa.array([], pa.int32())}))) == {
        "code": 0,
        "column_meta": [["a", "INT", 4]],
        "data": [],
        "rows": 0,
    }


def test_two_columns_of_one_name() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    body = json.loads(to_tdengine(table))
    assert (body["column_meta"], body["data"]) == (
        [["a", "BIGINT", 8], ["a", "VARCHAR", 1]],
        [[1, "x"]],
    )


def test_notices_stand_in_the_answer_if_there_are_any() -> None:
    assert json.loads(to_tdengine(Affected(3), notices=["look"]))["notices"] == ["look"]
    assert "notices" not in json.loads(to_tdengine(Affected(3)))


def test_text_from_the_store_has_the_length_that_its_column_has() -> None:
    told = {
        "s": ("x", pa.string(), "VARCHAR(16)"),
        "n": ("äb", pa.string(), "NCHAR(8)"),
        "b": (b"\n", pa.binary(), "VARBINARY(4)"),
        "cast": ("xyz", pa.string(), "VARCHAR(0)"),
        "length": (1, pa.int64(), "VARCHAR(16)"),
        "j": ("{}", pa.string(), "JSON"),
        "i": (1, pa.int32(), "INT"),
        "none": (None, pa.null(), "VARCHAR(16)"),
    }
    fields = [pa.field(name, kind, metadata={"type": t}) for name, (_, kind, t) in told.items()]
    columns = [pa.array([value], kind) for value, kind, _ in told.values()]
    body = json.loads(to_tdengine(pa.table(columns, schema=pa.schema(fields))))
    assert body["column_meta"] == [
        ["s", "VARCHAR", 16],
        ["n", "NCHAR", 8],
        ["b", "VARBINARY", 4],
        ["cast", "VARCHAR", 3],
        ["length", "BIGINT", 8],
        ["j", "VARCHAR", 2],
        ["i", "INT", 4],
        ["none", "BOOL", 1],
    ]


def test_the_stores_types_come_through_its_client() -> None:
    fields = [
        pa.field("ts", pa.timestamp("ms"), metadata={"type": "TIMESTAMP"}),
        pa.field("s", pa.string(), metadata={"type": "VARCHAR(16)"}),
    ]
    table = pa.table([pa.array([0], pa.timestamp("ms")), ["x"]], schema=pa.schema(fields))
    body = json.loads(to_tdengine(aware(table)))
    assert body["column_meta"][1] == ["s", "VARCHAR", 16]


def test_parquet_keeps_values_and_types() -> None:
    table = pa.table(
        {
            "ts": pa.array([1, None], pa.timestamp("ns", "UTC")),
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
            "u": pa.array([2**64 - 1, None], pa.uint64()),
            "x": pa.array([b"\x00", None], pa.large_binary()),
        }
    )
    assert pq.read_table(io.BytesIO(to_parquet(table))).equals(table)
    affected = pq.read_table(io.BytesIO(to_parquet(Affected(3))))
    assert affected.to_pydict() == {"affected_rows": [3]}
