"""GET /v1/health: how the services of the mesh are, and what `penstock doctor` says of streams and
views.

Hosts, memory and the reasons why a service waits are for who has ADMIN: they name what others have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from aiohttp import web

from gateway import http
from gateway.guard import RequestGuard, user_of
from gateway.information.federation import FederationLists
from gateway.information.viewer import Viewer
from gateway.stream_counters import Sample, StreamSampler
from penstock.coordination import nodes
from penstock.coordination.nodes import ServiceReport
from penstock.coordination.redis_link import ask
from penstock.errors import PenstockError
from penstock.mesh import doctor
from penstock.mesh.doctor import Finding
from penstock.runtime.clock import Clock


class HealthRoutes:
    """The handler; `routes` mounts it."""

    def __init__(
        self,
        sampler: StreamSampler,
        viewer_of: Callable[[str], Viewer],
        count_letters: Callable[[], int],
        clock: Clock,
    ) -> None:
        """
        Args:
            count_letters: says how many dead letters there are; called in a thread.
        """
        self._sampler = sampler
        self._viewer_of = viewer_of
        self._count_letters = count_letters
        self._clock = clock

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.get("/v1/health", guard.wrap(self._tell))]

    async def _tell(self, request: web.Request) -> web.Response:
        """Tell what is known, also while Kafka or Redis is away."""
        viewer = self._viewer_of(user_of(request))
        now = self._clock.now() / 1e9
        reports: list[ServiceReport] = []
        findings: list[Finding] = []
        try:
            reports = await asyncio.to_thread(_read_reports, viewer, now)
        except PenstockError as away:
            findings.append(Finding("bad", away.message, away.hint))
        full = viewer.may("ADMIN", None)
        findings += await self._find(viewer, full=full)
        ready = bool(reports) and all(state_of(report) == "ready" for report in reports)
        return http.json_response(
            {
                "ready": ready,
                "services": [describe(report, now, full=full) for report in reports],
                "findings": [asdict(finding) for finding in dict.fromkeys(findings)],
            }
        )

    async def _find(self, viewer: Viewer, *, full: bool) -> list[Finding]:
        """Return what there is to say; of what cannot be asked, why not."""
        found: list[Finding] = []
        looks = [self._look_at_streams(viewer)]
        if full:
            looks.append(self._look_at_letters())
        for look in looks:
            try:
                found += await look
            except PenstockError as away:
                found.append(Finding("bad", away.message, away.hint))
        return found

    async def _look_at_streams(self, viewer: Viewer) -> list[Finding]:
        _, sample = await self._sampler.sample()
        return await asyncio.to_thread(find, viewer, sample)

    async def _look_at_letters(self) -> list[Finding]:
        return doctor.dead_letters(await asyncio.to_thread(self._count_letters))


def _read_reports(viewer: Viewer, now: float) -> list[ServiceReport]:
    return ask(lambda: nodes.services(viewer.redis, now))


def find(viewer: Viewer, sample: Sample) -> list[Finding]:
    """Return what there is to say of the streams and views that a user may see."""
    seen = [s for s in viewer.catalog.streams() if s.id in sample.streams]
    told = ((f"{s.database}.{s.name}", sample.streams[s.id]) for s in seen)
    found = doctor.streams([(name, row["status"], row["message"] or "") for name, row in told])
    listed: Iterable[dict[str, Any]] = FederationLists(viewer).views().to_pylist()
    views = [
        (f"{v['db_name']}.{v['view_name']}", v["status"], v["last_error"] or "") for v in listed
    ]
    return found + doctor.views(views)


def state_of(report: ServiceReport) -> str:
    """Return `ready`, `waiting` or `offline`."""
    if not report.online:
        return "offline"
    return "waiting" if report.waiting else "ready"


def describe(report: ServiceReport, now: float, *, full: bool) -> dict[str, Any]:
    """Return what a service says of itself, as JSON.

    Args:
        full: also what is for who has ADMIN.
    """
    return {
        "name": report.name,
        "node": report.node,
        "state": state_of(report),
        "version": report.version,
        "started": report.started,
        "uptime": round(max(now - report.started, 0.0), 1) if report.online else 0.0,
        "seen": report.seen,
        "host": report.host if full else None,
        "memory": report.memory if full else None,
        "restarts": report.restarts if full else None,
        "waiting": {name: why if full else "" for name, why in report.waiting.items()},
    }
