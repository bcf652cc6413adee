"""Formats of `to_char` and `to_timestamp` taken apart."""

from __future__ import annotations

import datetime as dt
import re

import polars as pl
import pytest

from penstock.sql.functions.time_formats import (
    TOKEN_PATTERNS,
    parse_format,
    read_ticks,
    write_token,
)
from tests.unit.sql.calling import Table, call_of


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("at", [("text", "at")]),
        ("YYYY-MM", [("token", "YYYY"), ("text", "-"), ("token", "MM")]),
        ("YYYYY", [("token", "YYYY"), ("token", "Y")]),
        ("HH24MI", [("token", "HH24"), ("token", "MI")]),
        ("hh12 am", [("token", "hh12"), ("text", " "), ("token", "am")]),
        ('"at HH" HH', [("text", "at HH"), ("text", " "), ("token", "HH")]),
        (r"\"DD\"", [("text", '"'), ("token", "DD"), ("text", '"')]),
        ('"open DD', [("text", '"open '), ("token", "DD")]),
        (
            "DDD DD D",
            [("token", "DDD"), ("text", " "), ("token", "DD"), ("text", " "), ("token", "D")],
        ),
    ],
)
def test_a_format_is_taken_apart(text: str, pieces: list[tuple[str, str]]) -> None:
    assert parse_format(text) == pieces


AT = dt.datetime.fromisoformat("2023-03-04T00:05:06.007008")


@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("YYYY", "2023"),
        ("yy", "23"),
        ("MM", "03"),
        ("DD", "04"),
        ("DDD", "063"),
        ("D", "7"),
        ("HH24", "00"),
        ("HH12", "12"),
        ("MI", "05"),
        ("SS", "06"),
        ("MS", "007"),
        ("US", "007008"),
        ("NS", "007008000"),
        ("AM", "AM"),
        ("pm", "am"),
        ("A.M.", "A.M."),
        ("Mon", "Mar"),
        ("MON", "MAR"),
        ("month", "march    "),
        ("Day", "Saturday "),
        ("DY", "SAT"),
        ("TZH", "+00"),
    ],
)
def test_a_token_is_written(token: str, text: str) -> None:
    frame = pl.DataFrame({"t": [AT]}, schema={"t": pl.Datetime("us", "UTC")})
    assert frame.select(write_token(token, pl.col("t"))).item() == text


@pytest.mark.parametrize(
    ("token", "fits"), [("MM", "1"), ("MM", "12"), ("MONTH", "MAY"), ("TZH", "-03")]
)
def test_a_token_is_found_at_the_start_of_a_text(token: str, fits: str) -> None:
    found = re.match(TOKEN_PATTERNS[token], fits)
    assert found is not None and found.group(1) == fits


def test_every_pattern_reads_one_group() -> None:
    for token, pattern in TOKEN_PATTERNS.items():
        assert re.compile(pattern).groups == 1, token


def test_a_time_is_made_of_the_groups_that_were_read() -> None:
    call = call_of(Table(), ["x"], timezone="Asia/Shanghai")
    groups = {"YYYY": pl.lit("1970"), "HH24": pl.lit("08"), "SS": pl.lit("01")}
    assert pl.select(read_ticks(call, groups, pl.lit(True))).item() == 1_000
    assert pl.select(read_ticks(call, groups, pl.lit(False))).item() is None
    late = {**groups, "SS": pl.lit("60")}
    assert pl.select(read_ticks(call, late, pl.lit(True))).item() is None
