"""What views and mirrors say of themselves: to Redis for SHOW VIEWS, and as a metric."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import redis
from prometheus_client import CollectorRegistry, Gauge

from penstock import names
from services.federation.persistent import Report

#: of a task, the worst first
_STATES = ("stopped", "error", "retrying", "starting")


class ViewReports:
    """Told by one thread. Its methods raise RedisError."""

    def __init__(self, client: redis.Redis, registry: CollectorRegistry) -> None:
        self._redis = client
        #: what Redis was told last, by the id of the view
        self._said: dict[int, dict[str, str]] = {}
        self._behind = Gauge(
            "penstock_federation_behind_seconds",
            "Since a view or mirror had all there was",
            ["view"],
            registry=registry,
        )
        #: names that the metric has
        self._shown: set[str] = set()

    def tell(
        self, reports: Mapping[int, Sequence[Report]], find_name: Callable[[int], str | None]
    ) -> None:
        """Tell Redis what SHOW VIEWS shows, and the metric how far each is behind.

        Args:
            reports: those of the tasks of each view, by its id.
            find_name: gives the name that a view has now, None when it is gone.
        """
        now = time.time()
        shown: set[str] = set()
        for view_id, mine in reports.items():
            said = _status(mine, now)
            self.say(view_id, said)
            name = find_name(view_id)
            if name is not None:
                shown.add(name)
                self._behind.labels(name).set(float(said["behind"]))
        for gone in self._shown - shown:
            self._behind.remove(gone)
        self._shown = shown

    def say(self, view_id: int, said: dict[str, str]) -> None:
        """Write the status of a view, unless Redis has it already."""
        if said != self._said.get(view_id):
            fields: Any = said  # the client wants a wider type of mapping
            self._redis.hset(names.view_status(view_id), mapping=fields)
            self._said[view_id] = said

    def forget(self, view_id: int) -> None:
        """Delete the status of a view that is gone."""
        self._said.pop(view_id, None)
        self._redis.delete(names.view_status(view_id))


def _status(reports: Sequence[Report], now: float) -> dict[str, str]:
    """Return what SHOW VIEWS shows of a view whose shards report this."""
    states = {r.state for r in reports}
    worst = next((s for s in _STATES if s in states), "running")
    status = {
        "state": worst,
        "rows": str(sum(r.rows for r in reports)),
        "error": _worst(reports),
        "dropped": str(sum(r.dropped for r in reports)),
    }
    lags = [r.lag for r in reports if r.lag is not None]
    if lags:
        status["lag"] = str(sum(lags))
    behind = max((now - r.level_at for r in reports), default=0.0)
    status["behind"] = f"{behind:.1f}" if behind >= 1 else "0.0"
    return status


def _worst(reports: Sequence[Report]) -> str:
    """Return the error that somebody has to see to, before one after which it is tried again."""
    said = [r for r in reports if r.error]
    return next((r.error for r in said if r.state == "stopped"), said[0].error if said else "")
