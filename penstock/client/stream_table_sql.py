"""Arguments of the functions that make stream tables: their checks, and their spelling in SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any

from penstock.client.stream_definitions import StreamDefinition
from penstock.client.stream_table_options import StreamTableOptions
from penstock.client.table_handles import StreamTable, TableDefinition, quote_name
from penstock.errors import CatalogError, SchemaError


def check_arguments(table: Any, raft_group: Any, cache_limit: Any) -> None:
    """Raise an error that names the argument which a stream table cannot be made from."""
    if not isinstance(table, TableDefinition) or isinstance(table, StreamDefinition):
        is_stream_table = isinstance(table, (StreamDefinition, StreamTable))
        kind = "a stream table" if is_stream_table else type(table).__name__
        raise SchemaError(
            f"table must be an empty table made by penstock.table, not {kind}", code="E_BODY"
        )
    if len(table):
        raise SchemaError(
            f"table must be empty, it has {len(table)} rows",
            code="E_BODY",
            hint="make it from names and types alone",
        )
    if isinstance(raft_group, bool) or not isinstance(raft_group, (int, str)):
        raise CatalogError(
            f"raftGroup must be an integer greater than 1 or an alias, not {raft_group!r}",
            code="E_RAFT_GROUP",
        )
    if isinstance(cache_limit, bool) or not isinstance(cache_limit, int):
        raise SchemaError(f"cacheLimit must be an integer, not {cache_limit!r}", code="E_BODY")


def options_sql(options: StreamTableOptions) -> list[str]:
    """Return the options of WITH that are not at their defaults."""
    return [
        f"{option.name}={_SPELLINGS.get(option.name, str)(value)}"
        for option in fields(options)
        if (value := getattr(options, option.name)) != option.default
    ]


def quote_text(value: str) -> str:
    """Return *value* as a literal of SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def spell_duration(given: str | timedelta) -> str:
    """Return a duration as SQL has it; the reference's units are upper case."""
    if isinstance(given, timedelta):
        return f"{given // timedelta(milliseconds=1)}a"
    return quote_text(given.lower())


def spell_path(name: str) -> str:
    """Return `database.name` with both quoted."""
    return ".".join(quote_name(part) for part in name.split(".", 1))


def _spell_columns(names: str | Sequence[str]) -> str:
    columns = [names] if isinstance(names, str) else names
    return quote_text(", ".join(quote_name(column) for column in columns))


#: how values of options are written; others as Python prints them
_SPELLINGS: dict[str, Callable[[Any], str]] = {
    "key_column": _spell_columns,
    "retention_minutes": "{:g}".format,
    "filter_column": quote_text,
    "timestamp_column": quote_text,
    "cache_purge_time_column": quote_text,
    "cache_purge_interval": spell_duration,
    "cache_retention_time": spell_duration,
}
