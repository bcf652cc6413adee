"""What CREATE STREAM TABLE … WITH (raft_group=…) does to the catalog, as a pure decision like those
of `penstock.catalog.changes`.

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
    """A stream table of a raft group: a plain table whose rows a leader numbers and writes, in a
    topic of its own with one partition.

    Its second column is the row's index and part of its key, so rows of one time are different rows
    to every reader.

    Args:
        wanted: what it shall be like, with `asked_limit` as it was asked for; names of columns in
            any case.
    """
    given = tuple(columns)
    by_name = {c.name.lower(): c for c in given}
    if ROW_ID in by_name:
        _refuse(
            "E_RESERVED_NAME",
            f"{by_name[ROW_ID].name} is a name that rows carry anyway",
            hint="choose another name",
        )
    if wanted.asked_limit < 1:
        _refuse("E_BAD_OPTION", f"cacheLimit must be at least 1, not {wanted.asked_limit}")
    if not 0 < wanted.retention_minutes <= 10_000_000:
        _refuse(
            "E_BAD_OPTION",
            f"retentionMinutes must be more than 0 minutes, not {wanted.retention_minutes:g}",
        )
    if wanted.pre_cache is not None and wanted.pre_cache < 0:
        _refuse("E_BAD_OPTION", f"preCache must not be below 0, not {wanted.pre_cache}")
    options = {
        "raft_group": str(wanted.group),
        "cache_limit": str(min(wanted.asked_limit, MAX_CACHE_LIMIT)),
        "asked_limit": str(wanted.asked_limit),
        "retention_minutes": f"{wanted.retention_minutes:g}",
    }
    if wanted.pre_cache is not None:
        options["pre_cache"] = str(wanted.pre_cache)
    if wanted.filter_column is not None:
        options["filter_column"] = _named(by_name, wanted.filter_column, "filterColumn").name
    if wanted.timestamp_column is not None:
        options["timestamp_column"] = _time(
            by_name, wanted.timestamp_column, "timestampColumn"
        ).name
    options |= _keyed(by_name, wanted) | _persisted(wanted) | _purged(by_name, wanted.purge)
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


def _keyed(columns: Columns, wanted: Replicated) -> dict[str, str]:
    """What says which rows are taken."""
    rule = wanted.key_rule
    times = wanted.time_columns
    status = wanted.status_column
    if rule not in get_args(KeyRule):
        _refuse(
            "E_BAD_OPTION", f"keyRule must be one of {', '.join(get_args(KeyRule))}, not {rule}"
        )
    keys = [_named(columns, key, "keyColumn") for key in wanted.key_columns]
    for key in keys:
        if key.type.kind in ("JSON", "VARBINARY"):
            _refuse("E_BAD_KEY", f"keyColumn {key.name} is {key.type}, which cannot be a key")
    if rule != "first" and not keys:
        _refuse("E_BAD_OPTION", f"keyRule {rule} needs a keyColumn")
    if (rule == "latest") != bool(times) or len(times) > 2:
        _refuse(
            "E_BAD_OPTION",
            "keyRule latest, and no other, has a timeColumn",
            hint="one column, or a date and a time",
        )
    if (rule == "changelog") != (status is not None):
        _refuse("E_BAD_OPTION", "keyRule changelog, and no other, has a statusColumn")
    options: dict[str, str] = {"key_rule": rule} if rule != "first" else {}
    if keys:
        options["key_column"] = "\x1f".join(k.name for k in keys)
    found = [_named(columns, name, "timeColumn") for name in times]
    for column in found:
        if column.type.kind != "TIMESTAMP" and not column.type.integer:
            _refuse(
                "E_BAD_OPTION",
                f"timeColumn {column.name} is {column.type}",
                hint="it takes a TIMESTAMP or whole numbers",
            )
    if found:
        options["time_column"] = "\x1f".join(c.name for c in found)
    if status is not None:
        state = _named(columns, status, "statusColumn")
        if not state.type.text:
            _refuse(
                "E_BAD_OPTION",
                f"statusColumn {state.name} is {state.type}",
                hint="it takes N and U: a VARCHAR",
            )
        options["status_column"] = state.name
    return options


def _persisted(wanted: Replicated) -> dict[str, str]:
    """What says when a row counts as kept."""
    if wanted.flush_mode not in (0, 1):
        _refuse("E_BAD_OPTION", f"flushMode must be 0 or 1, not {wanted.flush_mode}")
    if wanted.async_write and wanted.flush_mode:
        _refuse(
            "E_BAD_OPTION",
            "flushMode 1 waits for the disk and asynWrite for nothing",
            hint="asynWrite=False with flushMode=1",
        )
    chosen = {
        "async_write": wanted.async_write,
        "flush_mode": bool(wanted.flush_mode),
        "compress": not wanted.compress,
    }
    return {
        name: {"async_write": "true", "flush_mode": "1", "compress": "false"}[name]
        for name, is_set in chosen.items()
        if is_set
    }


def _purged(columns: Columns, purge: Purge | None) -> dict[str, str]:
    """What says which rows leave memory by their time."""
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
    found = _named(columns, name, argument)
    if found.type.kind != "TIMESTAMP":
        _refuse(
            "E_BAD_OPTION", f"{argument} {found.name} is {found.type}", hint="it takes a TIMESTAMP"
        )
    return found


def _named(columns: Columns, name: str, argument: str) -> Column:
    found = columns.get(name.lower())
    if found is None:
        _refuse("E_NO_COLUMN", f"{argument} {name} is no column of the table")
    return found


def _refuse(code: str, message: str, *, hint: str = "") -> NoReturn:
    raise CatalogError(message, code=code, hint=hint)
