"""Conversions between types: none fails on a value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.sql.functions import convert as functions
from penstock.sql.functions.base import NULL
from penstock.sql.functions.convert import as_text, convert
from penstock.types import ColumnType
from tests.nightly import drawn
from tests.unit.sql.calling import TIMESTAMP, Table, apply, scope
from tests.unit.sql.reading import refusal

N = None
FEW = settings(max_examples=drawn(60), deadline=None)


def kind(text: str) -> ColumnType:
    name, _, length = text.partition("(")
    if name == "DECIMAL":
        precision, scale = map(int, length[:-1].split(","))
        return ColumnType("DECIMAL", precision=precision, scale=scale)
    return ColumnType(name, int(length[:-1] or 0)) if length else ColumnType(name)


def converted(values: list[Any], given: str, to: str, precision: str = "ms") -> list[Any] | None:
    table = Table()
    value = table.argument((values, kind(given)))
    made = convert(value, kind(to), scope(precision))
    if made is None:
        return None
    return pl.DataFrame(table.columns).select(x=made)["x"].to_list()


@pytest.mark.parametrize(
    ("values", "given", "to", "wanted"),
    [
        # whole numbers wrap, fractions are cut
        ([300, -1, N], "INT", "TINYINT UNSIGNED", [44, 255, N]),
        ([128, -129], "INT", "TINYINT", [-128, 127]),
        ([2**63], "BIGINT UNSIGNED", "BIGINT", [-(2**63)]),
        ([1.9, -1.9, N], "DOUBLE", "INT", [1, -1, N]),
        ([1e30, -1e30], "DOUBLE", "BIGINT", [2**63 - 1024, -(2**63)]),
        ([1.8e19, -1.0], "DOUBLE", "BIGINT UNSIGNED", [18 * 10**18, 2**64 - 1]),
        ([Decimal("2.50"), N], "DECIMAL(5,2)", "INT", [2, N]),
        ([True, False, N], "BOOL", "INT", [1, 0, N]),
        ([5, 0, N], "INT", "BOOL", [True, False, N]),
        ([0.5, 0.0], "DOUBLE", "BOOL", [True, False]),
        ([7, N], "BIGINT", "TIMESTAMP", [7, N]),
        # fractions
        ([5, N], "INT", "DOUBLE", [5.0, N]),
        ([True], "BOOL", "DOUBLE", [1.0]),
        ([1e39, 1.5], "DOUBLE", "FLOAT", [N, 1.5]),
        ([12.345], "DOUBLE", "DECIMAL(4,1)", [Decimal("12.3")]),
        ([1000], "INT", "DECIMAL(4,1)", [N]),
        # text
        ([5, -7, N], "INT", "VARCHAR(2)", ["5", "-7", N]),
        ([123], "INT", "VARCHAR(2)", ["12"]),
        ([True, False, N], "BOOL", "VARCHAR(9)", ["true", "false", N]),
        ([1.5], "DOUBLE", "VARCHAR(20)", ["1.500000"]),
        ([Decimal("1.50")], "DECIMAL(5,2)", "VARCHAR(20)", ["1.50"]),
        ([5], "TIMESTAMP", "VARCHAR(20)", ["5"]),
        (["aé", "éa", "é", N], "VARCHAR(9)", "VARCHAR(2)", ["a", "é", "é", N]),
        (["中中"], "VARCHAR(9)", "VARCHAR(5)", ["中"]),
        (["😀a"], "VARCHAR(9)", "VARCHAR(3)", [""]),
        (["aéb", N], "VARCHAR(9)", "NCHAR(2)", ["aé", N]),
        (['{"a":1}'], "JSON", "VARCHAR(3)", ['{"a']),
        # text as a number: what it begins with, else 0
        (["12x", " -7 ", "x", "", "1.9", N], "VARCHAR(9)", "INT", [12, -7, 0, 0, 1, N]),
        (["300"], "VARCHAR(9)", "TINYINT UNSIGNED", [44]),
        (["9223372036854775807"], "VARCHAR(20)", "BIGINT", [2**63 - 1]),
        (["1e3", "x", N], "VARCHAR(9)", "DOUBLE", [1000.0, 0.0, N]),
        (["1e999"], "VARCHAR(9)", "DOUBLE", [N]),
        (["1e39"], "VARCHAR(9)", "FLOAT", [N]),
        (["1.25", "x", "1e1", N], "VARCHAR(9)", "DECIMAL(5,2)", "1.25 0.00 10.00"),
        (
            ["TRUE", " true ", "1", "0", "x", N],
            "VARCHAR(9)",
            "BOOL",
            [True] * 3 + [False] * 2 + [N],
        ),
        (["1970-01-01 00:00:01", "5", "x", N], "VARCHAR(20)", "TIMESTAMP", [1000, 5, N, N]),
        # bytes
        (["ab", "\\x6162", N], "VARCHAR(9)", "VARBINARY(9)", [b"ab", b"ab", N]),
        (["abc"], "VARCHAR(9)", "VARBINARY(2)", [b"ab"]),
        ([b"abc", N], "VARBINARY(9)", "VARBINARY(2)", [b"ab", N]),
        # what has no such conversion
        ([5], "INT", "VARBINARY(2)", None),
        ([b"a"], "VARBINARY(2)", "INT", None),
        ([b"a"], "VARBINARY(2)", "VARCHAR(2)", None),
        (["{}"], "JSON", "VARBINARY(2)", None),
    ],
)
def test_a_value_is_converted(values: list[Any], given: str, to: str, wanted: Any) -> None:
    if isinstance(wanted, str):
        wanted = [*map(Decimal, wanted.split()), N]
    assert converted(values, given, to) == wanted


def test_null_becomes_null_of_every_type() -> None:
    for to in ("INT", "VARCHAR(3)", "VARBINARY(3)", "DECIMAL(3,1)", "TIMESTAMP", "BOOL"):
        found = convert(Table().argument(None), kind(to), scope())
        assert found is not None
        assert pl.select(x=found)["x"].dtype == kind(to).polars()
        assert pl.select(x=found).item() is None
    assert pl.select(as_text(Table().argument(None))).item() is None
    assert Table().argument(None).type == NULL


@FEW
@given(some.integers(-(2**63), 2**63 - 1))
def test_a_whole_number_survives_as_text(value: int) -> None:
    (text,) = converted([value], "BIGINT", "VARCHAR(20)") or []
    assert converted([text], "VARCHAR(20)", "BIGINT") == [value]


@FEW
@given(some.text(some.characters(exclude_categories=["Cs"]), max_size=6), some.integers(1, 12))
def test_a_text_is_cut_between_characters(text: str, length: int) -> None:
    wanted = text.encode()[:length].decode(errors="ignore")
    assert converted([text], "VARCHAR(40)", f"VARCHAR({length})") == [wanted]


MOMENT = 1_700_006_400_123
T = TIMESTAMP


@pytest.mark.parametrize(
    ("arguments", "options", "wanted"),
    [
        ((([MOMENT, N], T),), {}, ["2023-11-15T00:00:00.123+0000", N]),
        ((([MOMENT], T), "Z"), {}, ["2023-11-15T00:00:00.123Z"]),
        ((([MOMENT], T), "+08"), {}, ["2023-11-15T08:00:00.123+08"]),
        ((([MOMENT], T), "-0130"), {}, ["2023-11-14T22:30:00.123-0130"]),
        ((([MOMENT], T), "+05:45"), {}, ["2023-11-15T05:45:00.123+05:45"]),
        ((([MOMENT], T),), {"timezone": "Asia/Shanghai"}, ["2023-11-15T08:00:00.123+0800"]),
        ((([MOMENT * 1000 + 7], T),), {"precision": "us"}, ["2023-11-15T00:00:00.123007+0000"]),
        ((([MOMENT * 10**6], T),), {"precision": "ns"}, ["2023-11-15T00:00:00.123000000+0000"]),
    ],
)
def test_a_time_is_written_in_iso_form(arguments: Any, options: Any, wanted: list[Any]) -> None:
    assert apply(functions.to_iso8601, *arguments, **options) == wanted


@pytest.mark.parametrize("where", ["Europe/Berlin", "+8", "08:00", "", "+08:0", None])
def test_another_zone_than_an_offset_is_refused(where: str | None) -> None:
    error = refusal(lambda: apply(functions.to_iso8601, ([MOMENT], T), where))
    assert error.code == "E_FUNCTION_ARGUMENT"
    assert "an offset such as +08:00" in error.message


def test_text_is_read_as_ticks() -> None:
    texts = ["1970-01-01T00:00:01Z", "x", N]
    assert apply(functions.to_unixtimestamp, texts) == [1000, N, N]
    assert apply(functions.to_unixtimestamp, texts, 1, precision="us") == [1_000_000, N, N]
    assert (
        "is 0 (BIGINT) or 1" in refusal(lambda: apply(functions.to_unixtimestamp, texts, 2)).message
    )
    assert apply(functions.to_json, ["{}", N]) == ["{}", N]


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ("YYYY-MM-DD HH24:MI:SS.MS", "2023-11-05 15:04:09.123"),
        ("yyyy/mm/dd hh24.mi", "2023/11/05 15.04"),
        ("YYY YY Y", "023 23 3"),
        ("HH12 AM", "03 PM"),
        ("hh p.m.", "03 p.m."),
        ("US NS", "123000 123000000"),
        ("MONTH|Month|month", "NOVEMBER |November |november "),
        ("MON Mon mon", "NOV Nov nov"),
        ("DAY|Dy|dy", "SUNDAY   |Sun|sun"),
        ("D DDD", "1 309"),
        ("TZH", "+00"),
        ('"YYYY" YYYY', "YYYY 2023"),
        (r"\"YYYY", '"2023'),
        ("", ""),
    ],
)
def test_a_time_is_written_by_a_format(layout: str, text: str) -> None:
    at = int(dt.datetime(2023, 11, 5, 15, 4, 9, 123_000, dt.UTC).timestamp() * 1000)
    assert apply(functions.to_char, ([at, N], T), layout) == [text, N]


def test_a_format_of_null_gives_null() -> None:
    assert apply(functions.to_char, ([1], T), None) == [N]
    assert apply(functions.to_timestamp, ["1"], None) == [N]


@pytest.mark.parametrize(
    ("text", "layout", "wanted"),
    [
        ("2023-11-05 15:04:09.123", "YYYY-MM-DD HH24:MI:SS.MS", "2023-11-05T15:04:09.123"),
        (" 2023-1-5", "YYYY-MM-DD", "2023-01-05T00:00:00"),
        ("3:04 pm", "HH12:MI AM", "1970-01-01T15:04:00"),
        ("12:04 a.m.", "HH12:MI A.M.", "1970-01-01T00:04:00"),
        ("5 november 23", "DD Month YY", "2023-11-05T00:00:00"),
        ("Nov 5 023", "Mon DD YYY", "2023-11-05T00:00:00"),
        ("3", "Y", "2023-01-01T00:00:00"),
        ("2023-11-05 02 +02", "YYYY-MM-DD HH24 TZH", "2023-11-05T00:00:00"),
        ("10.5", "SS.MS", "1970-01-01T00:00:10.005"),
        ("2023 2024", "YYYY YYYY", "2024-01-01T00:00:00"),
        ("2023-13-05", "YYYY-MM-DD", N),
        ("2023-02-30", "YYYY-MM-DD", N),
        ("25", "HH24", N),
        ("x", "YYYY", N),
        (N, "YYYY", N),
    ],
)
def test_a_time_is_read_by_a_format(text: str | None, layout: str, wanted: str | None) -> None:
    found = apply(functions.to_timestamp, ([text], ColumnType("VARCHAR", 40)), layout)
    if wanted is None:
        assert found == [N]
        return
    moment = dt.datetime.fromisoformat(wanted).replace(tzinfo=dt.UTC)
    assert found == [round(moment.timestamp() * 1000)]


def test_the_day_of_the_year_cannot_be_read() -> None:
    error = refusal(lambda: apply(functions.to_timestamp, ["1"], "DDD"))
    assert error.code == "E_FUNCTION_ARGUMENT" and "DDD" in error.message


moments = some.datetimes(*map(dt.datetime.fromisoformat, ("1900-01-01", "2100-01-01")))


@FEW
@given(moments, some.sampled_from(["UTC", "Asia/Shanghai", "+05:00"]))
def test_what_is_written_by_a_format_is_read_back(moment: dt.datetime, timezone: str) -> None:
    ticks = int(moment.replace(tzinfo=dt.UTC).timestamp()) * 1000 + moment.microsecond // 1000
    layout = (
        "YYYY-MM-DD HH12:MI:SS.MS AM TZH"
        if timezone != "Asia/Shanghai"
        else "YYYY-MM-DD HH24:MI:SS.MS"
    )
    (text,) = apply(functions.to_char, ([ticks], T), layout, timezone=timezone)
    read = apply(functions.to_timestamp, [text], layout, timezone=timezone)
    if timezone == "Asia/Shanghai" and moment.year < 1992:
        return  # hours that daylight saving skipped or doubled
    assert read == [ticks]
