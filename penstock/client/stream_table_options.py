"""Options of a stream table that is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class StreamTableOptions:
    """What a table keeps, when a row counts as written, and what stays in memory.

    Args:
        key_column: one column or several: of rows with the same key only the first is kept.
            Definitions of keyed tables have their own key.
        retention_minutes: how long rows are kept.
        pre_cache: rows loaded back into memory at a node's start; by default as many as fit.
        filter_column: that subscriptions filter by when they name none.
        timestamp_column: a column that the leader fills with the time of arrival.
        async_write: `append` does not wait for the log; what is under way is lost with the
            program.
        compress: nodes compress their files.
        flush_mode: 1: Kafka syncs each record to disk before it counts.
        cache_purge_time_column: rows leave memory by this time …
        cache_purge_interval: … once the oldest is so much older than the newest (`"7h"`, or a
            timedelta) …
        cache_retention_time: … and those stay that are at most so much older.
    """

    key_column: str | Sequence[str] | None = None
    retention_minutes: float = 1440
    pre_cache: int | None = None
    filter_column: str | None = None
    timestamp_column: str | None = None
    async_write: bool = False
    compress: bool = True
    flush_mode: int = 0
    cache_purge_time_column: str | None = None
    cache_purge_interval: str | timedelta | None = None
    cache_retention_time: str | timedelta | None = None
