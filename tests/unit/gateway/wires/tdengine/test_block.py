"""Blocks of rows: what is written is read again, by a client's own reader and by ours."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from gateway.wires.tdengine import block, block_reader, types
from gateway.wires.tdengine.columns import wire_table
from penstock.errors import SchemaError
from tests.unit.gateway.wires.tdengine.layout import read_block, write_block

_TEXT = some.text(some.characters(exclude_categories=("Cs",)), max_size=20)
_INTEGERS = {
    pa.int8(): 7,
    pa.int16(): 15,
    pa.int32(): 31,
    pa.int64(): 63,
}
_UNSIGNED = {pa.uint8(): 8, pa.uint16(): 16, pa.uint32(): 32, pa.uint64(): 64}
#: Arrow type, what TDengine's type a field's metadata says, and values
VALUES: list[tuple[pa.DataType, str | None, some.SearchStrategy[Any]]] = [
    (pa.bool_(), None, some.booleans()),
    *((kind, None, some.integers(-(2**n), 2**n - 1)) for kind, n in _INTEGERS.items()),
    *((kind, None, some.integers(0, 2**n - 1)) for kind, n in _UNSIGNED.items()),
    (pa.float32(), None, some.floats(width=32, allow_nan=False)),
    (pa.float64(), None, some.floats(allow_nan=False)),
    (pa.string(), None, _TEXT),
    (pa.string(), "NCHAR(20)", _TEXT),
    (pa.string(), "JSON", some.just('{"a": "ü"}')),
    (pa.binary(), "VARBINARY(20)", some.binary(max_size=20)),
    (pa.decimal128(18, 4), None, some.decimals(-(10**13), 10**13, places=4)),
    (pa.decimal128(38, 10), None, some.decimals(-(10**26), 10**26, places=10)),
]


@some.composite
def _tables(draw: some.DrawFn) -> pa.Table:
    rows = draw(some.integers(0, 30))
    chosen = draw(some.lists(some.sampled_from(VALUES), min_size=1, max_size=6))
    arrays, fields = [], []
    for place, (kind, told, values) in enumerate(chosen):
        column = draw(some.lists(some.none() | values, min_size=rows, max_size=rows))
        arrays.append(pa.array(column, kind))
        metadata = None if told is None else {"penstock.type": told}
        fields.append(pa.field(f"c{place}", kind, metadata=metadata))
    return pa.table(arrays, pa.schema(fields))


@given(table=_tables(), data=some.data())
def test_rows_come_back_as_they_were(table: pa.Table, data: some.DataObject) -> None:
    start = data.draw(some.integers(0, table.num_rows))
    rows = data.draw(some.integers(0, table.num_rows - start))
    made = block.encode(wire_table(table), start, rows)
    wanted = [column.slice(start, rows).to_pylist() for column in table.columns]
    assert read_block(made) == wanted
    assert block_reader.decode(memoryview(made)) == wanted


@given(table=_tables())
def test_a_table_in_many_chunks_is_one(table: pa.Table) -> None:
    twice = pa.concat_tables([table, table])
    made = block.encode(wire_table(twice), 0, twice.num_rows)
    assert read_block(made) == [column.to_pylist() * 2 for column in table.columns]


def test_times_have_the_finest_unit_among_them() -> None:
    at = datetime(2026, 3, 1, 9, 0, 0, 123_456, tzinfo=UTC)
    table = pa.table(
        {
            "a": pa.array([at.replace(microsecond=0), None], pa.timestamp("ms", "UTC")),
            "b": pa.array([None, at], pa.timestamp("us", "UTC")),
            "day": pa.array([date(2026, 3, 1), None]),
        }
    )
    made = wire_table(table)
    assert made.unit == "us" and [c.code for c in made.columns] == [types.TIMESTAMP] * 3
    moment = int(at.replace(microsecond=0).timestamp()) * 10**6
    day = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 10**6
    wanted = [[moment, None], [None, moment + 123_456], [day, None]]
    assert read_block(block.encode(made, 0, 2)) == wanted


def test_times_that_do_not_fit_the_finest_unit_are_refused() -> None:
    table = pa.table(
        {
            "a": pa.array([datetime(3000, 1, 1, tzinfo=UTC)], pa.timestamp("ms", "UTC")),
            "b": pa.array([0], pa.timestamp("ns", "UTC")),
        }
    )
    with pytest.raises(SchemaError, match='column "a"'):
        wire_table(table)


def test_what_has_no_type_there_is_text() -> None:
    table = pa.table(
        {
            "t": pa.array([time(1, 2, 3), None]),
            "l": pa.array([[1, 2], None]),
            "d": pa.array([timedelta(seconds=1), None], pa.duration("ms")),
            "n": pa.nulls(2),
        }
    )
    columns = read_block(block.encode(wire_table(table), 0, 2))
    assert columns[0] == ["01:02:03", None] and columns[1] == ["[1, 2]", None]
    assert columns[3] == [None, None]


def test_a_text_that_is_too_long_for_a_block_is_refused() -> None:
    table = wire_table(pa.table({"s": ["x" * 0xFFFF, "x" * 0x10000]}))
    assert read_block(block.encode(table, 0, 1)) == [["x" * 0xFFFF]]
    with pytest.raises(SchemaError) as refused:
        block.encode(table, 0, 2)
    assert refused.value.code == "E_ROW_TOO_LARGE"


def test_a_block_has_rows_for_some_megabytes() -> None:
    assert block.rows_of_block(wire_table(pa.table({"a": range(10_000)}))) == 4096
    wide = wire_table(pa.table({"s": ["x" * 60_000] * 200}))
    assert 1 <= block.rows_of_block(wide) < 100


def test_decimals_carry_their_digits() -> None:
    table = wire_table(pa.table({"d": pa.array([Decimal("1.50")], pa.decimal128(30, 2))}))
    made = block.encode(table, 0, 1)
    assert made[28] == types.DECIMAL and made[29:33] == bytes([2, 30, 0, 16])


_BOUND = some.lists(
    some.tuples(some.none() | some.integers(-9, 9), some.none() | _TEXT, some.none() | _TEXT),
    min_size=1,
    max_size=12,
)


@given(rows=_BOUND)
def test_what_a_client_binds_is_read(rows: list[tuple[Any, ...]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    data = write_block(list(zip((4, 8, 10), columns, strict=True)))
    assert block_reader.decode(memoryview(data)) == columns


@given(rows=_BOUND, data=some.data())
def test_bytes_that_are_no_block_are_refused(rows: list[Any], data: some.DataObject) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    good = bytearray(write_block(list(zip((4, 8, 10), columns, strict=True))))
    for _ in range(data.draw(some.integers(1, 6))):
        good[data.draw(some.integers(0, len(good) - 1))] = data.draw(some.integers(0, 255))
    cut = data.draw(some.integers(0, len(good)))
    try:
        block_reader.decode(memoryview(bytes(good[:cut])))
    except SchemaError as refused:
        assert refused.code == "E_BODY"
