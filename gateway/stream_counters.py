"""What streams have counted, and how much of it in the last second: GET /v1/streams/counters.

A sample is taken at most once a second, however many ask; each is shown what they may see of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from aiohttp import web

from gateway import http
from gateway.guard import RequestGuard, user_of
from gateway.information.viewer import Viewer
from penstock.runtime.clock import Clock, milliseconds

EVERY_S = 1.0
#: an older sample says nothing of what happens now
_STALE_S = 5.0
#: name in an answer → column of the list of streams
_TOTALS = {
    "rows_in": "rows_in",
    "rows_out": "rows_out",
    "late": "late_rows",
    "failed": "failed_rows",
}
_LEVELS = {
    "state_bytes": "state_bytes",
    "lag": "lag_records",
    "events_waiting": "events_waiting",
}


@dataclass(frozen=True)
class Sample:
    """The list of streams at one moment, by the streams' ids."""

    at_ms: int
    monotonic: float
    streams: dict[int, dict[str, Any]]


class StreamSampler:
    """Event loop only."""

    def __init__(self, read: Callable[[], pa.Table], clock: Clock) -> None:
        """
        Args:
            read: gives the list of all streams; called in a thread.
        """
        self._read = read
        self._clock = clock
        self._lock = asyncio.Lock()
        self._before: Sample | None = None
        self._newest: Sample | None = None

    async def sample(self) -> tuple[Sample | None, Sample]:
        """Return the sample before the newest one, if it is of use, and the newest. Raises
        PenstockError.
        """
        async with self._lock:
            now = self._clock.monotonic()
            newest = self._newest
            if newest is None or now - newest.monotonic >= EVERY_S:
                listed = await asyncio.to_thread(self._read)
                streams = {row["stream_id"]: row for row in listed.to_pylist()}
                self._before = newest
                newest = self._newest = Sample(milliseconds(self._clock), now, streams)
            before = self._before
        if before is not None and newest.monotonic - before.monotonic > _STALE_S:
            before = None
        return before, newest


def counters(before: Sample | None, newest: Sample, viewer: Viewer) -> dict[str, Any]:
    """Return what *viewer* may see of a sample, as JSON."""
    seconds = newest.monotonic - before.monotonic if before is not None else None
    return {
        "at": newest.at_ms,
        "seconds": seconds,
        "streams": [
            {
                "database": entry.database,
                "name": entry.name,
                "id": entry.id,
                **_counted(newest.streams[entry.id], _earlier(before, entry.id), seconds),
            }
            for entry in viewer.catalog.streams()
            if entry.id in newest.streams
        ],
    }


def _earlier(before: Sample | None, stream: int) -> dict[str, Any] | None:
    return None if before is None else before.streams.get(stream)


def _counted(
    row: dict[str, Any], earlier: dict[str, Any] | None, seconds: float | None
) -> dict[str, Any]:
    """Return status, totals and rates of one stream."""
    rates = {f"{name}_rate": _rate(row, earlier, of, seconds) for name, of in _TOTALS.items()}
    return {
        "status": row["status"],
        "message": row["message"],
        "lag_partition": row["lag_partition"],
        **{name: row[column] or 0 for name, column in (_TOTALS | _LEVELS).items()},
        **rates,
    }


def _rate(
    row: dict[str, Any], earlier: dict[str, Any] | None, column: str, seconds: float | None
) -> float | None:
    """Return how much a counter grows in a second; None: it is new, or was set back."""
    if earlier is None or not seconds:
        return None
    grown = row[column] - earlier[column]
    return round(grown / seconds, 3) if grown >= 0 else None


class CounterRoutes:
    """The handler; `routes` mounts it."""

    def __init__(self, sampler: StreamSampler, viewer_of: Callable[[str], Viewer]) -> None:
        self._sampler = sampler
        self._viewer_of = viewer_of

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.get("/v1/streams/counters", guard.wrap(self._tell))]

    async def _tell(self, request: web.Request) -> web.Response:
        before, newest = await self._sampler.sample()
        return http.json_response(counters(before, newest, self._viewer_of(user_of(request))))
