"""CREATE STREAM TABLE and its options."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql.parsers.stream_tables import StreamTableParser
from penstock.sql.plan import Duration
from penstock.sql.statements import CreateStreamTable, StreamTableSettings
from tests.unit.sql.reading import read, refusal, refused

HEAD = "t (ts TIMESTAMP, a INT) WITH "


def created(text: str) -> Any:
    found = read(StreamTableParser, text, StreamTableParser.create_stream_table)
    assert isinstance(found, CreateStreamTable)
    return found


def options(text: str) -> StreamTableSettings:
    found = created(f"{HEAD}(raft_group=11, cache_limit=100{text})").options
    assert isinstance(found, StreamTableSettings)
    return found


def test_only_group_and_limit_must_be_given() -> None:
    assert options("") == StreamTableSettings(11, 100)
    found = created("IF NOT EXISTS db.t (ts TIMESTAMP) WITH (cache_limit=1, raft_group='g')")
    assert (found.if_not_exists, found.table.database) == (True, "db")
    assert found.options == StreamTableSettings("g", 1)


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("key_column='a'", "key_column", ("a",)),
        ("key_column='a, b'", "key_column", ("a", "b")),
        ("key_column='`a, b`,c'", "key_column", ("a, b", "c")),
        ("key_column='`a``b`'", "key_column", ("a`b",)),
        ("time_column='a,b'", "time_column", ("a", "b")),
        ("retention_minutes=1.5", "retention_minutes", 1.5),
        ("retention_minutes=-1", "retention_minutes", -1),
        ("pre_cache=10", "pre_cache", 10),
        ("filter_column='a'", "filter_column", "a"),
        ("timestamp_column='a'", "timestamp_column", "a"),
        ("status_column='a'", "status_column", "a"),
        ("key_rule='LAST'", "key_rule", "last"),
        ("async_write=true", "async_write", True),
        ("compress=FALSE", "compress", False),
        ("flush_mode=1", "flush_mode", 1),
    ],
)
def test_each_option_has_its_kind_of_value(text: str, field: str, value: Any) -> None:
    found = getattr(options(f", {text}"), field)
    assert (found, type(found)) == (value, type(value))


def test_a_misspelt_option_gets_a_hint() -> None:
    assert "did you mean PRE_CACHE?" in refusal(lambda: options(", pre_cash=1")).hint


def test_purging_has_three_options_that_go_together() -> None:
    found = options(
        ", cache_purge_time_column='ts', cache_purge_interval=10s, cache_retention_time='1h'"
    )
    assert found.cache_purge_time_column == "ts"
    assert found.cache_purge_interval == Duration(10, "s")
    assert found.cache_retention_time == Duration(1, "h")
    error = refusal(lambda: options(", cache_purge_interval=10s"))
    assert error.message == "cache_purge_time_column and cache_retention_time is missing"
    assert "go together" in error.hint


@pytest.mark.parametrize(
    ("text", "code", "column", "message"),
    [
        ("t (ts TIMESTAMP)", "E_SYNTAX", 17, "expected WITH, but the statement ends"),
        (f"{HEAD}(cache_limit=1)", "E_SYNTAX", 30, "raft_group is missing"),
        (f"{HEAD}(compress=true)", "E_SYNTAX", 30, "raft_group and cache_limit is missing"),
        (f"{HEAD}(flush_mode=1, flush_mode=2)", "E_OPTION_TWICE", 45, "flush_mode is given twice"),
        (f"{HEAD}(cache_limit=1.5)", "E_SYNTAX", 43, "expected a whole number, found 1.5"),
        (f"{HEAD}(retention_minutes=x)", "E_SYNTAX", 49, "expected a number, found x"),
        (
            f"{HEAD}(key_column='')",
            "E_SYNTAX",
            42,
            "expected names of columns, separated by commas, found ''",
        ),
        (f"{HEAD}(compress=1)", "E_SYNTAX", 40, "expected TRUE or FALSE, found 1"),
        (
            "t (a INT) WITH (raft_group=1)",
            "E_NO_TIME_COLUMN",
            4,
            "the first column must be a TIMESTAMP",
        ),
    ],
)
def test_a_fault_is_refused_at_its_place(text: str, code: str, column: int, message: str) -> None:
    found = refused(lambda: created(text))
    assert found[:3] == (code, 1, column)
    assert found[3].startswith(message)
