"""Rows of an answer as the series of InfluxDB's JSON: grouped by tags, windows filled, cut.

Owns fill(), LIMIT, OFFSET, SLIMIT, SOFFSET and the form of values. Blocks for large answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from gateway.wires.influxql.select_plan import MeasurementPlan, Value
from gateway.wires.influxql.times import format_time
from gateway.wires.influxql.tree import GroupingFill, Page, Select
from penstock.errors import OverloadError

#: windows of one answer, filled ones among them
MOST_WINDOWS = 200_000
Row: TypeAlias = tuple[int, list[Any]]
Series: TypeAlias = dict[str, Any]
_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def series(
    plan: MeasurementPlan, select: Select, answer: pa.Table, epoch: str | None
) -> list[Series]:
    """Return the series of *answer*. Raises OverloadError."""
    grouped = _group_rows(plan, answer)
    if select.grouping.every is not None:
        grouped = _fill_windows(plan, select, grouped)
    chosen = _cut(sorted(grouped), select.page.skipped_series, select.page.series)
    columns = ["time", *(value.label for value in plan.values)]
    found = []
    for key in chosen:
        rows = _in_order(grouped[key], select)
        made: Series = {"name": plan.measurement}
        if plan.tags:
            made["tags"] = dict(zip((name for name, _ in plan.tags), key, strict=True))
        made["columns"] = columns
        made["values"] = [[format_time(time, epoch), *values] for time, values in rows]
        if rows:
            found.append(made)
    return found


def _in_order(rows: list[Row], select: Select) -> Sequence[Row]:
    rows.sort(key=lambda row: row[0], reverse=select.descending)
    page: Page = select.page
    return _cut(rows, page.offset, page.limit)


def _cut(rows: Sequence[Any], offset: int, limit: int | None) -> Sequence[Any]:
    """A limit of 0 is none, as with InfluxDB."""
    return rows[offset : offset + limit] if limit else rows[offset:]


def _group_rows(plan: MeasurementPlan, answer: pa.Table) -> dict[tuple[str, ...], list[Row]]:
    """Return the rows that hold something, by their tags."""
    times, tags, values = _columns(plan, answer)
    found: dict[tuple[str, ...], list[Row]] = {}
    for i, time in enumerate(times):
        row = [column[i] if column is not None else None for column in values]
        missing = (_is_missing(v, said) for v, said in zip(plan.values, row, strict=True))
        if time is None or all(missing):
            continue
        key = tuple("" if column is None else column[i] for column in tags)
        found.setdefault(key, []).append((time, row))
    return found


def _columns(
    plan: MeasurementPlan, answer: pa.Table
) -> tuple[list[int | None], list[list[str] | None], list[list[Any] | None]]:
    """Return the times, the tags and the values of all rows; None for what has no column."""
    columns = iter(answer.columns)
    times: list[int | None] = [plan.times.start or 0] * answer.num_rows
    if plan.timed:
        times = _times(next(columns))
    tags = [_tag_texts(next(columns)) if column else None for _, column in plan.tags]
    values = [_values(next(columns)) if value.column else None for value in plan.values]
    return times, tags, values


def _is_missing(value: Value, said: Any) -> bool:
    return said is None or (value.function == "count" and said == 0)


# ---------------------------------------------------------------- windows


def _fill_windows(
    plan: MeasurementPlan, select: Select, grouped: dict[tuple[str, ...], list[Row]]
) -> dict[tuple[str, ...], list[Row]]:
    fill = select.grouping.fill
    if fill.kind == "none":
        return grouped
    filled: dict[tuple[str, ...], list[Row]] = {}
    room = MOST_WINDOWS
    for key, rows in grouped.items():
        windows = _windows(plan, select, rows)
        # no len(): there may be more than it can count
        room -= (windows.stop - windows.start) // windows.step
        if room < 0:
            raise OverloadError(
                f"the answer has more than {MOST_WINDOWS} windows",
                code="E_TOO_LARGE",
                hint="name a shorter time, a longer GROUP BY time(…), or fill(none)",
            )
        filled[key] = _fill(plan, fill, dict(rows), windows)
    return filled


def _windows(plan: MeasurementPlan, select: Select, rows: Sequence[Row]) -> range:
    """Return the beginnings of all windows from the first to the last."""
    every = select.grouping.every or 1
    offset = select.grouping.offset
    start = min(row[0] for row in rows) if plan.times.start is None else plan.times.start
    end = max(row[0] for row in rows) if plan.times.end is None else plan.times.end
    first = (start - offset) // every * every + offset
    return range(first, end + 1, every)


def _fill(
    plan: MeasurementPlan, fill: GroupingFill, rows: dict[int, list[Any]], windows: range
) -> list[Row]:
    before: list[Any] = [None] * len(plan.values)
    found: list[Row] = []
    for window in windows:
        row = rows.get(window, [None] * len(plan.values))
        made = []
        for i, value in enumerate(plan.values):
            if _is_missing(value, row[i]):
                made.append(_stands_for(value, fill, before[i]))
            else:
                before[i] = row[i]
                made.append(row[i])
        found.append((window, made))
    return found


def _stands_for(value: Value, fill: GroupingFill, before: Any) -> Any:
    """Return what a window without rows shows."""
    if fill.kind == "number":
        return fill.value
    if fill.kind == "previous":
        return before
    return 0 if value.function == "count" else None


# ---------------------------------------------------------------- values


def _times(column: pa.ChunkedArray) -> list[int | None]:
    size = _UNITS[column.type.unit]
    ticks = column.cast(pa.int64()).to_pylist()
    return [None if tick is None else tick * size for tick in ticks]


def _tag_texts(column: pa.ChunkedArray) -> list[str]:
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        return [None if t is None else format_time(t, None) for t in _times(column)]
    return [_plain(value) for value in column.to_pylist()]


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value
