"""Every form of an answer, with values that tempt to be written wrongly."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.cli.options import Form
from penstock.cli.output import write
from penstock.cli.query import _statements
from penstock.errors import ConfigError

ROWS = pa.table(
    {
        "ts": pa.array([1_767_225_600_000_000_001, None], pa.timestamp("ns", "UTC")),
        "big": pa.array([2**63 - 1, None], pa.int64()),
        "name|": pa.array(["a|b\n\x1b[31m", ""], pa.string()),
        "raw": pa.array([b"\x00\xff", None], pa.binary()),
        "share": pa.array([0.1, float("nan")], pa.float64()),
        "sum": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
        "up": pa.array([True, None]),
    }
)


def written(table: pa.Table, form: Form) -> str:
    out = io.StringIO()
    write(table, form, out)
    return out.getvalue()


def test_a_table_has_columns_of_equal_width_and_cuts_nothing() -> None:
    wide = pa.table({"n": [1, 200], "text": ["x" * 300, "日本"]})
    head, rule, *rows = written(wide, "table").splitlines()
    assert head == "  n  text"
    assert rule == "---  " + "-" * 300
    assert rows == ["  1  " + "x" * 300, "200  日本"]


def test_a_terminal_gets_no_control_characters() -> None:
    for form in ("table", "vertical", "markdown"):
        text = written(ROWS, form)
        assert "\x1b" not in text and r"\n\x1b[31m" in text, form


def test_times_keep_all_digits_and_null_is_named() -> None:
    text = written(ROWS, "vertical")
    assert "ts     2026-01-01 00:00:00.000000001Z" in text
    assert "big    9223372036854775807" in text
    assert "raw    00ff" in text and "up     true" in text and "sum    1.50" in text
    assert text.count("NULL") == 5


def test_csv_can_be_read_again() -> None:
    head, first, second = csv.reader(io.StringIO(written(ROWS, "csv")))
    assert head == ROWS.column_names
    assert first[1:] == ["9223372036854775807", "a|b\n\x1b[31m", "00ff", "0.1", "1.50", "true"]
    assert second == ["", "", "", "", "nan", "", ""]


def test_json_and_its_lines_are_json() -> None:
    objects = json.loads(written(ROWS, "json"))
    assert objects[0]["big"] == 2**63 - 1 and objects[0]["name|"] == "a|b\n\x1b[31m"
    assert objects[1]["share"] is None and objects[1]["name|"] == ""
    lines = written(ROWS, "ndjson").splitlines()
    assert [json.loads(line) for line in lines] == objects
    assert written(ROWS.slice(0, 0), "json") == "[]\n"
    assert written(ROWS.slice(0, 0), "ndjson") == ""


def test_markdown_keeps_its_columns() -> None:
    head, rule, *rows = written(ROWS, "markdown").splitlines()
    assert r"name\|" in head and rule.count("|") == 8 and "-:" in rule
    assert all(row.replace(r"\|", "").count("|") == 8 for row in rows)


def test_parquet_goes_to_files_and_pipes_only() -> None:
    sink = io.BytesIO()
    out = io.TextIOWrapper(sink)
    rows = ROWS.drop_columns(["share"])
    write(rows, "parquet", out)
    assert pq.read_table(io.BytesIO(sink.getvalue())).equals(rows)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with pytest.raises(ConfigError, match="not for a terminal"):
        write(ROWS, "parquet", Terminal())


def test_an_answer_without_columns_or_rows() -> None:
    assert written(pa.table({}), "table") == written(pa.table({}), "json") == ""
    assert written(pa.table({"n": pa.array([], pa.int32())}), "table") == "n\n-\n"


def test_python_times_are_not_asked() -> None:
    table = pa.table({"t": pa.array([datetime(1, 1, 1, tzinfo=UTC)], pa.timestamp("ms", "UTC"))})
    assert "0001-01-01 00:00:00.000Z" in written(table, "csv")


def test_statements_come_from_one_place(tmp_path: Path) -> None:
    script = tmp_path / "a.sql"
    script.write_text("SELECT 1", encoding="utf-8")
    assert _statements("SELECT 2", None) == "SELECT 2"
    assert _statements(None, script) == "SELECT 1"
    for wrong in ((None, None), ("SELECT 1", script), (None, tmp_path / "none.sql")):
        with pytest.raises(ConfigError):
            _statements(*wrong)
