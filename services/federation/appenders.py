"""The appenders of this process: one for each table and producer. A newer connection of a producer
fences the older one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from penstock.bus import Admin, Publisher
from penstock.catalog.model import Table
from penstock.repartition.write_gate import Gate
from services.federation.appender import LogAppender
from services.federation.leaders import LeaderAppender, Leaders
from services.federation.places import LogPlace, read_places

AnyAppender: TypeAlias = LogAppender | LeaderAppender


class Appenders:
    """Thread-safe; `open` blocks."""

    def __init__(
        self,
        bootstrap: str,
        segments_dir: str,
        bus: Publisher,
        admin: Admin,
        leaders: Leaders,
        gate: Gate,
    ) -> None:
        self._bootstrap = bootstrap
        self._segments = segments_dir
        self._bus = bus
        self._admin = admin
        self._leaders = leaders
        self._gate = gate
        self._lock = threading.Lock()
        self._known: dict[tuple[int, str], AnyAppender] = {}

    def open(
        self, table: Table, producer: str | None, owner: int, present: Callable[[], Table | None]
    ) -> tuple[AnyAppender, dict[int, LogPlace]]:
        """An appender that knows what is there; fences the producer's earlier one. Raises BusError,
        StateError.
        """
        if producer is None:
            return self._make(table, None, {}, table.partitions, present), {}
        key = (table.id, producer)
        with self._lock:
            before = self._known.pop(key, None)
        places = before.close(30.0) if before is not None else None
        partitions = table.partitions
        if places is not None and isinstance(before, LogAppender):
            partitions = before.partitions
        if places is None:
            places = (
                {}
                if table.replicated is not None
                else read_places(
                    self._bootstrap, self._admin, self._segments, owner, table, producer
                )
            )
        made = self._make(table, producer, places, partitions, present)
        with self._lock:
            self._known[key] = made
        return made, places

    def _make(
        self,
        table: Table,
        producer: str | None,
        places: dict[int, LogPlace],
        partitions: int,
        present: Callable[[], Table | None],
    ) -> AnyAppender:
        if table.replicated is not None:
            return LeaderAppender(present, producer, self._leaders)
        return LogAppender(present, producer, self._bus, dict(places), partitions, self._gate)
