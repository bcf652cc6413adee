"""Row batches: what goes in comes out, both engines agree, and no bytes whatever can do more than
be called bad.
"""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from penstock import tuning
from penstock.catalog.model import Table, TableVersion
from penstock.codec import (
    Outgoing,
    TableCodec,
    avro_schema,
    encode_together,
    frame_of,
    schema_ids,
    wire_name,
)
from penstock.errors import SchemaError
from penstock.rows.partition import hashes, partition
from penstock.sql.plan import Column
from penstock.types import TIME_LIMITS, ColumnType
from tests.nightly import drawn

FAST = {
    "c_bool": ColumnType("BOOL"),
    "c_ti": ColumnType("TINYINT"),
    "c_si": ColumnType("SMALLINT"),
    "c_i": ColumnType("INT"),
    "c_bi": ColumnType("BIGINT"),
    "c_uti": ColumnType("TINYINT UNSIGNED"),
    "c_usi": ColumnType("SMALLINT UNSIGNED"),
    "c_ui": ColumnType("INT UNSIGNED"),
    "c_ubi": ColumnType("BIGINT UNSIGNED"),
    "c_f": ColumnType("FLOAT"),
    "c_d": ColumnType("DOUBLE"),
    "c_v": ColumnType("VARCHAR", 40),
    "c_n": ColumnType("NCHAR", 10),
    "c_t": ColumnType("TIMESTAMP"),
}
SLOW = {
    **FAST,
    "c_vb": ColumnType("VARBINARY", 20),
    "c_dec": ColumnType("DECIMAL", precision=20, scale=4),
}
TIME = Column("ts", ColumnType("TIMESTAMP"))
_BY_FASTAVRO = tuning.FRAME_ROWS_ENCODED_BY_FASTAVRO


def table(
    kinds: dict[str, ColumnType],
    tags: dict[str, ColumnType] | None = None,
    schema_id: int = 100,
    precision: Any = "ms",
) -> Table:
    version = TableVersion(
        schema_id,
        (TIME, *(Column(n, t) for n, t in kinds.items())),
        tuple(Column(n, t) for n, t in (tags or {}).items()),
    )
    return Table(
        1, "db", "meters", "stable" if tags else "plain", "in.db", 4, precision, (version,)
    )


def altered(base: Table, version: TableVersion) -> Table:
    return Table(
        base.id,
        base.database,
        base.name,
        base.kind,
        base.topic,
        4,
        base.precision,
        (*base.versions, version),
    )


def values_of(kind: ColumnType) -> st.SearchStrategy[Any]:
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
    if kind.integer:
        bits = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}[
            kind.kind.removesuffix(" UNSIGNED")
        ]
        unsigned = kind.kind.endswith("UNSIGNED")
        return st.integers(
            0 if unsigned else -(2 ** (bits - 1)), 2**bits - 1 if unsigned else 2 ** (bits - 1) - 1
        )
    return {
        "BOOL": st.booleans(),
        "FLOAT": st.floats(width=32, allow_infinity=False),
        "DOUBLE": st.floats(allow_infinity=False),
        "TIMESTAMP": st.integers(*TIME_LIMITS["ms"]),
        "VARCHAR": text,
        "NCHAR": text,
        "VARBINARY": st.binary(max_size=20),
        "DECIMAL": st.integers(-(10**20) + 1, 10**20 - 1).map(lambda i: Decimal(i).scaleb(-4)),
    }[kind.kind]


@st.composite
def frames(draw: st.DrawFn, kinds: dict[str, ColumnType]) -> pl.DataFrame:
    n = draw(st.integers(1, 6))
    data: dict[str, pl.Series] = {
        "tbname": pl.Series(
            draw(st.lists(st.sampled_from(["d1", "d2", "Ünï", "漢"]), min_size=n, max_size=n))
        ),
        "_op": pl.Series(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), dtype=pl.Int8),
        "ts": pl.Series(
            draw(st.lists(st.integers(*TIME_LIMITS["ms"]), min_size=n, max_size=n)), dtype=pl.Int64
        ),
    }
    for name, kind in kinds.items():
        drawn = draw(st.lists(st.none() | values_of(kind), min_size=n, max_size=n))
        data[name] = pl.Series(drawn, dtype=kind.polars())
    return pl.DataFrame(data)


def plain(decoded: pl.DataFrame) -> pl.DataFrame:
    return decoded.drop("_record", "_write")


@settings(max_examples=drawn(60), deadline=None)
@given(frames(FAST))
def test_round_trip_fast(rows: pl.DataFrame) -> None:
    codec = TableCodec(table(FAST))
    decoded = codec.decode(codec.encode(rows))
    assert decoded.bad == []
    assert_frame_equal(
        plain(decoded.rows), rows.select(plain(decoded.rows).columns), check_exact=True
    )


@settings(max_examples=drawn(60), deadline=None)
@given(frames(SLOW))
def test_round_trip_with_bytes_and_decimals(rows: pl.DataFrame) -> None:
    codec = TableCodec(table(SLOW))
    decoded = codec.decode(codec.encode(rows))
    assert decoded.bad == []
    assert_frame_equal(
        plain(decoded.rows), rows.select(plain(decoded.rows).columns), check_exact=True
    )


@settings(max_examples=drawn(60), deadline=None)
@given(frames(FAST))
def test_the_fast_engine_and_fastavro_agree(rows: pl.DataFrame) -> None:
    fast = TableCodec(table(FAST))
    reference = TableCodec(table(FAST))
    reference._layout.fast = False
    values = fast.encode(rows, producer="p", from_offset=1, offset=2, trace="t")
    assert reference.encode(rows, producer="p", from_offset=1, offset=2, trace="t") == values
    one = fast.decode(values)
    other = reference.decode(values)
    assert_frame_equal(one.rows, other.rows, check_exact=True)
    assert_frame_equal(one.records, other.records)


@settings(max_examples=drawn(100), deadline=None)
@given(frames(FAST), st.booleans())
def test_the_short_cut_for_few_rows_and_the_long_way_agree(
    rows: pl.DataFrame, stamped: bool
) -> None:
    short = TableCodec(table(FAST))
    long = TableCodec(table(FAST))
    long._few = None
    stamp: dict[str, Any] = (
        {"producer": "p", "from_offset": 1, "offset": 2, "trace": "t"} if stamped else {}
    )
    values = short.encode(rows, **stamp)
    assert long.encode(rows, **stamp) == values
    for some in (rows[:1], rows):
        assert short.encode_partitioned(some, 4, **stamp) == long.encode_partitioned(
            some, 4, **stamp
        )
    values += long.encode(rows, writes=[1, rows.height - 1], **stamp)
    one = short.decode(values)
    other = long.decode(values)
    assert_frame_equal(one.rows, other.rows, check_exact=True)
    assert_frame_equal(one.records, other.records)
    assert (one.stamps, one.traced) == (other.stamps, other.traced)


@settings(max_examples=drawn(300), deadline=None)
@given(st.data())
def test_the_short_cut_judges_no_bytes_otherwise(data: st.DataObject) -> None:
    kinds = {
        "v": ColumnType("VARCHAR", 8),
        "n": ColumnType("TINYINT"),
        "u": ColumnType("BIGINT UNSIGNED"),
        "b": ColumnType("BOOL"),
    }
    short = TableCodec(table(kinds))
    long = TableCodec(table(kinds))
    long._few = None
    damaged = bytearray(
        short.encode(
            pl.DataFrame(
                {"tbname": ["d1"], "ts": [5], "v": ["abc"], "n": [1], "u": [7], "b": [True]}
            )
        )[0]
    )
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    one = short.decode([bytes(damaged)])
    other = long.decode([bytes(damaged)])
    assert one.bad == other.bad
    assert_frame_equal(one.rows, other.rows, check_exact=True)
    assert_frame_equal(one.records, other.records)


@settings(max_examples=drawn(300), deadline=None)
@given(st.data())
def test_any_bytes_are_bad_or_good_and_the_rest_goes_on(data: st.DataObject) -> None:
    codec = TableCodec(table({"v": ColumnType("VARCHAR", 8), "n": ColumnType("TINYINT")}))
    good = codec.encode(pl.DataFrame({"tbname": ["d1"], "ts": [5], "v": ["abc"], "n": [1]}))[0]
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    junk = data.draw(
        st.sampled_from(
            [bytes(damaged), bytes(damaged[: data.draw(st.integers(0, len(damaged)))]), None]
        )
        | st.binary()
    )
    decoded = codec.decode([good, junk, good])
    assert [i for i, _ in decoded.bad] in ([], [1])
    assert decoded.rows.filter(pl.col("_record") != 1)["v"].to_list() == ["abc", "abc"]
    assert decoded.records["_record"].to_list() == ([0, 2] if decoded.bad else [0, 1, 2])


def test_records_carry_their_stamp() -> None:
    codec = TableCodec(table({"v": ColumnType("INT")}))
    rows = pl.DataFrame({"tbname": ["d1", "d2", "d3"], "ts": [1, 2, 3], "v": [1, None, 3]})
    first = codec.encode(
        rows, writes=[2, 1], producer="s:1:in.db:0", from_offset=7, offset=9, trace="abc"
    )
    decoded = codec.decode([*first, *codec.encode(rows)])
    assert decoded.records.to_dicts() == [
        {
            "_record": 0,
            "rows": 3,
            "producer": "s:1:in.db:0",
            "from_offset": 7,
            "offset": 9,
            "ordinal": 0,
            "last": True,
            "trace": "abc",
        },
        {
            "_record": 1,
            "rows": 3,
            "producer": None,
            "from_offset": -1,
            "offset": -1,
            "ordinal": 0,
            "last": True,
            "trace": None,
        },
    ]
    assert decoded.rows["_record"].to_list() == [0, 0, 0, 1, 1, 1]
    assert decoded.rows["_write"].to_list() == [0, 0, 1, 2, 2, 2]
    assert decoded.rows.schema["_write"] == pl.UInt32
    assert decoded.rows["_op"].to_list() == [0] * 6


def test_write_numbers_go_on_behind_a_bad_record() -> None:
    codec = TableCodec(table({"v": ColumnType("INT")}))
    one = codec.encode(
        pl.DataFrame({"tbname": ["a", "a"], "ts": [1, 2], "v": [1, 2]}), writes=[1, 1]
    )[0]
    decoded = codec.decode([one, b"junk!!", one, one])
    assert decoded.rows["_write"].to_list() == [0, 1, 2, 3, 4, 5]
    assert decoded.rows["_record"].to_list() == [0, 0, 2, 2, 3, 3]
    assert decoded.bad == [(1, "no schema frame in front")]


def test_everything_bad_is_an_empty_frame_of_the_right_shape() -> None:
    codec = TableCodec(table(SLOW, {"g": ColumnType("INT")}))
    decoded = codec.decode([None, b"", b"\0\0\0\0\x07abc"])
    assert [r for _, r in decoded.bad] == [
        "empty record",
        "no schema frame in front",
        "schema id 7 where 100 was expected",
    ]
    assert decoded.rows.height == decoded.records.height == 0
    assert decoded.rows.schema["c_dec"] == pl.Decimal(20, 4)
    assert decoded.rows.columns == ["_record", "_write", "_op", "tbname", "ts", *SLOW, "g"]
    assert codec.decode([]).rows.schema == decoded.rows.schema


def foreign(definition: Table, rows: list[dict[str, Any]], **more: Any) -> bytes:
    """A record as another program writes it, with the published schema."""
    schema = fastavro.parse_schema(
        avro_schema(definition.newest, definition.precision, definition.name)
    )
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, schema, {"rows": rows, **more})
    return frame_of(definition.schema_id) + buffer.getvalue()


@pytest.mark.parametrize(
    ("row", "more", "reason"),
    [
        ({"n": 300}, {}, "value out of range in n"),
        ({"v": "far too long"}, {}, "value out of range in v"),
        ({"ts": TIME_LIMITS["ms"][1] + 1}, {}, "value out of range in ts"),
        ({"t": 1_700_000_000_000_000_000}, {}, "value out of range in t"),
        ({"d": float("inf")}, {}, "value out of range in d"),
        ({"d": float("-inf")}, {}, "value out of range in d"),
        ({"op": 4}, {}, "value out of range in op"),
        ({"op": 300}, {}, "value out of range in op"),
        ({"op": -(2**31)}, {}, "value out of range in op"),
        ({"tbname": ""}, {}, "value out of range in tbname"),
        ({"tbname": "x" * 193}, {}, "value out of range in tbname"),
        ({}, {"writes": [2]}, "writes does not add up to the number of rows"),
        ({}, {"writes": [2, -1]}, "writes does not add up to the number of rows"),
    ],
)
def test_a_row_that_does_not_fit_spoils_its_record_only(
    row: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    kinds = {
        "v": ColumnType("VARCHAR", 8),
        "n": ColumnType("TINYINT"),
        "t": ColumnType("TIMESTAMP"),
    }
    definition = table({**kinds, "d": ColumnType("DOUBLE")})
    base = {"tbname": "d1", "ts": 1, "op": 0, "v": "a", "n": 1, "t": 1, "d": 0.5}
    good = foreign(definition, [base])
    decoded = TableCodec(definition).decode(
        [good, foreign(definition, [{**base, **row}], **more), good]
    )
    assert decoded.bad == [(1, reason)]
    assert decoded.rows["_record"].to_list() == decoded.records["_record"].to_list() == [0, 2]


def test_bytes_that_are_no_text_are_bad() -> None:
    codec = TableCodec(table({"v": ColumnType("VARCHAR", 8)}))
    value = codec.encode(pl.DataFrame({"tbname": ["d1"], "ts": [1], "v": ["abc"]}))[0]
    decoded = codec.decode([value.replace(b"abc", b"a\xff\xfe")])
    assert decoded.rows.height == 0
    assert "malformed Avro" in decoded.bad[0][1]


def test_other_programs_read_and_write_it_by_the_published_schema() -> None:
    definition = table(
        {"v": ColumnType("INT"), "u": ColumnType("BIGINT UNSIGNED")},
        {"place": ColumnType("NCHAR", 16)},
        precision="us",
    )
    moment = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    value = foreign(definition, [{"tbname": "d1", "ts": moment, "op": 0, "v": 5, "place": "köln"}])
    decoded = TableCodec(definition).decode([value])
    assert decoded.rows.to_dicts() == [
        {
            "_record": 0,
            "_write": 0,
            "_op": 0,
            "tbname": "d1",
            "ts": 1714979289123456,
            "v": 5,
            "u": None,
            "place": "köln",
        }
    ]
    mine = TableCodec(definition).encode(
        decoded.rows.with_columns(u=pl.lit(2**64 - 1, dtype=pl.UInt64))
    )[0]
    schema = fastavro.parse_schema(avro_schema(definition.newest, "us"))
    read: Any = fastavro.schemaless_reader(io.BytesIO(mine[5:]), schema, None)
    assert read["rows"] == [
        {"tbname": "d1", "ts": moment, "op": 0, "v": 5, "u": -1, "place": "köln"}
    ]


def test_old_records_come_out_in_the_newest_shape() -> None:
    old = table(
        {"a": ColumnType("INT"), "b": ColumnType("VARCHAR", 4), "c": ColumnType("FLOAT")},
        {"g": ColumnType("INT")},
    )
    value = TableCodec(old).encode(
        pl.DataFrame(
            {"tbname": ["d"], "ts": [1], "a": [2**31 - 1], "b": ["abcd"], "c": [1.5], "g": [9]}
        )
    )
    columns = (
        TIME,
        Column("b", ColumnType("VARCHAR", 99)),
        Column("d", ColumnType("DOUBLE")),
        Column("a", ColumnType("BIGINT")),
    )
    new = altered(
        old,
        TableVersion(101, columns, (Column("region", ColumnType("BIGINT")),), (("g", "region"),)),
    )
    decoded = TableCodec(new, 100).decode(value)
    assert decoded.bad == []
    assert plain(decoded.rows).to_dicts() == [
        {"_op": 0, "tbname": "d", "ts": 1, "b": "abcd", "d": None, "a": 2**31 - 1, "region": 9}
    ]
    assert decoded.rows.schema == TableCodec(new).decode([]).rows.schema


def test_a_column_dropped_and_made_again_starts_empty() -> None:
    first = table({"a": ColumnType("INT")})
    value = TableCodec(first).encode(pl.DataFrame({"tbname": ["d"], "ts": [1], "a": [5]}))
    again = altered(altered(first, TableVersion(101, (TIME,))), TableVersion(102, first.columns))
    assert TableCodec(again, 100).decode(value).rows["a"].to_list() == [None]


def test_partitions_keep_order_and_writes() -> None:
    codec = TableCodec(table({"v": ColumnType("INT")}))
    names = [f"d{i % 7}" for i in range(100)]
    rows = pl.DataFrame({"tbname": names, "ts": range(100), "v": range(100)})
    found = codec.encode_partitioned(rows, 4, writes=[10] * 10)
    assert [p for p, _ in found] == sorted({partition(n, 4) for n in names})
    for number, value in found:
        decoded = codec.decode([value]).rows
        expected = rows.with_columns(_w=pl.col("v") // 10).filter(
            pl.col("tbname").map_elements(
                lambda n, number=number: partition(n, 4) == number, return_dtype=pl.Boolean
            )
        )
        assert decoded["v"].to_list() == expected["v"].to_list()
        assert decoded["_write"].to_list() == [
            r - 1 for r in expected["_w"].rank("dense").to_list()
        ]


def test_records_are_cut_at_writes_where_it_can_be_and_always_the_same_way() -> None:
    codec = TableCodec(table({"v": ColumnType("VARCHAR", 100)}))
    rows = pl.DataFrame(
        {"tbname": ["d1"] * 90, "ts": range(90), "v": ["x" * (i % 50) for i in range(90)]}
    )
    values = codec.encode(rows, writes=[30, 5, 55], max_bytes=1500, producer="p", offset=4)
    assert values == codec.encode(
        rows[:1].extend(rows[1:]), writes=[30, 5, 55], max_bytes=1500, producer="p", offset=4
    )
    assert all(len(v) <= 1500 for v in values)
    assert len(values) > 3
    decoded = codec.decode(values)
    assert decoded.rows["ts"].to_list() == list(range(90))
    assert decoded.records["ordinal"].to_list() == list(range(len(values)))
    assert decoded.records["last"].to_list() == [False] * (len(values) - 1) + [True]
    ends = set(decoded.records["rows"].cum_sum().to_list())
    assert {30, 35} & ends


NUMBER = {"v": ColumnType("INT")}
TEXT = {"v": ColumnType("VARCHAR", 4000)}


def leaving(number: int, kinds: dict[str, ColumnType], height: int, text: int = 1) -> Outgoing:
    codec = TableCodec(table(kinds, schema_id=100 + number))
    names = pl.Series("tbname", [f"d{number}_{i % 5}" for i in range(height)])
    v = (
        pl.Series("v", ["x" * text] * height)
        if kinds is TEXT
        else pl.Series("v", range(height), dtype=pl.Int32)
    )
    rows = pl.DataFrame([names, pl.Series("ts", range(height), dtype=pl.Int64), v])
    known = pl.Series(hashes(names)) if number % 2 else None
    return Outgoing(
        codec,
        rows,
        2 + number % 3,
        f"p{number}",
        number,
        number + 1,
        "t" if number % 4 == 0 else None,
        known,
    )


@settings(max_examples=drawn(40), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([NUMBER, TEXT]),
            st.sampled_from([1, 5, _BY_FASTAVRO, _BY_FASTAVRO + 1, 300]),
            st.sampled_from([1, 4000]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_what_leaves_together_is_what_each_would_be_alone(
    drawn_parts: list[tuple[dict[str, ColumnType], int, int]],
) -> None:
    parts = [leaving(i, *part) for i, part in enumerate(drawn_parts)]
    assert encode_together(parts) == [part.encode() for part in parts]


def test_a_part_that_does_not_fit_is_refused_with_the_others() -> None:
    wide = leaving(1, TEXT, 300)
    wide.rows[-1, "v"] = "x" * 1_000_000
    with pytest.raises(SchemaError, match="larger"):
        encode_together([leaving(0, TEXT, 300), wide])


def test_records_of_tables_that_look_the_same_are_read_together() -> None:
    renamed = {"w": NUMBER["v"]}
    one, other = (
        TableCodec(table(kinds, schema_id=i)) for i, kinds in ((100, NUMBER), (101, renamed))
    )
    assert (
        one.reads_like
        == other.reads_like
        != TableCodec(table({"v": ColumnType("BIGINT")})).reads_like
    )
    assert TableCodec(table(SLOW)).reads_like is None
    rows = pl.DataFrame({"tbname": ["a", "b"] * 20, "ts": range(40), "v": range(40)})
    values = [
        *one.encode(rows, producer="p", offset=1),
        *other.encode(rows.rename({"v": "w"}), producer="q", offset=2),
        TableCodec(table(NUMBER, schema_id=102)).encode(rows)[0],
    ]
    decoded = one.decode(values, [101])
    assert decoded.stamps == [(0, "p", 1, 0), (1, "q", 2, 0)]
    assert decoded.rows["v"].to_list() == [*range(40), *range(40)]
    assert [index for index, _ in decoded.bad] == [2]
    assert [index for index, _ in one.decode(values).bad] == [1, 2]


def test_refuses_rows_that_cannot_be_written() -> None:
    codec = TableCodec(table({"v": ColumnType("VARCHAR", 5000)}))
    with pytest.raises(SchemaError, match="larger"):
        codec.encode(pl.DataFrame({"tbname": ["d"], "ts": [1], "v": ["x" * 5000]}), max_bytes=4000)
    with pytest.raises(SchemaError, match="no time"):
        codec.encode(
            pl.DataFrame(
                {"tbname": ["d"], "ts": [None], "v": ["x"]}, schema_overrides={"ts": pl.Int64}
            )
        )
    with pytest.raises(SchemaError, match="add up"):
        codec.encode(pl.DataFrame({"tbname": ["d"], "ts": [1]}), writes=[2])
    with pytest.raises(SchemaError, match="none of table"):
        TableCodec(table({}), 999)


def test_odd_names_are_spelled_in_hex_on_the_wire() -> None:
    definition = table({"a-b": ColumnType("INT"), "温度": ColumnType("DOUBLE")})
    fastavro.parse_schema(json.loads(json.dumps(avro_schema(definition.newest, "ms"))))
    codec = TableCodec(definition)
    rows = pl.DataFrame({"tbname": ["d"], "ts": [1], "a-b": [7], "温度": [math.pi]})
    assert plain(codec.decode(codec.encode(rows)).rows).drop("_op").to_dicts() == rows.to_dicts()
    assert wire_name("a-b") == "x_612d62"
    assert wire_name("plain_1") == "plain_1"


@given(
    st.lists(
        st.none() | st.binary(max_size=8) | st.binary(max_size=4).map(lambda b: b"\0\0\0" + b),
        max_size=30,
    ),
    st.integers(0, 9),
)
def test_schema_ids_of_an_arrow_array_are_those_of_its_values(
    values: list[bytes | None], start: int
) -> None:
    array = pa.array(values, pa.binary()).slice(start)
    assert schema_ids(values[start:], array).tolist() == [
        i for one in values[start:] for i in schema_ids([one]).tolist()
    ]


def test_schema_ids_and_arrow_input() -> None:
    codec = TableCodec(
        table({"v": ColumnType("INT")}, schema_id=32895)
    )  # bytes of a float that is not a number
    value = codec.encode(pl.DataFrame({"tbname": ["d"], "ts": [1], "v": [2]}))[0]
    assert schema_ids([value, b"\0\0\0\0\1x", b"\1\0\0\0\1x", b"\0\0", None]).tolist() == [
        32895,
        1,
        -1,
        -1,
        -1,
    ]
    odd = [value, b"\0\xff\0\0\1", b"\0\0\0\0\1x", b"\1\0\0\0\1x", b"\0\0", b"", None] * 3
    assert schema_ids(odd).tolist() == [i for one in odd for i in schema_ids([one]).tolist()]
    assert schema_ids([]).tolist() == []
    assert codec.decode(pa.array([value, value])).rows["v"].to_list() == [2, 2]
    assert (
        codec.encode(
            pl.DataFrame({"tbname": [], "ts": []}, schema={"tbname": pl.String, "ts": pl.Int64})
        )
        == []
    )


PLAIN = {"a": ColumnType("INT"), "b": ColumnType("VARCHAR", 1000)}


def cleared(*rows: tuple[int, int, int | None, str | None]) -> pl.DataFrame:
    """Rows of table m from (op, ts, a, b)."""
    schema = {"_op": pl.Int8, "ts": pl.Int64, "a": pl.Int32, "b": pl.String}
    return pl.DataFrame(list(rows), schema=schema, orient="row").with_columns(tbname=pl.lit("m"))


@pytest.mark.parametrize("many", [1, 40])
def test_a_clear_goes_with_the_partial_row_after_it(many: int) -> None:
    codec = TableCodec(table(PLAIN))
    rows = cleared(*[(3, 1, 0, None), (2, 1, None, "x")] * many)
    decoded = codec.decode(codec.encode(rows))
    assert decoded.bad == []
    assert decoded.rows.select("_op", "ts", "a", "b").rows() == rows.drop("tbname").rows()


@pytest.mark.parametrize(
    "rows",
    [
        [(3, 1, 0, None)],
        [(3, 1, 0, None), (0, 1, 1, "x")],
        [(3, 1, 0, None), (2, 2, 1, None)],
        [(3, 1, 0, None), (3, 1, None, "x"), (2, 1, None, None)],
    ],
)
def test_a_clear_without_its_partial_row_is_a_bad_record(
    rows: list[tuple[int, int, int | None, str | None]],
) -> None:
    codec = TableCodec(table(PLAIN))
    decoded = codec.decode(codec.encode(cleared(*rows)))
    assert decoded.rows.height == 0
    assert decoded.bad == [(0, "op 3 without the op 2 of its row after it")]


def test_no_record_ends_between_a_clear_and_its_row() -> None:
    codec = TableCodec(table(PLAIN))
    pairs = [version for i in range(200) for version in ((3, i, 0, "0"), (2, i, None, None))]
    for most in (400, 450, 500):
        records = codec.encode(cleared(*pairs), max_bytes=most, writes=[400])
        assert len(records) > 20
        assert codec.decode(records).bad == []
