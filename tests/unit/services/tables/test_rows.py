from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.catalog.model import ROW_ID, TableVersion
from penstock.errors import SchemaError
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.tables.rows import TableRows
from tests.unit.services.tables.kit import NOW, stream_table

_MS = NOW // 10**6
_STAMP: dict[str, Any] = {"producer": "p", "from_offset": 7, "offset": 99, "trace": "n|c:1:1:1"}
_TYPES = {
    "ts": pa.timestamp("ms", "UTC"),
    "sym": pa.string(),
    "n": pa.int64(),
    "came": pa.timestamp("ms", "UTC"),
}
_row = some.fixed_dictionaries(
    {
        "ts": some.integers(0, _MS),
        "sym": some.none() | some.text(max_size=2),
        "n": some.none() | some.integers(-(2**63), 2**63 - 1),
        "came": some.none() | some.integers(0, _MS),
    }
)


def sent(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in _TYPES.items()}
    )


def familiar() -> TableRows:
    """Rows of a table that has seen a write of this shape: the next one may go the short way."""
    rows = TableRows(stream_table(), 0)
    rows.to_frame(sent([{"ts": 1, "sym": "A", "n": 1, "came": None}]), NOW)
    return rows


@given(some.lists(_row, min_size=1, max_size=8))
def test_the_short_way_leads_where_the_long_one_does(listed: list[dict[str, Any]]) -> None:
    rows = familiar()
    data = sent(listed)
    few = rows.number_few(data, 7, NOW)
    assert few is not None
    numbered = rows.number(rows.to_frame(data, NOW), 7)
    assert few.kept.equals(rows.to_batch(numbered))
    assert rows.codec.encode_few(few.rows, **_STAMP) == rows.codec.encode(numbered, **_STAMP)[0]


@pytest.mark.parametrize(
    "row",
    [
        {"ts": None, "sym": "A", "n": 1, "came": None},
        {"ts": _MS + 3_600_000, "sym": "A", "n": 1, "came": None},
        {"ts": 1, "sym": "äöüäö", "n": 1, "came": None},
        {"ts": -(2**62), "sym": "A", "n": 1, "came": None},
        {"ts": 1, "sym": "A", "n": 1, "came": 1_700_000_000_000_000_000},
    ],
    ids=[
        "no time",
        "a time in the future",
        "a text of ten bytes for eight",
        "no time of the table",
        "no time in a second column",
    ],
)
def test_what_does_not_fit_is_left_to_the_long_way_which_refuses_it(row: dict[str, Any]) -> None:
    rows = familiar()
    data = sent([row])
    assert rows.number_few(data, 7, NOW) is None
    with pytest.raises(SchemaError):
        rows.to_frame(data, NOW)


def test_columns_in_another_order_many_rows_and_stamped_tables_go_the_long_way() -> None:
    rows = familiar()
    one = {"ts": 1, "sym": "A", "n": 1, "came": None}
    assert rows.number_few(sent([one]).select(["n", "sym", "ts", "came"]), 7, NOW) is None
    assert rows.number_few(sent([one] * 9), 7, NOW) is None
    stamped = TableRows(stream_table(stamped="came"), 0)
    stamped.to_frame(sent([one]), NOW)
    assert stamped.number_few(sent([one]), 7, NOW) is None


def test_infinity_and_bytes_for_text_are_refused_and_whole_numbers_are_whole() -> None:
    columns = (
        Column("ts", ColumnType("TIMESTAMP")),
        Column(ROW_ID, ColumnType("BIGINT")),
        Column("v", ColumnType("FLOAT")),
        Column("n", ColumnType("INT")),
        Column("s", ColumnType("VARCHAR", 8)),
    )
    table = dataclasses.replace(stream_table(), versions=(TableVersion(100, columns),))
    rows = TableRows(table, 0)
    good = {
        "ts": pa.array([1], pa.timestamp("ms", "UTC")),
        "v": pa.array([0.5], pa.float32()),
        "n": pa.array([1], pa.int32()),
        "s": ["x"],
    }
    for _ in range(2):
        assert rows.to_frame(pa.table(good), NOW).height == 1
    assert rows.number_few(pa.table(good), 0, NOW) is not None
    assert rows.to_frame(pa.table({**good, "n": [5.0]}), NOW)["n"].to_list() == [5]
    infinite = pa.table({**good, "v": pa.array([float("inf")], pa.float32())})
    assert rows.number_few(infinite, 0, NOW) is None
    for bad in (
        infinite,
        pa.table({**good, "v": [1e300]}),
        pa.table({**good, "n": [5.5]}),
        pa.table({**good, "s": [b"x"]}),
    ):
        with pytest.raises(SchemaError):
            rows.to_frame(bad, NOW)


def test_a_time_that_the_precision_cannot_hold_is_refused() -> None:
    rows = TableRows(dataclasses.replace(stream_table(), precision="ns"), 10**18)
    far = pa.table({"ts": pa.array([32_503_680_000_000], pa.timestamp("ms", "UTC"))})
    with pytest.raises(SchemaError, match="out of range"):
        rows.to_frame(far, NOW)
