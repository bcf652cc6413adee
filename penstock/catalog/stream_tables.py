"""CREATE STREAM TABLE … WITH (raft_group=…) as a pure decision like those of
`penstock.catalog.changes`.

Owns the rules of its options: which columns may be keys, times and states, and which ways of
keeping rows go together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import NoReturn, get_args

from penstock.catalog import changes
from penstock.catalog.changes import Change, NewId
from penstock.catalog.model import ROW_ID, KeyRule, Purge, Replicated, Table
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.sql.plan import Column
from penstock.types import ColumnType

#: most rows of a stream table in memory; more are lowered to it, which its metadata show
MAX_CACHE_LIMIT = 100_000
Columns = Mapping[str, Column]


def create(
    catalog: Catalog,
    new_id: NewId,
    database: str,
    name: str,
    columns: Iterable[Column],
    wanted: Replicated,
    *,
    if_not_exists: bool = False,
) -> Change:
    """Create a stream table of a raft group: a plain table whose rows a leader numbers and writes,
    in a topic of its own with one partition.

    Its second column is the row's index and part of its key, so rows of one time are different rows
    to every reader.

    Args:
        wanted: its options, with `asked_limit` as it was asked for; names of columns in any case.
    """
    given = tuple(columns)
    by_name = {c.name.lower(): c for c in given}
    if ROW_ID in by_name:
        _refuse(
            "E_RESERVED_NAME",
            f"{by_name[ROW_ID].name} is a name that rows carry anyway",
            hint="choose another name",
        )
    _check_cache(wanted)
    options = {
        "raft_group": str(wanted.group),
        "cache_limit": str(min(wanted.asked_limit, MAX_CACHE_LIMIT)),
        "asked_limit": str(wanted.asked_limit),
        "retention_minutes": f"{wanted.retention_minutes:g}",
    }
    if wanted.pre_cache is not None:
        options["pre_cache"] = str(wanted.pre_cache)
    if wanted.filter_column is not None:
        options["filter_column"] = _find_column(by_name, wanted.filter_column, "filterColumn").name
    if wanted.timestamp_column is not None:
        options["timestamp_column"] = _time(
            by_name, wanted.timestamp_column, "timestampColumn"
        ).name
    options |= (
        _key_options(by_name, wanted)
        | _write_options(wanted)
        | _purge_options(by_name, wanted.purge)
    )
    made = changes.create_table(
        catalog,
        new_id,
        database,
        name,
        (*given[:1], Column(ROW_ID, ColumnType("BIGINT")), *given[1:]),
        kind="plain",
        key_column=ROW_ID,
        own_topic=True,
        partitions=1,
        if_not_exists=if_not_exists,
    )
    return Change(
        tuple(dataclasses.replace(t, options=options) for t in made.puts if isinstance(t, Table))
    )


def _check_cache(wanted: Replicated) -> None:
    if wanted.asked_limit < 1:
        _refuse("E_BAD_OPTION", f"cacheLimit must be at least 1, not {wanted.asked_limit}")
    if not 0 < wanted.retention_minutes <= 10_000_000:
        _refuse(
            "E_BAD_OPTION",
            f"retentionMinutes must be more than 0 minutes, not {wanted.retention_minutes:g}",
        )
    if wanted.pre_cache is not None and wanted.pre_cache < 0:
        _refuse("E_BAD_OPTION", f"preCache must not be below 0, not {wanted.pre_cache}")


def _key_options(columns: Columns, wanted: Replicated) -> dict[str, str]:
    """Return options that say which rows are taken."""
    rule = wanted.key_rule
    if rule not in get_args(KeyRule):
        _refuse(
            "E_BAD_OPTION", f"keyRule must be one of {', '.join(get_args(KeyRule))}, not {rule}"
        )
    keys = _key_columns(columns, wanted)
    _check_rule(wanted)
    options: dict[str, str] = {"key_rule": rule} if rule != "first" else {}
    if keys:
        options["key_column"] = "\x1f".join(k.name for k in keys)
    times = _time_columns(columns, wanted)
    if times:
        options["time_column"] = "\x1f".join(c.name for c in times)
    if wanted.status_column is not None:
        options["status_column"] = _status_column(columns, wanted.status_column).name
    return options


def _check_rule(wanted: Replicated) -> None:
    """Check that the rule and its columns go together."""
    rule = wanted.key_rule
    times = wanted.time_columns
    if rule != "first" and not wanted.key_columns:
        _refuse("E_BAD_OPTION", f"keyRule {rule} needs a keyColumn")
    if (rule == "latest") != bool(times) or len(times) > 2:
        _refuse(
            "E_BAD_OPTION",
            "keyRule latest, and no other, has a timeColumn",
            hint="one column, or a date and a time",
        )
    if (rule == "changelog") != (wanted.status_column is not None):
        _refuse("E_BAD_OPTION", "keyRule changelog, and no other, has a statusColumn")


def _key_columns(columns: Columns, wanted: Replicated) -> list[Column]:
    keys = [_find_column(columns, key, "keyColumn") for key in wanted.key_columns]
    for key in keys:
        if key.type.kind in ("JSON", "VARBINARY"):
            _refuse("E_BAD_KEY", f"keyColumn {key.name} is {key.type}, which cannot be a key")
    return keys


def _time_columns(columns: Columns, wanted: Replicated) -> list[Column]:
    times = [_find_column(columns, name, "timeColumn") for name in wanted.time_columns]
    for column in times:
        if column.type.kind != "TIMESTAMP" and not column.type.integer:
            _refuse(
                "E_BAD_OPTION",
                f"timeColumn {column.name} is {column.type}",
                hint="it takes a TIMESTAMP or whole numbers",
            )
    return times


def _status_column(columns: Columns, name: str) -> Column:
    status = _find_column(columns, name, "statusColumn")
    if not status.type.text:
        _refuse(
            "E_BAD_OPTION",
            f"statusColumn {status.name} is {status.type}",
            hint="it takes N and U: a VARCHAR",
        )
    return status


def _write_options(wanted: Replicated) -> dict[str, str]:
    """Return options that say when a row counts as kept."""
    if wanted.flush_mode not in (0, 1):
        _refuse("E_BAD_OPTION", f"flushMode must be 0 or 1, not {wanted.flush_mode}")
    if wanted.async_write and wanted.flush_mode:
        _refuse(
            "E_BAD_OPTION",
            "flushMode 1 waits for the disk and asynWrite for nothing",
            hint="asynWrite=False with flushMode=1",
        )
    options: dict[str, str] = {}
    if wanted.async_write:
        options["async_write"] = "true"
    if wanted.flush_mode:
        options["flush_mode"] = "1"
    if not wanted.compress:
        options["compress"] = "false"
    return options


def _purge_options(columns: Columns, purge: Purge | None) -> dict[str, str]:
    """Return options that say which rows leave memory by their time."""
    if purge is None:
        return {}
    column = _time(columns, purge.column, "cachePurgeTimeColumn")
    if not 0 < purge.keep_ms < purge.every_ms:
        _refuse(
            "E_BAD_OPTION",
            "cacheRetentionTime must be more than nothing and less than cachePurgeInterval",
        )
    return {
        "cache_purge_time_column": column.name,
        "cache_purge_interval": str(purge.every_ms),
        "cache_retention_time": str(purge.keep_ms),
    }


def _time(columns: Columns, name: str, argument: str) -> Column:
    found = _find_column(columns, name, argument)
    if found.type.kind != "TIMESTAMP":
        _refuse(
            "E_BAD_OPTION", f"{argument} {found.name} is {found.type}", hint="it takes a TIMESTAMP"
        )
    return found


def _find_column(columns: Columns, name: str, argument: str) -> Column:
    found = columns.get(name.lower())
    if found is None:
        _refuse("E_NO_COLUMN", f"{argument} {name} is no column of the table")
    return found


def _refuse(code: str, message: str, *, hint: str = "") -> NoReturn:
    raise CatalogError(message, code=code, hint=hint)


def groups_of_tables(catalog: Catalog) -> dict[str, int]:
    """Return the full name of each stream table, and the number of the group that keeps it."""
    return {
        f"{table.database}.{table.name}": table.replicated.group
        for table in catalog.tables()
        if table.replicated is not None
    }
