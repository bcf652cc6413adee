"""Wiring of a node of stream tables: copies, election, writer, server."""

from __future__ import annotations

import asyncio
import contextlib
import sys

import uvloop
from aiohttp import web

from penstock.basic_auth import basic_header
from penstock.bus import Admin, Publisher
from penstock.catalog.reader import CatalogReader
from penstock.coordination import redis_link
from penstock.coordination.presence import Registry
from penstock.runtime import tls, vital
from penstock.runtime.clock import Clock, SystemClock
from penstock.runtime.connections import GuardedSite, prepare
from penstock.runtime.health import Health
from penstock.service import Service
from services.tables import metrics
from services.tables.direct import Direct
from services.tables.election import Election
from services.tables.keeper import ReplicaKeeper
from services.tables.peers import Peers
from services.tables.server import Server
from services.tables.settings import TablesSettings
from services.tables.stream_sink import StreamSinks
from services.tables.writer_thread import WriterThread

#: Redis away must not hold up a turn of the election for long
_REDIS_SECONDS = 0.5
#: threads hand over often: an answer must not wait for a batch that is being encoded
_SWITCH_SECONDS = 0.0005


def run(settings: TablesSettings) -> int:
    """Serve until told to stop; returns the exit status (1: the log thread died, the supervisor
    starts anew).
    """
    with Service(settings, waits_for=("catalog", "copies", "socket")) as service:
        sys.setswitchinterval(_SWITCH_SECONDS)
        # not announced as a service of its host: the nodes' own registry says who is there
        service.send_log()
        catalog = service.read_catalog(children=False, client_id=f"tables-{settings.alias}-catalog")
        return service.run_async(
            lambda stop: _serve(settings, catalog, service.health, stop), uvloop.new_event_loop
        )


async def _serve(
    settings: TablesSettings, catalog: CatalogReader, health: Health, stop: asyncio.Event
) -> int:
    loop = asyncio.get_running_loop()
    clock = SystemClock()
    groups = settings.raft_groups.of(settings.alias)
    client = redis_link.connect(
        settings, socket_timeout=_REDIS_SECONDS, socket_connect_timeout=_REDIS_SECONDS
    )
    registry = Registry(client, settings.alive_seconds)
    admin = Admin(settings.kafka_bootstrap, client_id=f"tables-{settings.alias}-admin")
    with Publisher(
        settings.kafka_bootstrap,
        client_id=f"tables-{settings.alias}",
        timeout=settings.ack_timeout,
    ) as bus:
        keeper = ReplicaKeeper(settings, groups, catalog, admin, clock, loop)
        direct = _direct(settings, admin, clock)
        election = Election(
            settings, groups, client, registry, bus, clock, loop, keeper.of_group, direct
        )
        trusted = tls.client(settings.tls_ca)
        server = Server(settings, catalog, keeper, election, registry, clock, trusted)
        writer = WriterThread(election)
        election.session_maker.wake_writer = writer.wake

        def tell_subscribers() -> None:
            loop.call_soon_threadsafe(server.wake)

        election.on_change = tell_subscribers
        metrics.register(health.registry, keeper, server, election)
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
        health.watch("writer", lambda: 0.0 if writer.is_alive() or stop.is_set() else float("inf"))
        election.start()
        header = basic_header(settings.user, settings.root_password)
        peers = vital.task(Peers(election, settings.alias, header, trusted).run(), "peers")
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


def _direct(settings: TablesSettings, admin: Admin, clock: Clock) -> Direct | None:
    """Return the direct way to Kafka; None where it wants TLS, which only librdkafka speaks."""
    if settings.kafka_security.endswith("SSL"):
        return None
    name = f"tables-{settings.alias}-direct"
    return Direct(admin, clock, name, settings.ack_timeout, settings.kafka_options)


async def _watch(stop: asyncio.Event, keeper: ReplicaKeeper, health: Health) -> int:
    while not stop.is_set():
        health.ready("copies", keeper.caught_up.is_set(), "the logs are not read yet")
        if keeper.failed is not None:
            return 1
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await stop.wait()
    return 0
