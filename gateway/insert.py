"""INSERT: literals, or what a SELECT gave, become frames, checked before the first row of the
statement is sent.

Owns binding VALUES and selected columns to columns, and TAGS to tags. An error points at the row in
the statement's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import polars as pl
import pyarrow as pa

from gateway import literals, notices, row_checks, rows
from gateway.layout import TBNAME, RowLayout
from gateway.row_error import RowError
from penstock.sql.plan import TICKS_PER_SECOND, Column
from penstock.sql.statements import Insert, InsertPart, InsertSelect, Value
from penstock.sql.words import TIME_FORMS
from penstock.types import ColumnType


@dataclass(frozen=True)
class BoundRows:
    """One table of an INSERT, ready to write."""

    layout: RowLayout
    frame: pl.DataFrame
    #: see `gateway.notices`
    notices: tuple[str, ...] = ()


def bind(
    statement: Insert, part: InsertPart, layout: RowLayout, child: str | None, tz: tzinfo, now: int
) -> BoundRows:
    """Rows of one part as a frame; *now* in nanoseconds. Raises SqlSemanticError at the row to
    blame.
    """
    at = now * TICKS_PER_SECOND[layout.precision] // 10**9
    columns = _columns(statement, part, layout)
    width = len(columns)
    for i, row in enumerate(part.rows):
        if len(row) != width:
            raise statement.error(
                f"row {i} has {len(row)} values for {width} columns",
                part.row_offsets[i],
                code="E_ROW",
            )
    given: dict[str, Sequence[Any]] = {}
    given_as = list(zip(columns, zip(*part.rows, strict=True), strict=True))
    for column, values in given_as:
        given[column.name] = _values(statement, part, column, values, layout.precision, tz, at)
    if part.stable is not None:
        for tag, value in _tags(statement, part, layout, tz, at):
            given[tag.name] = [value] * len(part.rows)
    try:
        frame = rows.from_columns(layout, given, child=child, tz=tz)
        row_checks.check(layout, frame, at)
    except RowError as error:
        offset = part.row_offsets[error.row] if error.row >= 0 else part.table.offset
        raise statement.error(error.message, offset, code="E_ROW", hint=error.hint) from error
    times = next((values for column, values in given_as if column.name == layout.time), ())
    return BoundRows(layout, frame, tuple(notices.of_numbers(times, layout.precision)))


def join_by_table(bound: Sequence[BoundRows]) -> list[BoundRows]:
    """Parts of a statement as one write a table, so that no row is late for another of its own
    statement.
    """
    found: dict[tuple[int, int], list[BoundRows]] = {}
    for part in bound:
        found.setdefault((part.layout.table_id, part.layout.schema_id), []).append(part)
    return [parts[0] if len(parts) == 1 else _concatenate(parts) for parts in found.values()]


def _concatenate(parts: Sequence[BoundRows]) -> BoundRows:
    told = tuple(dict.fromkeys(notice for part in parts for notice in part.notices))
    return BoundRows(parts[0].layout, pl.concat([p.frame for p in parts], how="diagonal"), told)


def bind_selected(
    statement: InsertSelect, selected: pa.Table, layout: RowLayout, child: str | None, now: int
) -> BoundRows:
    """Rows that a SELECT gave as a frame; *now* in nanoseconds. Raises SqlSemanticError."""
    wanted = _places(statement, selected.column_names, layout, of_child=child is not None)
    try:
        frame = rows.from_arrow(layout, selected.rename_columns(wanted), child=child)
        row_checks.check(layout, frame, now * TICKS_PER_SECOND[layout.precision] // 10**9)
    except RowError as error:
        raise statement.error(
            error.message, statement.select.start, code="E_ROW", hint=error.hint
        ) from error
    return BoundRows(layout, frame)


def _by_place(layout: RowLayout, count: int, *, of_child: bool) -> list[str]:
    """Return the columns that so many without names are for."""
    stamped = layout.stamped and count == len(layout.fields) - 2
    wanted = [c.name for c in (layout.fields[2:] if stamped else layout.fields)]
    if of_child and count == len(layout.fields) - len(layout.tags):
        return wanted[:count]
    return wanted


def _places(
    statement: InsertSelect, given: Sequence[str], layout: RowLayout, *, of_child: bool
) -> list[str]:
    """Return the column that each selected one is for: by place, but a `tbname` among them is the
    child table's name wherever it stands. Rows of a child table may leave its tags out.
    """
    if statement.columns is not None:
        fields = (Column(TBNAME, ColumnType("VARCHAR", 192)), *layout.fields)
        wanted = [
            _find(statement, fields, n, statement.table.offset, "column").name
            for n in statement.columns
        ]
        free = list(range(len(given)))
    else:
        free = [i for i, name in enumerate(given) if name.lower() != TBNAME]
        wanted = _by_place(layout, len(free), of_child=of_child)
    if len(free) != len(wanted):
        words = f"SELECT gives {len(free)} columns for {len(wanted)}"
        raise statement.error(
            words, statement.select.start, code="E_ROW", hint=f"they are for {', '.join(wanted)}"
        )
    places = [TBNAME] * len(given)
    for i, name in zip(free, wanted, strict=True):
        places[i] = name
    return places


def tag_values(
    statement: Any,
    names: Sequence[str] | None,
    values: Sequence[Value],
    layout: RowLayout,
    offset: int,
    tz: tzinfo,
    at: int,
) -> list[tuple[Column, Any]]:
    """TAGS of a child table as values, in the order given."""
    tags = (
        [_find(statement, layout.tags, n, offset, "tag") for n in names]
        if names is not None
        else list(layout.tags)
    )
    if len(tags) != len(values):
        raise statement.error(
            f"{layout.table} has {len(tags)} tags, {len(values)} values are given",
            offset,
            code="E_TAGS",
        )
    made = []
    for tag, value in zip(tags, values, strict=True):
        try:
            converted = literals.convert(value, tag.type, layout.precision, tz, at)
            made.append((tag, rows.column_value(layout, tag, converted, tz)))
        except (ValueError, OverflowError, RecursionError, RowError) as wrong:
            raise statement.error(
                f"{value!r} is not {tag.type}", offset, code="E_TAGS", detail=f'tag "{tag.name}"'
            ) from wrong
    return made


def _tags(
    statement: Insert, part: InsertPart, layout: RowLayout, tz: tzinfo, at: int
) -> list[tuple[Column, Any]]:
    return tag_values(statement, part.tag_names, part.tag_values, layout, part.table.offset, tz, at)


def _columns(statement: Insert, part: InsertPart, layout: RowLayout) -> list[Column]:
    if part.columns is None:
        # rows of a stream without a time column are written as they were defined; time and number
        # come by themselves
        return list(
            layout.columns[2:]
            if layout.stamped and part.rows and len(part.rows[0]) == len(layout.columns) - 2
            else layout.columns
        )
    found = []
    for name in part.columns:
        if name.lower() == TBNAME:
            found.append(Column(TBNAME, ColumnType("VARCHAR", 192)))
            continue
        found.append(_find(statement, layout.columns, name, part.table.offset, "column"))
    return found


def _find(statement: Any, columns: Sequence[Column], name: str, offset: int, what: str) -> Column:
    for column in columns:
        if column.name.lower() == name.lower():
            return column
    hint = f"there are {', '.join(c.name for c in columns)}"
    raise statement.error(
        f'there is no {what} "{name[:192]}"', offset, code="E_NO_COLUMN", hint=hint
    )


def _values(
    statement: Insert,
    part: InsertPart,
    column: Column,
    values: Sequence[Value],
    precision: str,
    tz: tzinfo,
    at: int,
) -> list[Any]:
    kind = column.type
    made = []
    plain = {
        "FLOAT": (float, int),
        "DOUBLE": (float, int),
        "BIGINT": (int,),
        "INT": (int,),
        "VARCHAR": (str,),
        "NCHAR": (str,),
        "TIMESTAMP": (int,),
    }
    direct = plain.get(kind.kind, ())
    for i, value in enumerate(values):
        if value is None or type(value) in direct:
            made.append(value)
            continue
        try:
            made.append(literals.convert(value, kind, precision, tz, at))
        except (ValueError, OverflowError) as wrong:
            words = f'row {i}, column "{column.name}": {str(value)[:64]!r} is not {kind}'
            hint = TIME_FORMS if kind.kind == "TIMESTAMP" else ""
            raise statement.error(words, part.row_offsets[i], code="E_ROW", hint=hint) from wrong
    return made
