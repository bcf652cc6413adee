"""Arguments of the functions that make stream tables: their checks, and their spelling in SQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from penstock.client.stream_definitions import StreamDefinition
from penstock.client.table_handles import StreamTable, TableDefinition, quote_name
from penstock.errors import CatalogError, SchemaError


def check_arguments(table: Any, raft_group: Any, cache_limit: Any) -> None:
    """Raise an error that names the argument which `haStreamTable` cannot take."""
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


def option(name: str, value: Any, spell: Callable[[Any], str] = str) -> list[str]:
    """Return an option of WITH, or nothing where it was not given."""
    return [] if value is None else [f"{name}={spell(value)}"]


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
