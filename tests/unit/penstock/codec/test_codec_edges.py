"""The last value that fits and the first that does not; what stands in a record where nobody said
anything; a few rows without a frame.
"""

from __future__ import annotations

import io
from typing import Any

import fastavro
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from penstock.catalog.model import Table, TableVersion
from penstock.codec import TableCodec, avro_schema, frame_of, schema_ids
from penstock.rows.partition import hashes
from penstock.rows.rows import Rows
from penstock.sql.plan import Column
from penstock.types import TIME_LIMITS, ColumnType

FIRST, LAST = TIME_LIMITS["ms"]
KINDS = {
    "v": ColumnType("VARCHAR", 8),
    "c": ColumnType("NCHAR", 8),
    "n": ColumnType("TINYINT"),
    "t": ColumnType("TIMESTAMP"),
    "d": ColumnType("DOUBLE"),
}
STAMP: dict[str, Any] = {"producer": "p", "from_offset": 3, "offset": 5}


def table(kinds: dict[str, ColumnType]) -> Table:
    columns = (
        Column("ts", ColumnType("TIMESTAMP")),
        *(Column(name, kind) for name, kind in kinds.items()),
    )
    version = TableVersion(100, columns, ())
    return Table(1, "db", "m", "plain", "in.db", 4, "ms", (version,))


def codec_of(kinds: dict[str, ColumnType], short: bool = False) -> TableCodec:
    codec = TableCodec(table(kinds))
    if not short:
        codec._few = None  # what few rows have in front of the way that all others go
    return codec


def foreign(codec: TableCodec, rows: list[dict[str, Any]]) -> bytes:
    """A record as another program writes it, that leaves out all it may."""
    definition = codec.table
    schema = avro_schema(definition.newest, definition.precision, definition.name)
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), {"rows": rows})
    return frame_of(definition.schema_id) + buffer.getvalue()


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize(
    ("name", "fits", "spoils"),
    [
        ("tbname", "x" * 192, "x" * 193),
        ("tbname", "x", ""),
        ("tbname", "ü" * 96, "ü" * 97),
        ("ts", FIRST, FIRST - 1),
        ("ts", LAST, LAST + 1),
        ("t", FIRST, FIRST - 1),
        ("t", LAST, LAST + 1),
        ("n", -128, -129),
        ("n", 127, 128),
        ("v", "x" * 8, "x" * 9),
        ("v", "ü" * 4, "ü" * 5),
        ("v", "", "漢漢漢"),
        ("c", "ü" * 8, "ü" * 9),
        ("c", "x" * 8, "x" * 9),
        ("d", -1e308, float("inf")),
        ("d", None, float("-inf")),
        ("op", 2, 4),
        ("op", 0, -1),
    ],
)
def test_the_last_value_that_fits(name: str, fits: Any, spoils: Any, short: bool) -> None:
    codec = codec_of(KINDS, short)
    row = {"tbname": "d1", "ts": 1, "op": 0, "v": "a", "c": "b", "n": 1, "t": 1, "d": 0.5}
    good = foreign(codec, [row, {**row, name: fits}])
    bad = foreign(codec, [row, {**row, name: spoils}])
    decoded = codec.decode([good])
    assert decoded.bad == []
    assert decoded.rows["_op" if name == "op" else name].to_list()[1] == fits
    assert codec.decode([bad, good, bad]).bad == [
        (0, f"value out of range in {name}"),
        (2, f"value out of range in {name}"),
    ]


@pytest.mark.parametrize("short", [False, True])
def test_what_another_program_leaves_out_says_nothing(short: bool) -> None:
    codec = codec_of(KINDS, short)
    decoded = codec.decode([foreign(codec, [{"tbname": "d1", "ts": 7}])])
    assert decoded.bad == []
    assert decoded.rows.to_dicts() == [
        {"_record": 0, "_write": 0, "_op": 0, "tbname": "d1", "ts": 7, **dict.fromkeys(KINDS)}
    ]
    assert decoded.records.to_dicts() == [
        {
            "_record": 0,
            "rows": 1,
            "producer": None,
            "from_offset": -1,
            "offset": -1,
            "ordinal": 0,
            "last": True,
            "trace": None,
        }
    ]
    assert decoded.stamps == []
    assert not decoded.traced


@pytest.mark.parametrize("trace", [None, "abc"])
@pytest.mark.parametrize("short", [False, True])
def test_a_record_without_rows_carries_its_stamp(short: bool, trace: str | None) -> None:
    codec = codec_of(KINDS, short)
    value = codec.empty(**STAMP, trace=trace)
    assert schema_ids([value]).tolist() == [100]
    decoded = codec.decode([value])
    assert decoded.rows.height == 0
    assert decoded.stamps == [(0, "p", 5, 0)]
    assert decoded.traced == (trace is not None)
    assert decoded.records.row(0, named=True) == {
        "_record": 0,
        "rows": 0,
        **STAMP,
        "ordinal": 0,
        "last": True,
        "trace": trace,
    }


@pytest.mark.parametrize("names", [["a"], ["a", "a", "a"], ["a", "b", "c", "d", "e", "a"]])
@pytest.mark.parametrize("kinds", [{"v": ColumnType("INT")}, {"v": ColumnType("VARBINARY", 9)}])
def test_a_few_rows_are_encoded_as_their_frame_is(
    names: list[str], kinds: dict[str, ColumnType]
) -> None:
    codec = codec_of(kinds, short=True)
    numbers: list[Any] = list(range(len(names)))
    values = [bytes([n]) for n in numbers] if kinds["v"].kind == "VARBINARY" else numbers
    few = Rows.of_values(
        {"tbname": names, "ts": numbers, "v": values},
        {"tbname": pl.String(), "ts": pl.Int64(), "v": kinds["v"].polars()},
    )
    places = hashes(few.frame["tbname"])
    assert codec.encode_few_partitioned(few, 4, list(places), **STAMP) == codec.encode_partitioned(
        few.frame, 4, **STAMP
    )
    alone = codec.encode_few(few, **STAMP, trace="t")
    assert alone is None or [alone] == codec.encode(few.frame, **STAMP, trace="t")
    assert (alone is None) == (kinds["v"].kind == "VARBINARY")


@pytest.mark.parametrize(
    ("column", "fits", "spoils"),
    [
        ("ts", FIRST, FIRST - 1),
        ("n", 127, 128),
        ("v", "ü" * 4, "ü" * 5),
        ("c", "ü" * 8, "x" * 9),
        ("d", None, float("inf")),
    ],
)
def test_a_few_values_become_rows_if_all_fit(column: str, fits: object, spoils: object) -> None:
    codec = codec_of(KINDS, short=True)
    values: dict[str, list[Any]] = {"tbname": ["d1"], "ts": [7], **{name: [None] for name in KINDS}}
    assert codec.few_rows({**values, column: [spoils]}) is None
    rows = codec.few_rows({**values, column: [fits]})
    assert rows is not None
    value = codec.encode_few(rows, **STAMP, trace=None)
    assert value is not None
    [row] = codec.decode([value]).rows.to_dicts()
    assert row[column] == fits


def test_a_table_that_the_short_cut_does_not_know_makes_no_rows_of_values() -> None:
    codec = codec_of({"v": ColumnType("VARBINARY", 9)}, short=True)
    assert codec.few_rows({"tbname": ["d1"], "ts": [7], "v": [b"x"]}) is None


def test_records_with_and_without_counts_of_their_writes_are_numbered_in_turn() -> None:
    codec = codec_of({"v": ColumnType("INT")})
    rows = pl.DataFrame({"tbname": ["a"] * 3, "ts": [1, 2, 3], "v": [1, 2, 3]})
    records = [
        *codec.encode(rows, writes=[1, 2]),
        *codec.encode(rows),
        *codec.encode(rows, writes=[2, 0, 1]),
    ]
    decoded = codec.decode(records)
    assert decoded.bad == []
    numbers = decoded.rows["_write"].to_list()
    assert numbers[:6] == [0, 1, 1, 2, 2, 2]
    assert numbers[6] == numbers[7] < numbers[8]


def test_names_of_columns_are_found_however_they_are_spelled() -> None:
    codec = codec_of({"Speed": ColumnType("INT")})
    rows = pl.DataFrame({"tbname": ["a"], "TS": [1], "sPEED": [4]})
    decoded = codec.decode(codec.encode(rows)).rows
    assert_frame_equal(
        decoded.select("ts", "Speed"),
        pl.DataFrame({"ts": [1], "Speed": [4]}, schema_overrides={"Speed": pl.Int32}),
    )
