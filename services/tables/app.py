"""Wiring of a node of stream tables: catalog, copies, election, writer, server, health."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial

import uvloop
from aiohttp import web
from prometheus_client import Gauge, Histogram

from penstock.bus import Admin, Publisher, secure
from penstock.catalog.reader import CatalogReader
from penstock.coordination import redis_link
from penstock.coordination.presence import Registry
from penstock.runtime import audit, tls, vital
from penstock.runtime.clock import SystemClock
from penstock.runtime.connections import GuardedSite, prepare
from penstock.runtime.health import SECONDS, Health
from penstock.runtime.log import configure, get
from penstock.runtime.pulse import Pulse
from services.tables.direct import Direct
from services.tables.election import Election, GroupStanding
from services.tables.keeper import ReplicaKeeper
from services.tables.peers import Peers
from services.tables.server import Server
from services.tables.session import LeaderSession
from services.tables.settings import TablesSettings
from services.tables.stream_sink import StreamSinks

log = get(__name__)
#: Redis away must not hold up a turn of the election for long
_REDIS_SECONDS = 0.5
#: threads hand over often: an answer must not wait for a batch that is being encoded
_SWITCH_SECONDS = 0.0005


class WriterThread(threading.Thread):
    """Sends what producers wrote, table after table."""

    def __init__(self, election: Election) -> None:
        super().__init__(name="writer", daemon=True)
        self._election = election
        self._wake = threading.Event()
        self._halt = False

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._halt = True
        self._wake.set()
        self.join(timeout=5)

    @vital.run
    def run(self) -> None:
        while not self._halt:
            self._wake.wait(1.0)
            self._wake.clear()
            busy = True
            while busy and not self._halt:
                sessions = [
                    s
                    for standing in self._election.standings.values()
                    for s in list(standing.sessions.values())
                ]
                busy = any([self._work(s) for s in sessions])

    @staticmethod
    def _work(session: LeaderSession) -> bool:
        try:
            return session.work()
        except vital.FAULTS:
            log.exception("a write could not be sent", table=session.replica.name)
            return False


def run(settings: TablesSettings) -> int:
    """Serve until told to stop; returns the exit status (1: the log thread died, the supervisor
    starts anew).
    """
    configure("tables", settings.log_level)
    audit.open_trail(
        settings.audit_log, "tables", settings.audit_log_bytes, settings.audit_log_files
    )
    sys.setswitchinterval(_SWITCH_SECONDS)
    return uvloop.run(_serve(settings))


async def _serve(settings: TablesSettings) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    secure(settings.kafka_options)
    clock = SystemClock()
    groups = settings.raft_groups.of(settings.alias)
    client = redis_link.connect(
        settings, socket_timeout=_REDIS_SECONDS, socket_connect_timeout=_REDIS_SECONDS
    )
    registry = Registry(client, settings.alive_seconds)
    admin = Admin(settings.kafka_bootstrap, client_id=f"tables-{settings.alias}-admin")
    with (
        Health(
            "tables",
            settings.health_port,
            host=settings.host,
            metrics_key=settings.metrics_secret,
            wait_for=("catalog", "copies", "socket"),
        ) as health,
        CatalogReader(
            settings.kafka_bootstrap,
            client_id=f"tables-{settings.alias}-catalog",
            children=False,
            registry=health.registry,
        ) as catalog,
        Publisher(
            settings.kafka_bootstrap,
            client_id=f"tables-{settings.alias}",
            timeout=settings.ack_timeout,
        ) as bus,
    ):
        health.ready("catalog")
        health.watch("event loop", Pulse(loop).late)
        health.watch("writer", lambda: 0.0 if writer.is_alive() or stop.is_set() else float("inf"))
        keeper = ReplicaKeeper(settings, groups, catalog, admin, clock, loop)
        # what wants TLS is librdkafka's
        plain = not settings.kafka_security.endswith("SSL")
        name = f"tables-{settings.alias}-direct"
        direct = (
            Direct(admin, clock, name, settings.ack_timeout, settings.kafka_options)
            if plain
            else None
        )
        election = Election(
            settings, groups, client, registry, bus, clock, loop, keeper.of_group, direct
        )
        trusted = tls.client(settings.tls_ca)
        server = Server(settings, catalog, keeper, election, registry, clock, trusted)
        writer = WriterThread(election)
        election.wake_writer = writer.wake
        election.on_change = lambda: _soon(loop, server.wake)
        _metrics(health, keeper, server, election)
        keeper.start()
        runner = web.AppRunner(
            prepare(server.application()),
            access_log=None,
            handle_signals=False,
            shutdown_timeout=1.0,
        )
        await runner.setup()
        await GuardedSite(runner, settings, tls.server(settings)).start()
        health.ready("socket")
        writer.start()
        election.start()
        basic = base64.b64encode(f"{settings.user}:{settings.root_password}".encode()).decode()
        peers = vital.task(
            Peers(election, settings.alias, f"Basic {basic}", trusted).run(), "peers"
        )
        sinks = vital.task(StreamSinks(settings, catalog, keeper, election, admin).run(), "inlets")
        status = await _watch(stop, keeper, health)
        await asyncio.to_thread(election.stop)
        for task in (peers, sinks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await server.close()
        await runner.cleanup()
        if direct is not None:
            direct.close()
        await asyncio.to_thread(writer.stop)
        await asyncio.to_thread(keeper.stop)
    return status


def _soon(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(action)


async def _watch(stop: asyncio.Event, keeper: ReplicaKeeper, health: Health) -> int:
    while not stop.is_set():
        health.ready("copies", keeper.caught_up.is_set(), "the logs are not read yet")
        if keeper.failed is not None:
            return 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), 0.2)
    return 0


def _metrics(health: Health, keeper: ReplicaKeeper, server: Server, election: Election) -> None:
    lease = Gauge(
        "penstock_lease_held", "1: this room holds the lease", ["lease"], registry=health.registry
    )
    for standing in election.standings.values():
        lease.labels(f"group {standing.group.id}").set_function(partial(_leads, standing))
    rows = Gauge(
        "penstock_tables_rows",
        "Rows that the tables ever had, by this node's copies",
        registry=health.registry,
    )
    rows.set_function(lambda: sum(r.copy.next for r in keeper.all()))
    memory = Gauge("penstock_tables_memory_rows", "Rows in memory", registry=health.registry)
    memory.set_function(lambda: sum(r.copy.next - r.copy.memory_first for r in keeper.all()))
    subscribers = Gauge(
        "penstock_tables_subscribers", "Subscriptions connected here", registry=health.registry
    )
    subscribers.set_function(lambda: len(server.subscriptions.connected))
    fenced = Gauge(
        "penstock_tables_fenced_records",
        "Records of former leaders that were dropped",
        registry=health.registry,
    )
    fenced.set_function(lambda: sum(r.fenced for r in keeper.all()))
    took = Histogram(
        "penstock_tables_ack_seconds",
        "From a write's arrival at the leader until its producer is told that it counts",
        buckets=SECONDS,
        registry=health.registry,
    )
    server.intake.on_confirmed = took.observe


def _leads(standing: GroupStanding) -> float:
    return float(standing.term is not None)
