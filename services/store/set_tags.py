"""Tags that ALTER TABLE … SET TAG has changed, as a relation beside the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.duck.quoting import quote
from penstock.rows import tag_values
from penstock.types import ColumnType

_BYTES = ColumnType("VARBINARY")
#: DuckDB's types of times → the function that makes one of ticks
_OF_TICKS = {
    "TIMESTAMP_MS": "make_timestamp_ms",
    "TIMESTAMP": "make_timestamp",
    "TIMESTAMP_NS": "make_timestamp_ns",
}


def lines(
    changed: Mapping[str, Mapping[str, Any]], types: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the tags of child tables, a line each, and whether each tag was set.

    Args:
        changed: child table → tag → value as JSON has it.
        types: DuckDB's types of the tags that are wanted.
    """
    made = []
    for child, tags in changed.items():
        values = {name: _held(tags.get(name), kind) for name, kind in types.items()}
        known = {f"{name}?": name in tags for name in types}
        made.append({"tbname": child, **values, **known})
    return made


def _held(value: Any, kind: str) -> Any:
    """Return a value of JSON that DuckDB can cast; of a DECIMAL it reads the digits."""
    return tag_values.from_json(value, _BYTES) if kind == "BLOB" else value


def value(name: str, kind: str) -> str:
    """Return the SQL of a tag: the value that was set, where one was, else that of the row."""
    own = quote(name)
    return (
        f"CASE WHEN t.{quote(name + '?')} THEN {as_shown(f't.{own}', kind)} ELSE r.{own} END"
        f" AS {own}"
    )


def as_shown(column: str, kind: str) -> str:
    """Return the SQL of *column* in the type that it is shown in: a time is held in ticks."""
    if kind in _OF_TICKS:
        return f"{_OF_TICKS[kind]}(CAST({column} AS BIGINT))"
    return f"CAST({column} AS {kind})"
