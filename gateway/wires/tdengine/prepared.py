"""Statements with placeholders, and what they are run as once values are bound.

Beside `?` for values, TDengine's clients write one for the table of an INSERT. Rows of an INSERT go
together, of several tables, too: it is run as few statements with many rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gateway.layout import TBNAME, RowLayout
from gateway.wires.tdengine.bound_tables import BoundTable
from penstock.errors import SchemaError, SqlSyntaxError
from penstock.sql import statements as st
from penstock.sql.parser import read
from penstock.sql.plan import Column
from penstock.sql.words import quote_name
from penstock.types import ColumnType

#: rows of one statement that is run
_ROWS = 1_000
_TABLE_HOLDER = re.compile(r"\s*INSERT\s+INTO\s+(\?)", re.IGNORECASE)
#: stands for the table while the text is read
_STAND_IN = "t"
_PART = r"(?:`(?:[^`]|``)+`|[^.`(\s]+)"
_TABLE_NAME = re.compile(rf"(?:({_PART})\.)?({_PART})")
_WRITTEN_NAME = re.compile(rf"{_PART}(?:\s*\.\s*{_PART})?")
Kind = Literal["tbname", "tag", "column"]


@dataclass(frozen=True)
class BindField:
    """What a placeholder of an INSERT stands for."""

    kind: Kind
    column: Column


_TABLE_FIELD = BindField("tbname", Column(TBNAME, ColumnType("VARCHAR", 192)))


@dataclass(frozen=True)
class PreparedText:
    """A statement that has been read.

    Args:
        sql: its text.
        holders: how many values it takes, without that of the table.
        is_insert: it writes rows.
        part: the rows of an INSERT … VALUES; None: it is another statement.
        table: its table as it is written; None: that is bound.
        before: placeholders that stand before the row.
        head: what stands between table and values.
        row: the row.
    """

    sql: str
    holders: int
    is_insert: bool
    part: st.InsertPart | None = None
    table: str | None = None
    before: int = 0
    head: str = ""
    row: str = ""


def prepare(sql: str) -> PreparedText:
    """Return the statement of *sql*. Raises SqlError: it cannot be read, or prepared."""
    found = _TABLE_HOLDER.match(sql)
    text = sql if found is None else sql[: found.start(1)] + _STAND_IN + sql[found.end(1) :]
    statement = _read_one(text)
    holders = statement.placeholders
    if not isinstance(statement, st.Insert) or (not holders and found is None):
        return PreparedText(sql, len(holders), isinstance(statement, st.Insert | st.InsertSelect))
    part = _only_part(statement)
    start = part.table.offset
    row_at = part.row_offsets[0]
    names_end = _end_of_name(text, start)
    return PreparedText(
        sql,
        len(holders),
        True,
        part,
        None if found is not None else text[start:names_end],
        sum(isinstance(value, st.Placeholder) for value in part.tag_values),
        text[names_end:row_at],
        text[row_at : statement.end],
    )


def _read_one(text: str) -> st.Statement:
    """Return the only statement of *text*, whose placeholders have no names."""
    statements = read(text)
    if len(statements) != 1:
        raise SqlSyntaxError("one statement is prepared at a time", code="E_SEVERAL_STATEMENTS")
    if any(holder.name for holder in statements[0].placeholders):
        raise SqlSyntaxError("values are bound to ?, not to names", hint="write ? for each value")
    return statements[0]


def _only_part(statement: st.Insert) -> st.InsertPart:
    if len(statement.parts) != 1 or len(statement.parts[0].rows) != 1:
        raise SqlSyntaxError(
            "an INSERT that is prepared has one table and one row of values",
            hint="bind as many tables and rows to it as you like",
        )
    return statement.parts[0]


def _end_of_name(text: str, start: int) -> int:
    found = _WRITTEN_NAME.match(text, start)
    assert found is not None, "the statement was read"
    return found.end()


def quote_table(name: str) -> str:
    """Return a table's name as SQL has it; a database may stand before it. Raises SchemaError."""
    found = _TABLE_NAME.fullmatch(name.strip())
    if found is None:
        raise SchemaError(
            f'"{name[:192]}" is no name of a table',
            code="E_BAD_NAME",
            hint="table, or database.table",
        )
    return ".".join(quote_name(_unquoted(part)) for part in found.groups() if part)


def split_table(name: str) -> tuple[str | None, str]:
    """Return database, or None, and name of a table. Raises SchemaError."""
    quote_table(name)
    found = _TABLE_NAME.fullmatch(name.strip())
    assert found is not None
    database, table = found.groups()
    return (_unquoted(database) if database else None), _unquoted(table)


def _unquoted(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


# ---------------------------------------------------------------- what placeholders stand for


def fields_of(part: st.InsertPart, layout: RowLayout, *, table_bound: bool) -> list[BindField]:
    """Return what the placeholders of an INSERT into a table of *layout* stand for, in order; that
    of the table first.

    Raises:
        SchemaError: there is no such column or tag.
    """
    made = [_TABLE_FIELD] if table_bound else []
    tags = [c.name for c in layout.tags] if part.tag_names is None else list(part.tag_names)
    columns = [c.name for c in layout.columns] if part.columns is None else list(part.columns)
    given = [*zip(tags, part.tag_values, strict=False), *zip(columns, part.rows[0], strict=False)]
    bound = [name for name, value in given if isinstance(value, st.Placeholder)]
    return made + [_field(name, layout) for name in bound]


def _field(name: str, layout: RowLayout) -> BindField:
    if name.lower() == TBNAME:
        return _TABLE_FIELD
    found = layout.find(name)
    if found is None:
        raise SchemaError(
            f'there is no column "{name[:192]}" in {layout.table}',
            code="E_NO_COLUMN",
            hint=f"there are {', '.join(c.name for c in layout.fields)}",
        )
    return BindField("tag" if found in layout.tags else "column", found)


def by_child(
    prepared: PreparedText, fields: Sequence[BindField]
) -> tuple[PreparedText, list[Kind]]:
    """Return an INSERT into a supertable that names child tables in a column as one that names
    them as its tables, with what its placeholders stand for; any other INSERT as it is.

    Raises:
        SchemaError: its row has values beside placeholders.
    """
    if prepared.table is None or not any(f.kind == "tbname" for f in fields):
        return prepared, [f.kind for f in fields[0 if prepared.table is not None else 1 :]]
    return _with_tables_bound(prepared, fields)


def _with_tables_bound(
    prepared: PreparedText, fields: Sequence[BindField]
) -> tuple[PreparedText, list[Kind]]:
    assert prepared.part is not None
    if len(fields) != len(prepared.part.rows[0]):
        raise SchemaError(
            "an INSERT with tbname takes ? for each of its values", code="E_PARAMETER"
        )
    tags = [quote_name(f.column.name) for f in fields if f.kind == "tag"]
    columns = [quote_name(f.column.name) for f in fields if f.kind == "column"]
    using = f" USING {prepared.table} ({', '.join(tags)}) TAGS ({_marks(tags)})" if tags else ""
    head = f"{using} ({', '.join(columns)}) VALUES "
    made = replace(prepared, table=None, before=len(tags), head=head, row=f"({_marks(columns)})")
    of_tags: list[Kind] = ["tag"] * len(tags)
    of_columns: list[Kind] = ["column"] * len(columns)
    return made, of_tags + of_columns


def _marks(names: Sequence[str]) -> str:
    return ", ".join("?" * len(names))


# ---------------------------------------------------------------- what is run


def statements_of(
    prepared: PreparedText, kinds: Sequence[Kind], bound: Sequence[BoundTable]
) -> Iterator[tuple[str, list[Any]]]:
    """Yield INSERTs with their parameters that write all that is bound.

    Args:
        kinds: of the placeholders in the text, without that of the table.

    Raises:
        SchemaError: what is bound does not fit the placeholders.
    """
    parts: list[str] = []
    parameters: list[Any] = []
    rows = 0
    for table, start, values in _pieces(prepared, kinds, bound):
        if parts and rows + len(values) > _ROWS:
            yield "INSERT INTO " + " ".join(parts), parameters
            parts, parameters, rows = [], [], 0
        parts.append(f"{table}{prepared.head}{', '.join([prepared.row] * len(values))}")
        parameters.extend(start)
        for row in values:
            parameters.extend(row)
        rows += len(values)
    if parts:
        yield "INSERT INTO " + " ".join(parts), parameters


def _pieces(
    prepared: PreparedText, kinds: Sequence[Kind], bound: Sequence[BoundTable]
) -> Iterator[tuple[str, list[Any], list[list[Any]]]]:
    """Yield the table, values before the rows, and rows, some at a time."""
    before = prepared.before
    for one in bound:
        rows = _rows(one, kinds)
        table = prepared.table
        if table is None:
            if not one.name:
                raise SchemaError(
                    "the table's name is not bound",
                    code="E_PARAMETER",
                    hint="set_table_name does it",
                )
            table = quote_table(one.name)
        for start in range(0, len(rows), _ROWS):
            some = rows[start : start + _ROWS]
            yield table, some[0][:before], [row[before:] for row in some]


def _rows(bound: BoundTable, kinds: Sequence[Kind]) -> list[list[Any]]:
    """Return a value for each placeholder, row by row."""
    tags = iter(bound.tags)
    columns = iter(bound.columns)
    expected = (kinds.count("tag"), kinds.count("column"))
    if (len(bound.tags), len(bound.columns)) != expected:
        raise SchemaError(
            f"{len(bound.tags)} tags and {len(bound.columns)} columns are bound",
            code="E_PARAMETER",
            hint=f"the statement takes {expected[0]} tags and {expected[1]} columns",
        )
    count = len(bound.columns[0]) if bound.columns else 1
    if any(len(column) != count for column in bound.columns):
        raise SchemaError("columns of different lengths are bound", code="E_PARAMETER")
    sources: list[Sequence[Any]] = []
    for kind in kinds:
        if kind == "column":
            sources.append(next(columns))
        else:
            sources.append([bound.name if kind == "tbname" else next(tags)] * count)
    return [list(row) for row in zip(*sources, strict=True)]
