"""Arguments of the functions that make stream tables: refused by name, or spelled in SQL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from penstock.client.stream_definitions import StreamDefinition
from penstock.client.stream_table_options import StreamTableOptions
from penstock.client.stream_table_sql import (
    check_arguments,
    options_sql,
    quote_text,
    spell_duration,
    spell_path,
)
from penstock.client.table_handles import TableDefinition
from penstock.errors import CatalogError, SchemaError
from penstock.sql import parse_one

_NAMES = ["ts", "v"]
_TYPES = ["TIMESTAMP", "DOUBLE"]
_EMPTY = TableDefinition(_NAMES, _TYPES)


@pytest.mark.parametrize("group", [2, "alias"])
def test_an_empty_table_a_group_and_a_limit_are_taken(group):
    check_arguments(_EMPTY, group, 100)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("t", "not str"),
        (None, "not NoneType"),
        (StreamDefinition(_NAMES, _TYPES), "not a stream table"),
        (TableDefinition(_NAMES, _TYPES, [[1, 2.0]]), "it has 1 rows"),
    ],
)
def test_anything_else_is_no_empty_table(table, words):
    with pytest.raises(SchemaError, match=words) as refused:
        check_arguments(table, 2, 100)
    assert refused.value.code == "E_BODY"


@pytest.mark.parametrize("group", [True, 2.0, None])
def test_a_group_is_an_id_or_an_alias(group):
    with pytest.raises(CatalogError, match="raftGroup") as refused:
        check_arguments(_EMPTY, group, 100)
    assert refused.value.code == "E_RAFT_GROUP"


@pytest.mark.parametrize("limit", [True, 1.5, "100", None])
def test_a_limit_is_a_whole_number(limit: Any) -> None:
    with pytest.raises(SchemaError, match="cacheLimit must be an integer"):
        check_arguments(_EMPTY, 2, limit)


def test_only_options_that_differ_from_their_defaults_are_spelled():
    assert options_sql(StreamTableOptions()) == []
    given = StreamTableOptions(
        key_column=["a", "b c"], retention_minutes=90.5, pre_cache=0, filter_column="f"
    )
    assert set(options_sql(given)) == {
        "key_column='a, `b c`'",
        "retention_minutes=90.5",
        "pre_cache=0",
        "filter_column='f'",
    }


@pytest.mark.parametrize("text", ["plain", "it's", "back\\slash", "\\'", "", "ä'\\"])
def test_a_text_comes_back_from_sql_as_it_was(text):
    found: Any = parse_one(f"SELECT {quote_text(text)} AS x FROM t")
    assert repr(text) in repr(found)


@pytest.mark.parametrize(
    ("given", "spelled"),
    [
        ("7H", "'7h'"),
        ("30d", "'30d'"),
        (timedelta(seconds=1.5), "1500a"),
        (timedelta(microseconds=999), "0a"),
        (timedelta(days=2), "172800000a"),
    ],
)
def test_durations_are_spelled_as_sql_has_them(given, spelled):
    assert spell_duration(given) == spelled


def test_both_parts_of_a_name_are_quoted_where_they_need_it():
    assert spell_path("db.t") == "db.t"
    assert spell_path("my db.a`b.c") == "`my db`.`a``b.c`"
