"""Limits of names, columns, keys and options."""

from __future__ import annotations

from penstock.catalog.changes.change import refuse
from penstock.names import MAX_NAME_BYTES
from penstock.sql.plan import Column, Duration

MAX_COLUMNS = 4096
MAX_TAGS = 128
MAX_PARTITIONS = 1024
MAX_COLUMN_NAME = 64
#: rows carry these beside their columns, on the wire or inside the operator
RESERVED_COLUMNS = frozenset(
    {"tbname", "op", "_op", "_offset", "_now", "_step", "_record", "_write", "_reason", "_late"}
)
_KEY_KINDS = ("INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED", "VARCHAR")


def check_table_name(name: str) -> None:
    if not name or len(name.encode()) > MAX_NAME_BYTES or "." in name or not name.isprintable():
        refuse(
            "E_BAD_NAME",
            f"{name!r} cannot be a table's or stream's name",
            hint=f"1 to {MAX_NAME_BYTES} bytes, without dots",
        )


def check_partitions(partitions: int) -> None:
    if not 1 <= partitions <= MAX_PARTITIONS:
        refuse(
            "E_BAD_OPTION",
            f"{partitions} partitions are not possible",
            hint=f"1 to {MAX_PARTITIONS}",
        )


def check_keep(keep: Duration | None) -> None:
    if keep is not None and keep.ticks("ms") < 86_400_000:
        refuse("E_BAD_OPTION", f"KEEP {keep} is too short", hint="at least one day: 1d")


def check_columns(columns: tuple[Column, ...], tags: tuple[Column, ...]) -> None:
    if not columns or columns[0].type.kind != "TIMESTAMP":
        refuse("E_NO_TIME_COLUMN", "the first column must be a TIMESTAMP")
    if len(columns) + len(tags) > MAX_COLUMNS or len(tags) > MAX_TAGS:
        refuse(
            "E_TOO_MANY_COLUMNS", f"at most {MAX_COLUMNS} columns and tags, of them {MAX_TAGS} tags"
        )
    seen: set[str] = set()
    for column in (*columns, *tags):
        _check_column_name(column.name)
        name = column.name.lower()
        if name in seen:
            refuse("E_DUPLICATE_COLUMN", f"{column.name} is there twice")
        seen.add(name)
    if _has_json(columns) or (_has_json(tags) and len(tags) > 1):
        refuse("E_BAD_JSON", "JSON is possible as the only tag of a supertable")


def _check_column_name(name: str) -> None:
    if not name or len(name.lower().encode()) > MAX_COLUMN_NAME:
        refuse(
            "E_BAD_NAME",
            f"{name!r} cannot be a column's name",
            hint=f"1 to {MAX_COLUMN_NAME} bytes",
        )
    if name.lower() in RESERVED_COLUMNS:
        refuse(
            "E_RESERVED_NAME",
            f"{name} is a name that rows carry anyway",
            hint="choose another name",
        )


def _has_json(columns: tuple[Column, ...]) -> bool:
    return any(c.type.kind == "JSON" for c in columns)


def check_key(columns: tuple[Column, ...], key: str) -> None:
    if len(columns) < 2 or columns[1].name != key or columns[1].type.kind not in _KEY_KINDS:
        refuse(
            "E_BAD_KEY",
            f"{key} cannot be part of the primary key",
            hint="the second column, an integer or a VARCHAR",
        )
