"""Rows and window events as the notifier sends them, made Arrow tables with the types that the
table has: the notifier gives times as ticks, decimals as text and bytes as base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.errors import RemoteError

#: what says which row it is, and what became of it
_ABOUT_ROW = (pa.field("tbname", pa.string()), pa.field("op", pa.string()))
_OPERATIONS = ("upsert", "delete", "merge")
#: of a window event, in the order of the columns of a table; other fields go into `more`
_EVENT_TEXTS = ("eventType", "tableName")
_EVENT_TIMES = ("windowStart", "windowEnd")

Items = Sequence[Mapping[str, Any]]


def rows_table(items: Items, schema: pa.Schema) -> pa.Table:
    """Return rows as a table: `tbname`, `op`, and the columns of *schema*.

    Raises:
        RemoteError: a value is not of its column's type.
    """
    fields = [*_ABOUT_ROW, *(f for f in schema if f.name not in ("tbname", "op"))]
    columns = [_column([item.get(f.name) for item in items], f) for f in fields]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    prepare = _preparation(field.type)
    try:
        prepared = [None if v is None else prepare(v) for v in values]
        if pa.types.is_timestamp(field.type):
            return pa.array(prepared, pa.int64()).cast(field.type)
        return pa.array(prepared, field.type)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError) as wrong:
        raise RemoteError(
            f'column "{field.name}" came with a value that is no {field.type}',
            detail=str(wrong)[:200],
            hint="was the table changed? Start again",
        ) from None


def _preparation(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return base64.b64decode
    if pa.types.is_decimal(kind):
        return Decimal
    return lambda value: value


def unknown_columns(items: Items, schema: pa.Schema) -> list[str]:
    """Return columns that rows have and *schema* has not: they were added meanwhile."""
    known = {*schema.names, *(f.name for f in _ABOUT_ROW)}
    return [n for n in dict.fromkeys(k for item in items for k in item) if n not in known]


def selection_table(rows: pa.Table) -> pa.Table:
    """Return rows of an unbounded SELECT in the form of `rows_table`."""
    made = rows.drop_columns([n for n in ("_time", "_op") if n in rows.column_names])
    codes = rows.column("_op").to_pylist()
    operations = pa.array([_OPERATIONS[code] for code in codes], pa.string())
    return made.add_column(made.column_names.index("tbname") + 1, "op", operations)


def events_table(items: Items, unit: str) -> pa.Table:
    """Return window events as a table for people.

    Args:
        unit: of the ticks: `ms`, `us` or `ns`.
    """
    texts = {k: pa.array([_text(i.get(k)) for i in items], pa.string()) for k in _EVENT_TEXTS}
    times = {
        k: pa.array([i.get(k) for i in items], pa.int64()).cast(pa.timestamp(unit, "UTC"))
        for k in _EVENT_TIMES
    }
    rest = {k: pa.array([_text(i.get(k)) for i in items], pa.string()) for k in ("tags", "result")}
    return pa.table({**texts, **times, **rest})


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
