"""The gateway as a process: in which order its parts start and stop.

Kafka or Redis may be down at any time, at the start too: then the process lives, answers 503 with
the reason, and goes on when they are back.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

import uvloop
from aiohttp import web
from prometheus_client import Gauge

from gateway.assembly import GatewayParts
from gateway.leader_duties import LeaderDuties
from gateway.probe import Probe
from gateway.settings import GatewaySettings
from penstock.runtime import log, tls, vital
from penstock.runtime.connections import GuardedSite
from penstock.service import Service

_log = log.get("gateway")
_SWITCH_S = 0.0005


def run(settings: GatewaySettings) -> int:
    """Serve until told to stop."""
    with Service(settings, waits_for=("catalog", "kafka", "redis", "http")) as service:
        # the event loop must not wait five milliseconds for the thread that encodes rows
        sys.setswitchinterval(_SWITCH_S)
        service.run_async(lambda stop: _serve(settings, service, stop), uvloop.new_event_loop)
    return 0


async def _serve(settings: GatewaySettings, service: Service, stop: asyncio.Event) -> None:
    gateway = _Gateway(settings, service)
    try:
        await gateway.start()
        await stop.wait()
    finally:
        await gateway.close()


class _Gateway:
    """Starts and stops the parts. The catalog is read by `Backends`, which waits for Kafka as long
    as it takes.
    """

    def __init__(self, settings: GatewaySettings, service: Service) -> None:
        self._settings = settings
        self._service = service
        self._parts = GatewayParts(settings, service.health, asyncio.get_running_loop())
        self._runner = web.AppRunner(
            self._parts.application(),
            access_log=None,
            handle_signals=False,
            shutdown_timeout=5.0,
        )
        self._postgres = self._parts.postgres()
        self._tasks: list[asyncio.Task[None]] = []
        self._watch()

    def _watch(self) -> None:
        """Register health conditions and metrics."""
        health = self._service.health
        publisher = self._parts.writes.publisher
        health.watch("writer of rows", publisher.silence)
        health.watch("rows", publisher.busy, vital=False)
        self._parts.writes.measure(health.registry)
        lease = Gauge(
            "penstock_lease_held",
            "1: this service holds the lease",
            ["lease"],
            registry=health.registry,
        )
        writer = self._parts.backends.writer
        lease.labels("catalog").set_function(lambda: float(writer.leading))

    async def start(self) -> None:
        settings = self._settings
        parts = self._parts
        await self._runner.setup()
        await GuardedSite(self._runner, settings, tls.server(settings)).start()
        if self._postgres is not None:
            await self._postgres.start()
        self._service.health.ready("http")
        self._service.announce()
        parts.writes.start()
        _log.info("listening", host=settings.host, port=settings.port)
        duties = LeaderDuties(
            lambda: parts.backends.writer.leading,
            parts.ddl.definer,
            parts.ddl.repartition,
            parts.ddl.kafka_rights,
        )
        probe = Probe(
            parts.writes.ledger,
            parts.backends.admin,
            parts.writes.publisher,
            self._service.health,
        )
        loops = {
            "catalog": parts.backends.follow_catalog(),
            "probe": probe.run(),
            **duties.loops(),
        }
        self._tasks = [vital.task(loop, name) for name, loop in loops.items()]

    async def close(self) -> None:
        if self._postgres is not None:
            await self._postgres.stop()
        await self._parts.socket.close()
        await self._parts.console.follow.close()
        await self._runner.cleanup()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._parts.forwarder.close()
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        parts = self._parts
        parts.ddl.stream_tables.close()
        parts.writes.stop()
        parts.backends.close_buses()
        parts.ddl.close()
        parts.writes.ledger.close()
        parts.store.close()
        parts.backends.close()
