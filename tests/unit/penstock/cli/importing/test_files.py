"""Files of rows: what their columns are, and what is wrong with hostile ones, by line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.cli.importing.convert import ColumnUse, Converter
from penstock.cli.importing.survey import open_source, survey
from penstock.errors import SchemaError


def found(path: Path, content: str | bytes) -> dict[str, str]:
    """Return which types a file of this content has."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    columns = survey(open_source(path, ","), lambda _: None).columns
    return {column.name: str(column.type) for column in columns}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("1", "-2", ""), "BIGINT"),
        (("1", "2.5"), "DOUBLE"),
        (("1e3", "nan"), "DOUBLE"),
        (("9223372036854775807",), "BIGINT"),
        (("9223372036854775808",), "VARCHAR(32)"),
        (("12345678901234567", "0.5"), "VARCHAR(32)"),
        (("true", "False"), "BOOL"),
        (("true", "1"), "VARCHAR(16)"),
        (("007", "12"), "VARCHAR(16)"),
        (("0x1A",), "VARCHAR(16)"),
        (("inf",), "VARCHAR(16)"),
        (("2026-03-01", "2026-03-01 09:00:00"), "TIMESTAMP"),
        (("2026-03-01T09:00:00Z", "2026-03-01T09:00:00.5+02:00"), "TIMESTAMP"),
        (("2026-03-01", "soon"), "VARCHAR(16)"),
        (("2026-02-30",), "VARCHAR(16)"),
        (("x" * 17,), "VARCHAR(32)"),
        (("ä" * 17,), "VARCHAR(64)"),
        (("", ""), "VARCHAR(16)"),
    ],
)
def test_the_narrowest_type_that_holds_all_of_csv(
    tmp_path: Path, values: tuple[str, ...], kind: str
) -> None:
    text = "a,b\n" + "".join(f"{value},x\n" for value in values)
    assert found(tmp_path / "a.csv", text)["a"] == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("1", "2"), "BIGINT"),
        (("1", "2.0", "null"), "DOUBLE"),
        (("true", "null"), "BOOL"),
        (('"1"', '"2"'), "VARCHAR(16)"),
        (('"2026-03-01T09:00:00Z"',), "TIMESTAMP"),
        (("1", '"a"'), "VARCHAR(16)"),
        (("true", "1"), "VARCHAR(16)"),
        (('{"deep": [1, 2, 3, 4]}',), "VARCHAR(32)"),
        (("9223372036854775808",), "VARCHAR(32)"),
        (("9007199254740993", "0.5"), "VARCHAR(16)"),
    ],
)
def test_json_says_its_types_but_for_times(
    tmp_path: Path, values: tuple[str, ...], kind: str
) -> None:
    text = "".join(f'{{"a": {value}}}\n' for value in values)
    assert found(tmp_path / "a.ndjson", text) == {"a": kind}


def test_parquet_says_its_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "i": pa.array([1, None], pa.uint8()),
            "t": pa.array([0, 1], pa.timestamp("ns", "UTC")),
            "d": pa.array([0, 1], pa.date32()),
            "s": pa.array(["a", "b" * 20]).dictionary_encode(),
            "b": pa.array([b"\0", b"x"]),
            "m": pa.array([1, 2]).cast(pa.decimal128(21, 2)),
        }
    )
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    columns = survey(open_source(path, ","), lambda _: None).columns
    assert [str(c.type) for c in columns] == [
        "TINYINT UNSIGNED",
        "TIMESTAMP",
        "TIMESTAMP",
        "VARCHAR(32)",
        "VARBINARY(16)",
        "DECIMAL(21,2)",
    ]


def test_a_type_that_no_column_has_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"l": [[1, 2]]}), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match='column "l" has the type list'):
        survey(open_source(tmp_path / "a.parquet", ","), lambda _: None)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "a.csv is empty"),
        ("a.csv", b"a,b\n", "a.csv has no rows"),
        ("a.csv", b"a,b\n1,2\n3\n", "line 3: it has 1 fields, and there are 2 names"),
        ("a.csv", b"a,A\n", "line 1: two columns are called a"),
        ("a.csv", b"a,,c\n", "line 1: column 2 has no name"),
        ("a.csv", b"a;b\n1;2\n", "line 1: there is one column only"),
        ("a.csv", b"a,b\n1,2\n1,\0\n", "line 3: it has a NUL byte"),
        ("a.csv", b"a,b\n1,\xfcmlaut\n", "line 2: byte 3 (0xfc) is not UTF-8"),
        ("a.csv", "a,b\n1,2\n".encode("utf-16"), "it is UTF-16"),
        ("a.csv", b"\x1f\x8b\x08\x00", "it is compressed by gzip"),
        ("a.csv", b"PK\x03\x04", "a zip file"),
        ("a.csv", b'a,b\n1,"open\n' + b"x,y\n" * 9, "line 2: "),
        ("a.csv", b"a,b\n1," + b"x" * (2 << 20), "line 2: it has more than 1,048,576 bytes"),
        ("a.ndjson", b"x" * (2 << 20), "line 1: it has more than 1,048,576 bytes"),
        ("a.ndjson", b'{"a": 1}\n[1]\n', "line 2: '[1]\\n' is no object"),
        ("a.ndjson", b'{"a": NaN}\n', "line 1: it is not JSON: NaN is not JSON"),
        ("a.ndjson", b'{"a": "\\ud800"}\n', "line 1: it is not JSON"),
        ("a.ndjson", b'{"a": 1}\n{"a": \n', "line 2: it is not JSON"),
        ("a.ndjson", b'{"": 1}\n', "line 1: a key is empty"),
        ("a.ndjson", b"[" * 100_000, "line 1: it is not JSON"),
        ("a.parquet", b"PAR1 and no more", "a.parquet cannot be read as Parquet"),
    ],
)
def test_hostile_files_are_told_by_their_line(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    with pytest.raises(SchemaError) as wrong:
        found(tmp_path / name, content)
    assert said in str(wrong.value)
    assert len(str(wrong.value)) < 400 and "\0" not in str(wrong.value)


def test_a_mark_of_the_encoding_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert found(tmp_path / "a.csv", b"\xef\xbb\xbfa,b\n1,2\n") == {"a": "BIGINT", "b": "BIGINT"}


def test_a_field_may_go_over_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    found(path, 'a,b\n1,"two\nlines"\n2,x\n')
    [piece] = open_source(path, ",").pieces(lambda _: None)
    assert list(piece.places) == [2, 4]
    assert piece.columns["b"] == ["two\nlines", "x"]


# -------------------------------------------------------------------- values that do not fit

MS = pa.timestamp("ms", "UTC")


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        (["1", "2", "3.5"], pa.int32(), "line 4: column \"a\": '3.5' is no whole number of 32"),
        (["1", "3000000000"], pa.int32(), "line 3"),
        (["1.5", "much"], pa.float64(), "line 3: column \"a\": 'much' is no number"),
        (["inf"], pa.float64(), "line 2"),
        (["1", "perhaps"], pa.bool_(), "'perhaps' is no truth value"),
        (["2026-03-01", "soon"], MS, "line 3: column \"a\": 'soon' is no time"),
        (["2026-03-01T09:00:00.0001"], MS, "has more digits than times in ms"),
        (["1.234"], pa.decimal128(5, 2), "is no decimal128(5, 2)"),
    ],
)
def test_the_first_value_that_does_not_fit_is_named(
    tmp_path: Path, values: list[str], kind: pa.DataType, said: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "".join(f"{v},x\n" for v in values), encoding="utf-8")
    source = open_source(path, ",")
    [piece] = source.pieces(lambda _: None)
    with pytest.raises(SchemaError) as wrong:
        Converter(source, [ColumnUse("a", "a", kind)]).table(piece)
    assert said in str(wrong.value)


def test_digits_of_times_are_left_out_when_that_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1969-12-31T23:59:59.9999Z,x\n", encoding="utf-8")
    source = open_source(path, ",")
    [piece] = source.pieces(lambda _: None)
    table = Converter(source, [ColumnUse("a", "a", MS)], cut_times=True).table(piece)
    assert table.column("a").cast(pa.int64()).to_pylist() == [-1]


def test_a_truth_value_of_json_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text('{"a": 1}\n{"a": true}\n', encoding="utf-8")
    source = open_source(path, ",")
    [piece] = source.pieces(lambda _: None)
    with pytest.raises(SchemaError, match="line 2"):
        Converter(source, [ColumnUse("a", "a", pa.int64())]).table(piece)
