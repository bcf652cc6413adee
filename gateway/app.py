"""The gateway as a process: what is made from which settings, and in which order it starts and
stops.

Kafka or Redis may be down at any time, at the start too: then the process lives, answers 503 with
the reason, and goes on when they are back.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from importlib.metadata import PackageNotFoundError, version

import redis
import uvloop
from aiohttp import web
from prometheus_client import Gauge

from gateway.backends import Backends
from gateway.children import Children
from gateway.console import Console
from gateway.cookies import CookieSessions
from gateway.ddl import growth
from gateway.ddl.assembly import DdlParts
from gateway.dead_letters import DeadLetterReader
from gateway.door import Door
from gateway.forward import Forwarder, column_from_json, internal_token
from gateway.influx import Influx
from gateway.information.schema import Information
from gateway.ingest import RowRoutes
from gateway.intake import WriteIntake
from gateway.latest import LatestRoutes
from gateway.leader_duties import LeaderDuties
from gateway.registry import SchemaRegistryRoutes
from gateway.rest import SqlRoutes
from gateway.select import StoreClient
from gateway.sessions import Sessions
from gateway.settings import GatewaySettings
from gateway.statements.context import RequestContext
from gateway.statements.executor import Executor
from gateway.statements.permissions import Permissions
from gateway.statements.queries import ReadStatements
from gateway.statements.resolution import NameResolver
from gateway.statements.writes import WriteStatements
from gateway.websocket import Socket
from gateway.write_path import WritePath
from penstock import bus
from penstock.auth.access import Access
from penstock.auth.login import Login
from penstock.coordination.nodes import Presence
from penstock.errors import BusError
from penstock.runtime import audit, log, tls, vital
from penstock.runtime.clock import SystemClock
from penstock.runtime.connections import GuardedSite, prepare
from penstock.runtime.health import Health
from penstock.runtime.limits import Open, Rate, Turns
from penstock.runtime.pulse import Pulse

_log = log.get("gateway")
_PROBE_S = 1.0
_SWITCH_S = 0.0005


def run(settings: GatewaySettings) -> int:
    """Serve until told to stop."""
    log.configure("gateway", settings.log_level)
    audit.open_trail(
        settings.audit_log, "gateway", settings.audit_log_bytes, settings.audit_log_files
    )
    bus.secure(settings.kafka_options)
    # the event loop must not wait five milliseconds for the thread that encodes rows
    sys.setswitchinterval(_SWITCH_S)
    uvloop.run(_serve(settings))
    return 0


async def _serve(settings: GatewaySettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with Health(
        "gateway",
        settings.health_port,
        host=settings.host,
        metrics_key=settings.metrics_secret,
        wait_for=("catalog", "kafka", "redis", "http"),
    ) as health:
        gateway = _Gateway(settings, health, loop)
        try:
            await gateway.start()
            await stop.wait()
        finally:
            await gateway.close()


class _Gateway:
    """Everything in one process."""

    def __init__(
        self, settings: GatewaySettings, health: Health, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._settings = settings
        self._health = health
        clock = SystemClock()
        self._backends = Backends(settings, health, clock)
        access = Access(self._backends.catalog, settings.user)
        children = Children(self._backends.redis)
        self._writes = WritePath(settings, self._backends, loop, clock)
        self._ddl = DdlParts(settings, self._backends, access, children, loop, clock)
        intake = WriteIntake(
            self._writes.publisher,
            children,
            self._writes.ledger,
            self._backends.catalog,
            access,
            self._ddl.stream_tables.write,
            self._ddl.foreign_topics.write,
        )
        self._store = _store(settings)
        self._forwarder = Forwarder(
            self._backends.reader,
            internal_token(settings.root_password),
            tls.client(settings.tls_ca),
        )
        self._executor = self._make_executor(intake, access, clock)
        self._socket = Socket(intake, settings.window, settings.max_body)
        self._runner = web.AppRunner(
            self._make_application(intake, access, clock),
            access_log=None,
            handle_signals=False,
            shutdown_timeout=5.0,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._presence = Presence(settings)
        self._watch(loop)

    def _make_executor(self, intake: WriteIntake, access: Access, clock: SystemClock) -> Executor:
        backends = self._backends
        names = NameResolver(backends.catalog, intake)
        letters = DeadLetterReader(
            backends.admin, backends.bootstrap, backends.client_id("letters")
        )
        information = Information(
            backends.catalog, backends.redis, _version(), access, letters=letters.read
        )
        queries = ReadStatements(
            backends.catalog,
            names,
            self._store,
            self._writes.publisher,
            information,
            self._ddl.streams,
            self._ddl.definer.topics,
        )
        writes = WriteStatements(
            backends.catalog,
            names,
            intake,
            self._ddl.remote_insert,
            queries,
            self._ddl.removal,
            self._writes.publisher,
            clock,
        )
        return Executor(
            backends.catalog,
            Permissions(access, backends.catalog, intake),
            queries,
            writes,
            self._ddl.definer,
            self._ddl.definitions,
            information,
            self._forwarder,
        )

    def _make_application(
        self, intake: WriteIntake, access: Access, clock: SystemClock
    ) -> web.Application:
        settings = self._settings
        backends = self._backends
        rights = self._ddl.kafka_rights
        login = Login(
            backends.catalog,
            settings.user,
            settings.root_password,
            clock,
            settings.signing_key,
            learn=rights.learn if rights is not None else None,
        )
        cookies = CookieSessions(backends.redis, login, clock)
        door = Door(
            login,
            cookies,
            settings.allowed_origins,
            Rate(settings.max_requests_per_second, clock),
            Open(settings.max_open_per_address),
        )
        about = {
            "version": _version(),
            "notifier_url": settings.notifier_url,
            "federation_url": settings.federation_url,
        }
        secure = settings.tls_cert is not None
        app = prepare(web.Application(client_max_size=settings.max_body))
        for part in (
            SqlRoutes(self._executor, login, clock, about),
            RowRoutes(intake, settings.max_body),
            self._ddl.stream_tables,
            LatestRoutes(intake, backends.redis),
            self._socket,
            Influx(intake, self._ddl.definer, self._forwarder, access, clock),
            SchemaRegistryRoutes(backends.catalog, access),
            self._ddl.drain,
            Sessions(login, cookies, self._executor, backends.redis, secure=secure),
            Console(),
        ):
            app.router.add_routes(part.routes(door))
        app.router.add_routes(self._forwarder.routes(self._take_forwarded))
        return app

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Register health conditions and metrics."""
        health = self._health
        publisher = self._writes.publisher
        health.watch("event loop", Pulse(loop).late)
        health.watch("writer of rows", publisher.silence)
        health.watch("rows", publisher.busy, vital=False)
        self._writes.measure(health.registry)
        lease = Gauge(
            "penstock_lease_held",
            "1: this room holds the lease",
            ["lease"],
            registry=health.registry,
        )
        lease.labels("catalog").set_function(lambda: float(self._backends.writer.leading))

    async def start(self) -> None:
        await self._runner.setup()
        await GuardedSite(self._runner, self._settings, tls.server(self._settings)).start()
        self._health.ready("http")
        self._presence.start()
        self._writes.start()
        _log.info("listening", host=self._settings.host, port=self._settings.port)
        duties = LeaderDuties(
            lambda: self._backends.writer.leading,
            self._ddl.definer,
            self._ddl.repartition,
            self._ddl.kafka_rights,
        )
        loops = {
            "catalog": self._backends.follow_catalog(),
            "probe": self._probe(),
            **duties.loops(),
        }
        self._tasks = [vital.task(loop, name) for name, loop in loops.items()]

    async def close(self) -> None:
        await self._socket.close()
        await self._runner.cleanup()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._forwarder.close()
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        self._presence.close()
        self._ddl.stream_tables.close()
        self._writes.stop()
        self._backends.close_buses()
        self._ddl.close()
        self._writes.ledger.close()
        self._store.close()
        self._backends.close()

    async def _probe(self) -> None:
        """Ask Kafka and Redis whether they are there, and say that we are."""
        while True:
            await asyncio.to_thread(self._probe_once)
            await asyncio.sleep(_PROBE_S)

    def _probe_once(self) -> None:
        try:
            self._writes.ledger.heartbeat()
            self._health.ready("redis")
        except redis.RedisError as down:
            self._health.ready("redis", False, str(down))
        publisher = self._writes.publisher
        try:
            self._backends.admin.topics()
            publisher.down = None
            self._health.ready("kafka")
        except BusError as down:
            publisher.down = down.detail or down.message
            self._health.ready("kafka", False, publisher.down)

    async def _take_forwarded(self, body: dict[str, object]) -> None:
        """Run DDL that another gateway sends to the catalog's leader."""
        user = str(body.get("user", ""))
        if "widen" in body:
            await self._grow_table(body["widen"], user)
            return
        database = body.get("database")
        context = RequestContext(
            str(database) if database else None,
            str(body.get("timezone") or "UTC"),
            user=user,
            remote="gateway",
            forwarded=True,
        )
        await self._executor.run(str(body["sql"]), context)

    async def _grow_table(self, asked: object, user: str) -> None:
        assert isinstance(asked, dict)
        time, columns, tags = (
            [column_from_json(c) for c in asked[k]] for k in ("time", "columns", "tags")
        )
        definer = self._ddl.definer
        await definer.run(
            lambda: growth.grow(definer, asked["database"], asked["table"], time[0], columns, tags),
            user,
        )


def _store(settings: GatewaySettings) -> StoreClient:
    return StoreClient(
        settings.store_url,
        settings.user,
        settings.root_password,
        max_rows=settings.max_result_rows,
        max_bytes=settings.max_result_bytes,
        timeout=settings.query_timeout,
        turns=Turns(settings.max_queries_per_user, settings.max_waiting_queries),
        ca=settings.tls_ca,
    )


def _version() -> str:
    try:
        return version("penstock")
    except PackageNotFoundError:
        return "0"
