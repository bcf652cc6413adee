"""What a copy has to know of its table."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.catalog.model import KeyRule, Table
from penstock.sql.plan import TICKS_PER_SECOND

_MINUTE_MS = 60_000


@dataclass(frozen=True)
class Shape:
    """Settings of a table that its copies follow."""

    table_id: int
    cache_limit: int
    retention_ms: int
    key_columns: tuple[str, ...]
    pre_cache: int
    flush_rows: int
    max_producers: int
    key_rule: KeyRule = "first"
    time_columns: tuple[str, ...] = ()
    #: column, and ticks: rows older than `keep` leave memory once the oldest is older than `every`
    purge: tuple[str, int, int] | None = None
    compress: bool = True

    @classmethod
    def of(cls, table: Table, flush_rows: int, max_producers: int) -> Shape:
        """Return the shape of a table as the catalog has it."""
        made = table.replicated
        assert made is not None
        ticks = TICKS_PER_SECOND[table.precision]
        purge = made.purge
        kept = None
        if purge is not None:
            kept = (purge.column, purge.every_ms * ticks // 1000, purge.keep_ms * ticks // 1000)
        return cls(
            table.id,
            made.cache_limit,
            int(made.retention_minutes * _MINUTE_MS),
            made.key_columns,
            made.cache_limit if made.pre_cache is None else made.pre_cache,
            flush_rows,
            max_producers,
            made.key_rule,
            made.time_columns,
            kept,
            made.compress,
        )
