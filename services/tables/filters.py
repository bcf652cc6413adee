"""Filters of subscriptions, evaluated where the rows are: only what passes is sent.

By values, by a range, or by hash of one column, or by any condition in SQL over all columns. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from penstock.catalog.model import Table
from penstock.errors import SchemaError
from penstock.rows.partition import partition_of
from penstock.sql.compile import compile_expression
from penstock.sql.plan import Column
from penstock.types import ColumnType

#: which rows of a frame (TIMESTAMP as ticks) pass
Filter = Callable[[pl.DataFrame], pl.Series]


def make(table: Table, wanted: dict[str, Any] | None) -> Filter | None:
    """The filter that a subscriber asks for: `{"sql": …}`, or `{"column": …}` with `values`,
    `range` or `hash`.

    Raises:
        SchemaError: `E_FILTER`: it is none.
        SqlError: the condition is wrong.
    """
    if not wanted:
        return None
    if "sql" in wanted:
        return _condition(table, str(wanted["sql"]))
    column = _column(table, wanted)
    if "values" in wanted:
        return _values(column, list(wanted["values"]))
    if "range" in wanted:
        return _range(column, list(wanted["range"]))
    if "hash" in wanted:
        return _hash(column, list(wanted["hash"]))
    raise SchemaError("a filter has values, a range, a hash or a condition", code="E_FILTER")


def _column(table: Table, wanted: dict[str, Any]) -> Column:
    name = wanted.get("column") or (
        table.replicated.filter_column if table.replicated is not None else None
    )
    if not name:
        hint = "make the table with filter_column, or name the column in the filter"
        raise SchemaError(f"table {table.name} has no filter column", code="E_FILTER", hint=hint)
    found = next((c for c in table.columns if c.name.lower() == str(name).lower()), None)
    if found is None:
        raise SchemaError(f"table {table.name} has no column {name}", code="E_FILTER")
    return found


def _condition(table: Table, sql: str) -> Filter:
    columns: dict[str, ColumnType] = {c.name: c.type for c in table.columns}
    compiled = compile_expression(sql, columns, precision=table.precision)
    if compiled.type.kind != "BOOL":
        raise SchemaError(
            f"a filter is a condition, not {compiled.type}", code="E_FILTER", detail=sql[:200]
        )
    return lambda frame: frame.select(compiled.expr.fill_null(False).alias("_pass")).to_series()


def _constants(column: Column, values: list[Any]) -> pl.Series:
    try:
        return pl.Series("constants", values, dtype=column.type.polars(), strict=True)
    except (TypeError, OverflowError, pl.exceptions.PolarsError) as wrong:
        raise SchemaError(
            f"a value of the filter is no {column.type}", code="E_FILTER", detail=str(wrong)[:200]
        ) from None


def _values(column: Column, values: list[Any]) -> Filter:
    constants = _constants(column, values)
    return lambda frame: frame[column.name].is_in(constants.implode())


def _range(column: Column, bounds: list[Any]) -> Filter:
    if len(bounds) != 2:
        raise SchemaError("a range has two ends: [from, to), to not included", code="E_FILTER")
    low, high = _constants(column, bounds).to_list()
    return lambda frame: ((frame[column.name] >= low) & (frame[column.name] < high)).fill_null(
        False
    )


def _hash(column: Column, given: list[Any]) -> Filter:
    """(buckets, index) or (buckets, from, to): murmur2 of the value's text, as Kafka partitions
    keys.
    """
    if len(given) not in (2, 3) or not all(isinstance(g, int) for g in given) or given[0] < 1:
        raise SchemaError(
            "a hash is (buckets, index) or (buckets, from, to), to not included", code="E_FILTER"
        )
    low, high = (given[1], given[1] + 1) if len(given) == 2 else (given[1], given[2])

    def passes(frame: pl.DataFrame) -> pl.Series:
        texts = frame[column.name].cast(pl.String).fill_null("")
        buckets = partition_of(texts, given[0])
        inside: pl.Series = (buckets >= low) & (buckets < high)
        return inside

    return passes
