from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest

from gateway import row_checks, rows
from gateway.layout import RowLayout
from gateway.row_error import RowError
from penstock.rows.versions import MERGE, UPSERT
from penstock.sql.plan import Column
from penstock.types import ColumnType

NOW = 1_700_000_000_000


def layout(
    *columns: tuple[str, str],
    plain: bool = False,
    tags: tuple[tuple[str, str], ...] = (("site", "VARCHAR(8)"),),
) -> RowLayout:
    def made(pairs: tuple[tuple[str, str], ...]) -> tuple[Column, ...]:
        out = []
        for name, kind in pairs:
            base, _, rest = kind.partition("(")
            sizes = [int(x) for x in rest.rstrip(")").split(",")] if rest else []
            type_ = ColumnType(base, *sizes) if len(sizes) < 2 else ColumnType(base, 0, *sizes)
            out.append(Column(name, type_))
        return tuple(out)

    return RowLayout(
        1,
        100,
        "db",
        "meters",
        "in.db",
        4,
        (Column("ts", ColumnType("TIMESTAMP")), *made(columns)),
        () if plain else made(tags),
        "ms",
        86_400_000,
        plain,
    )


METERS = layout(("v", "DOUBLE"), ("n", "INT"), ("s", "VARCHAR(4)"))


def test_objects_become_a_frame_in_the_tables_order() -> None:
    frame = rows.from_objects(
        METERS, [{"n": 1, "TBNAME": "d1", "v": 2, "ts": NOW, "s": "x", "site": "a"}]
    )
    assert frame.columns == ["tbname", "_op", "ts", "v", "n", "s", "site"]
    assert frame.row(0) == ("d1", UPSERT, NOW, 2.0, 1, "x", "a")
    row_checks.check(METERS, frame, NOW)


def test_an_absent_column_keeps_what_is_stored() -> None:
    frame = rows.from_objects(
        METERS,
        [
            {"tbname": "d1", "ts": 1, "v": 1.0, "n": 1, "s": None},
            {"tbname": "d1", "ts": 2, "v": 1.0, "n": 1},
        ],
    )
    assert frame["_op"].to_list() == [UPSERT, MERGE]
    frame = rows.from_objects(METERS, [{"tbname": "d1", "ts": 1, "v": 1.0}])
    assert frame["_op"].to_list() == [MERGE]


@pytest.mark.parametrize(
    ("row", "column", "words"),
    [
        ({"tbname": "d1", "ts": 1, "vv": 1.0}, "vv", 'did you mean "v"'),
        ({"tbname": "d1", "ts": 1, "v": "12"}, "v", '"12" is not DOUBLE'),
        ({"tbname": "d1", "ts": 1, "n": 2**31}, "n", "2147483648 is not INT"),
        ({"tbname": "d1", "ts": 1, "n": 1.5}, "n", "1.5 is not INT"),
        ({"tbname": "d1", "ts": "yesterday"}, "ts", "is not TIMESTAMP"),
        ({"tbname": "d1", "ts": True}, "ts", "is not TIMESTAMP"),
        ({"tbname": "d1", "v": 1.0}, "ts", "is missing"),
        ({"ts": 1, "v": 1.0}, "tbname", "is missing"),
        ({"tbname": "d1", "ts": 1, "v": 1.0, "V": 2.0}, "v", "is given twice"),
    ],
)
def test_a_bad_row_names_its_index_and_column(
    row: dict[str, object], column: str, words: str
) -> None:
    good = {"tbname": "d1", "ts": 1, "v": 1.0}
    with pytest.raises(RowError, match=words) as caught:
        rows.from_objects(METERS, [good, row] if "ts" in row and "tbname" in row else [row])
    assert caught.value.column == column
    assert ("'2024-01-31T12:00:00Z'" in caught.value.hint) == (words == "is not TIMESTAMP")


def test_the_row_to_blame_is_found() -> None:
    many = [{"tbname": "d1", "ts": i, "n": i} for i in range(100)]
    many[63]["n"] = "x"
    with pytest.raises(RowError) as caught:
        rows.from_objects(METERS, many)
    assert (caught.value.row, caught.value.column) == (63, "n")
    assert caught.value.to_dict()["row"] == 63


@pytest.mark.parametrize(
    ("change", "column", "words"),
    [
        ({"ts": NOW + 86_400_001}, "ts", "MAX_AHEAD"),
        ({"ts": -(2**60)}, "ts", "out of range"),
        ({"s": "12345"}, "s", "longer than 4"),
        ({"tbname": ""}, "tbname", "empty"),
        ({"tbname": "x" * 193}, "tbname", "longer than 192"),
        ({"site": "123456789"}, "site", "longer than 8"),
        ({"ts": None}, "ts", "is null"),
    ],
)
def test_checks_of_whole_frames(change: dict[str, object], column: str, words: str) -> None:
    good = {"tbname": "d1", "ts": NOW, "v": 1.0, "n": 1, "s": "x", "site": "y"}
    frame = rows.from_objects(METERS, [good, {**good, **change}])
    with pytest.raises(RowError, match=words) as caught:
        row_checks.check(METERS, frame, NOW)
    assert (caught.value.row, caught.value.column) == (1, column)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("t", 1_700_000_000_000_000_000),
        ("t", -(2**62)),
        ("v", float("inf")),
        ("f", 1e300),
        ("f", float("-inf")),
    ],
)
def test_a_value_that_could_not_be_read_back_is_refused(name: str, value: float) -> None:
    odd = layout(("t", "TIMESTAMP"), ("v", "DOUBLE"), ("f", "FLOAT"))
    good = {"tbname": "d1", "ts": NOW, "t": NOW, "v": 1.0, "f": 1.0}
    with pytest.raises(RowError) as caught:
        row_checks.check(odd, rows.from_objects(odd, [good, {**good, name: value}]), NOW)
    assert (caught.value.row, caught.value.column) == (1, name)
    table = pl.DataFrame([good, {**good, name: value}]).to_arrow()
    with pytest.raises(RowError):
        row_checks.check(odd, rows.from_arrow(odd, table), NOW)


def test_a_row_of_more_than_64_kib_is_refused() -> None:
    wide = layout(("a", "VARCHAR(60000)"), ("b", "VARCHAR(60000)"))
    frame = rows.from_objects(
        wide, [{"tbname": "d", "ts": 1, "a": "x" * 40_000, "b": "x" * 40_000}]
    )
    with pytest.raises(RowError, match="larger than"):
        row_checks.check(wide, frame, NOW)


def test_odd_types() -> None:
    odd = layout(
        ("d", "DECIMAL(6,2)"),
        ("b", "VARBINARY(8)"),
        ("f", "BOOL"),
        ("u", "BIGINT UNSIGNED"),
        plain=True,
    )
    frame = rows.from_objects(
        odd, [{"ts": "2024-01-01T00:00:00Z", "d": "12.3", "b": "\\x0aff", "f": 1, "u": 2**64 - 1}]
    )
    assert frame.row(0) == (
        "meters",
        UPSERT,
        1704067200000,
        Decimal("12.30"),
        b"\x0a\xff",
        True,
        2**64 - 1,
    )
    rounded = rows.from_objects(odd, [{"ts": 1, "d": 0.125}, {"ts": 2, "d": "-9999.994"}])
    assert rounded["d"].to_list() == [Decimal("0.13"), Decimal("-9999.99")]
    for bad in (12345.6, 9999.995, "NaN", "Infinity"):
        with pytest.raises(RowError, match="is not DECIMAL"):
            rows.from_objects(odd, [{"ts": 1, "d": bad}])


def test_arrow_columns_fit_without_loss_or_not_at_all() -> None:
    table = pa.table(
        {
            "tbname": pa.array(["a", "b"]).dictionary_encode(),
            "ts": pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("ns", "UTC")),
            "v": pa.array([1, 2], pa.int8()),
            "n": pa.array([1.0, 2.0]),
            "s": pa.array(["x", None]),
        }
    )
    frame = rows.from_arrow(METERS, table)
    assert frame["ts"].to_list() == [1704067200000] * 2
    assert frame.schema["n"] == pl.Int32
    with pytest.raises(RowError) as caught:
        rows.from_arrow(METERS, table.set_column(3, "n", pa.array([1.0, 2.5])))
    assert (caught.value.row, caught.value.column) == (1, "n")
    with pytest.raises(RowError, match="does not fit"):
        rows.from_arrow(METERS, table.set_column(2, "v", pa.array(["1", "2"])))


def test_times_of_arrow_that_the_precision_cannot_hold_are_refused() -> None:
    fine = replace(METERS, precision="ns", max_ahead=2**62)
    for values in (
        pl.Series("ts", [32_503_680_000_000]).cast(pl.Datetime("ms")),
        pl.Series("ts", [900_000], dtype=pl.Int32).cast(pl.Date),
    ):
        frame = rows.from_arrow(fine, pl.DataFrame({"tbname": ["d"], "ts": values}).to_arrow())
        with pytest.raises(RowError, match="out of range"):
            row_checks.check(fine, frame, NOW * 10**6)


def test_bytes_are_no_text() -> None:
    with pytest.raises(RowError) as caught:
        rows.from_arrow(METERS, pa.table({"tbname": ["d"], "ts": [NOW], "s": [b"x"]}))
    assert caught.value.column == "s"
    sent = {"$bytes": "00ff"}
    with pytest.raises(RowError) as caught:
        rows.from_objects(METERS, [{"tbname": "d", "ts": NOW, "s": sent}])
    assert (caught.value.row, caught.value.column) == (0, "s")
    raw = layout(("b", "VARBINARY(4)"))
    assert rows.from_objects(raw, [{"tbname": "d", "ts": NOW, "b": sent}])["b"].to_list() == [
        b"\x00\xff"
    ]
