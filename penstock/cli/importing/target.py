"""Which column of the table each column of the file fills: of the table that is there, or of one
that is to be made.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.cli.importing.convert import ColumnUse
from penstock.cli.importing.survey import FoundColumn, Survey
from penstock.cli.table_name import TableName, precision_of
from penstock.errors import PenstockError, SchemaError
from penstock.sql.words import in_backticks
from penstock.types import ColumnType

if TYPE_CHECKING:
    from penstock.client.connection import Connection

TBNAME = "tbname"
#: whole numbers under these names are times in ticks
_TIME_NAMES = ("ts", "time", "timestamp")
_NO_TABLE = ("E_TABLE_NOT_EXIST", "E_NO_TABLE")


@dataclass(frozen=True)
class Choices:
    """What the command line says of columns.

    Args:
        time: the column with the time of each row.
        tbname: the column with the name of each row's child table; it makes a supertable.
        tags: columns that are tags.
    """

    time: str | None = None
    tbname: str | None = None
    tags: Sequence[str] = ()


@dataclass(frozen=True)
class Target:
    """`create` is the statement that makes the table; None for one that is there."""

    uses: tuple[ColumnUse, ...]
    create: str | None
    is_supertable: bool


def find_target(client: Connection, name: TableName, found: Survey, choices: Choices) -> Target:
    """Return what the file's columns fill. Raises SchemaError, or what the gateway says."""
    try:
        schema = client.query(f"SELECT * FROM {name.sql} LIMIT 0").table.schema
    except PenstockError as error:
        if error.code not in _NO_TABLE:
            raise
        return new_table(name, found, choices, _precision(client, name.database))
    listed = client.query("SELECT db_name, stable_name FROM information_schema.ins_stables").rows
    wanted = (name.database.lower(), name.table.lower())
    is_supertable = wanted in {(str(db).lower(), str(table).lower()) for db, table in listed}
    return existing_table(name, found, choices, schema, is_supertable)


def _precision(client: Connection, database: str) -> str:
    found = precision_of(client, database)
    if found is None:
        raise SchemaError(
            f"there is no database {database}",
            code="E_NO_DATABASE",
            hint=f"penstock sql 'CREATE DATABASE {in_backticks(database)}'",
        )
    return found


def existing_table(
    name: TableName, found: Survey, choices: Choices, schema: pa.Schema, is_supertable: bool
) -> Target:
    """Return which columns of a table that is there the file fills: those of the same name.

    Raises:
        SchemaError: the table has no such column, or the file lacks what every row needs.
    """
    source = _tbname_of(found, choices)
    if is_supertable and source is None:
        raise _no_tbname(name)
    uses = [ColumnUse(source, TBNAME, pa.string())] if source and is_supertable else []
    uses += _uses_of_same_name(name, found, schema, source)
    if schema.names[0] not in {use.target for use in uses}:
        raise SchemaError(
            f'the file has no column "{schema.names[0]}", the time of {name}', code="E_ROW"
        )
    return Target(tuple(uses), None, is_supertable)


def _uses_of_same_name(
    name: TableName, found: Survey, schema: pa.Schema, source: str | None
) -> Iterator[ColumnUse]:
    """Yield the file's columns that the table has; *source*, with names of child tables, it need
    not have.
    """
    known = {field.name.lower(): field for field in schema}
    for column in found.columns:
        field = known.get(column.name.lower())
        if field is not None:
            yield ColumnUse(column.name, field.name, field.type)
        elif column.name != source:
            raise _unknown(name, column.name, schema.names)


def new_table(name: TableName, found: Survey, choices: Choices, precision: str) -> Target:
    """Return the table that the file's columns make: its time first, then the others, then tags.

    Raises:
        SchemaError: no column is the time, or one that was chosen is not there.
    """
    _check_choices(found, choices)
    source = _tbname_of(found, choices)
    if choices.tags and source is None:
        raise _no_tbname(name)
    columns, tags = _columns_and_tags(found, choices, source)
    if source is not None and not tags:
        raise SchemaError(
            f"{name} would be a supertable without tags",
            code="E_ROW",
            hint="--tags COLUMN,COLUMN says which columns are tags",
        )
    uses = [ColumnUse(c.name, c.name, c.type.arrow(precision)) for c in (*columns, *tags)]
    if source is None:
        text = f"CREATE TABLE {name.sql} ({_definitions(columns)})"
        return Target(tuple(uses), text, is_supertable=False)
    uses.insert(0, ColumnUse(source, TBNAME, pa.string()))
    text = f"CREATE STABLE {name.sql} ({_definitions(columns)}) TAGS ({_definitions(tags)})"
    return Target(tuple(uses), text, is_supertable=True)


def _check_choices(found: Survey, choices: Choices) -> None:
    for chosen in (choices.time, choices.tbname, *choices.tags):
        if chosen is not None and _find(found, chosen) is None:
            raise _unknown("the file", chosen, [c.name for c in found.columns])


def _columns_and_tags(
    found: Survey, choices: Choices, source: str | None
) -> tuple[list[FoundColumn], list[FoundColumn]]:
    """Return the columns of a new table, the time first, and its tags; *source*, with names of
    child tables, is a column of it only if it is a tag.
    """
    names = {tag.lower() for tag in choices.tags}
    rest = [c for c in found.columns if c.name != source or c.name.lower() in names]
    time = _time_of(rest, choices)
    moment = FoundColumn(time.name, ColumnType("TIMESTAMP"), empty=False)
    others = [c for c in rest if c is not time and c.name.lower() not in names]
    return [moment, *others], [c for c in rest if c.name.lower() in names]


def _definitions(columns: Sequence[FoundColumn]) -> str:
    return ", ".join(f"{in_backticks(c.name)} {c.type}" for c in columns)


def _find(found: Survey, name: str) -> FoundColumn | None:
    return next((c for c in found.columns if c.name.lower() == name.lower()), None)


def _tbname_of(found: Survey, choices: Choices) -> str | None:
    """Return the file's column with the names of child tables."""
    column = _find(found, choices.tbname or TBNAME)
    return None if column is None else column.name


def _time_of(columns: Sequence[FoundColumn], choices: Choices) -> FoundColumn:
    if choices.time is not None:
        return next(c for c in columns if c.name.lower() == choices.time.lower())
    for column in columns:
        ticks = column.type.kind == "BIGINT" and column.name.lower() in _TIME_NAMES
        if column.type.kind == "TIMESTAMP" or ticks:
            return column
    raise SchemaError(
        "no column of the file is a time",
        code="E_ROW",
        hint="every row has its time, such as 2026-03-01T09:00:00Z; --time COLUMN takes ticks",
    )


def _unknown(owner: object, name: str, known: Sequence[str]) -> SchemaError:
    close = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=1)
    hint = f"did you mean {close[0]}?" if close else f"columns are {', '.join(known)}"
    return SchemaError(f'{owner} has no column "{name}"', code="E_ROW", hint=hint)


def _no_tbname(name: TableName) -> SchemaError:
    return SchemaError(
        f"which child table of {name} does each row belong to?",
        code="E_ROW",
        hint="--tbname COLUMN names the column that says so; one called tbname needs no option",
    )
