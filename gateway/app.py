"""Wiring of the gateway: what is made from which settings, and in which order it starts and stops.

Kafka or Redis may be down at any time, at the start too: then the process lives, answers 503 with
the reason, and goes on when they are back.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import sys
import threading
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import redis
import uvloop
from aiohttp import web
from prometheus_client import Gauge, Histogram

from gateway.children import Children
from gateway.console import Console
from gateway.cookies import CookieSessions
from gateway.ddl import Definer
from gateway.definitions import Definitions
from gateway.door import Door
from gateway.drain import Drain
from gateway.execute import Executor, Session
from gateway.federation import Federation
from gateway.foreign import ForeignTopics
from gateway.forward import Forwarder, column_from_json, internal_token
from gateway.idempotency import Ledger
from gateway.influx import Influx
from gateway.information.schema import Information
from gateway.ingest import Ingest
from gateway.intake import Intake
from gateway.kafka_rights import KafkaRights, NoPasswords
from gateway.latest import Latest
from gateway.letters import Letters
from gateway.mover import Mover
from gateway.principals import Principals
from gateway.publisher import Publisher
from gateway.registry import Registry
from gateway.rest import Rest
from gateway.select import Store
from gateway.sessions import Sessions
from gateway.settings import GatewaySettings
from gateway.stream_tables import StreamTables
from gateway.streams import Streams
from gateway.websocket import Socket
from penstock import audit, bus, log, names, redis_link, tls, vital
from penstock.access import Access
from penstock.bus import Admin
from penstock.bus import Publisher as Bus
from penstock.catalog.model import Database, Table
from penstock.catalog.reader import CatalogReader, Changed
from penstock.catalog.view import Catalog
from penstock.catalog.writer import CatalogWriter
from penstock.clock import SystemClock
from penstock.connections import GuardedSite, prepare
from penstock.errors import BusError, PenstockError
from penstock.gate import Gate, Halts
from penstock.health import SECONDS, Health
from penstock.kafka_users import KafkaUsers
from penstock.limits import Open, Rate, Turns
from penstock.login import Login
from penstock.nodes import Presence
from penstock.pulse import Pulse
from penstock.reach import Outbound

_log = log.get("gateway")
_PROBE_S = 1.0
_CLEAR_S = 10.0
_SWITCH_S = 0.0005
_PATIENCE_S = 3.0
_FOR_EVER_S = 1e7


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
        name = secrets.token_hex(6)
        password = settings.root_password
        self._redis = redis_link.connect(
            settings,
            socket_timeout=_PATIENCE_S,
            socket_connect_timeout=_PATIENCE_S,
            health_check_interval=10,
        )
        bootstrap = settings.kafka_bootstrap
        self._reader = CatalogReader(
            bootstrap, client_id=f"gateway-{name}", registry=health.registry
        )
        self._admin = Admin(bootstrap, client_id=f"gateway-{name}-admin", timeout=_PATIENCE_S)
        self._bus = Bus(bootstrap, client_id=f"gateway-{name}", timeout=settings.ack_timeout)
        self._controls = Bus(
            bootstrap, client_id=f"gateway-{name}-controls", timeout=settings.ack_timeout
        )
        address = settings.reached_at
        self._writer = CatalogWriter(
            bootstrap, self._redis, self._reader, address=address, clock=clock
        )
        children = Children(self._redis)
        ddl_children = Children(self._redis)
        self._gate = Gate(lambda topic: self._reader.catalog.halted(topic))
        self._halts = Halts(self._reader, self._gate, self._redis, name)
        self._ledger = Ledger(
            self._redis,
            self._admin,
            bootstrap,
            name,
            lambda t, p: self._publisher.acked.get((t, p)),
        )
        self._publisher = Publisher(
            self._bus,
            children,
            self._ledger,
            self._catalog,
            self._gate,
            loop=loop,
            clock=clock,
            max_bytes=settings.max_pending_bytes,
            max_writes=settings.max_pending_writes,
        )
        self._definer = Definer(
            self._reader,
            self._writer,
            self._admin,
            self._controls,
            self._redis,
            ddl_children,
            live_timeout=settings.live_timeout,
            wait_for_jobs=settings.wait_for_jobs,
        )
        access = Access(self._catalog, settings.user)
        outbound = Outbound(settings, access)
        notified = Outbound(settings, access, settings.notify_allow)
        streams = Streams(
            self._definer, self._redis, clock, notified, wait_for_jobs=settings.wait_for_jobs
        )
        self._topics = ForeignTopics(
            self._definer, self._admin, clock, settings.data_dir, outbound, settings.ack_timeout
        )
        self._federation = Federation(
            self._definer, self._admin, clock, settings.data_dir, outbound, self._topics
        )
        self._stream_tables = StreamTables(
            settings.raft_groups,
            self._redis,
            self._catalog,
            clock,
            loop,
            access=access,
            user=settings.user,
            password=password,
            timeout=settings.live_timeout,
            context=tls.client(settings.tls_ca),
        )
        self._kafka_rights: KafkaRights | None = None
        if settings.kafka_users:
            users = KafkaUsers(bootstrap, client_id=f"gateway-{name}-users", timeout=_PATIENCE_S)
            self._kafka_rights = KafkaRights(users, self._catalog, access, password)
            self._definer.committed = self._kafka_rights.follow
        principals = Principals(
            self._definer, clock, settings.user, self._kafka_rights or NoPasswords()
        )
        drain = Drain(self._definer, self._redis, access, wait_for_jobs=settings.wait_for_jobs)
        self._mover = Mover(self._definer, drain, self._admin, self._redis, bootstrap)
        self._definer.settle = self._mover.finish
        definitions = Definitions(
            self._definer,
            streams,
            self._federation,
            principals,
            self._stream_tables,
            self._mover,
            clock,
            partitions=settings.partitions,
            allow_functions=settings.allow_functions,
        )
        intake = Intake(
            self._publisher,
            ddl_children,
            self._ledger,
            self._catalog,
            access,
            self._stream_tables.write,
            self._topics.write,
        )
        self._store = Store(
            settings.store_url,
            settings.user,
            password,
            max_rows=settings.max_result_rows,
            max_bytes=settings.max_result_bytes,
            timeout=settings.query_timeout,
            turns=Turns(settings.max_queries_per_user, settings.max_waiting_queries),
            ca=settings.tls_ca,
        )
        information = Information(
            self._catalog,
            self._redis,
            _version(),
            access,
            letters=Letters(self._admin, bootstrap, f"gateway-{name}-letters").read,
        )
        self._forwarder = Forwarder(
            self._reader, internal_token(password), tls.client(settings.tls_ca)
        )
        self._executor = Executor(
            self._catalog,
            self._definer,
            definitions,
            streams,
            intake,
            self._publisher,
            self._store,
            information,
            self._forwarder,
            self._federation,
            access,
            clock,
        )
        learn = self._kafka_rights.learn if self._kafka_rights is not None else None
        login = Login(
            self._catalog, settings.user, password, clock, settings.signing_key, learn=learn
        )
        cookies = CookieSessions(self._redis, login, clock)
        door = Door(
            login,
            cookies,
            settings.allowed_origins,
            Rate(settings.max_requests_per_second, clock),
            Open(settings.max_open_per_address),
        )
        self._socket = Socket(intake, settings.window, settings.max_body)
        app = prepare(web.Application(client_max_size=settings.max_body))
        for part in (
            Rest(
                self._executor,
                login,
                clock,
                {
                    "version": _version(),
                    "notifier_url": settings.notifier_url,
                    "federation_url": settings.federation_url,
                },
            ),
            Ingest(intake, settings.max_body),
            self._stream_tables,
            Latest(intake, self._redis),
            self._socket,
            Influx(intake, self._definer, self._forwarder, access, clock),
            Registry(self._catalog, access),
            drain,
            Sessions(
                login, cookies, self._executor, self._redis, secure=settings.tls_cert is not None
            ),
            Console(),
        ):
            app.router.add_routes(part.routes(door))
        app.router.add_routes(self._forwarder.routes(self._forwarded))
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=5.0
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._reader.listen(self._forget_topics)
        self._reader.listen(lambda _: self._publisher.look_again())
        self._presence = Presence(settings)
        health.watch("event loop", Pulse(loop).late)
        health.watch("writer of rows", self._publisher.ended)
        health.watch("rows", self._publisher.busy, vital=False)
        self._metrics()

    def _catalog(self) -> Catalog:
        if not self._health.conditions()["catalog"].ready:
            raise BusError(
                "the catalog is not read yet",
                code="E_KAFKA_DOWN",
                hint="try again in a second",
                retryable=True,
            )
        return self._reader.catalog

    def _metrics(self) -> None:
        waiting = Gauge(
            "penstock_gateway_waiting_bytes",
            "Rows that Kafka has not confirmed",
            registry=self._health.registry,
        )
        waiting.set_function(lambda: self._publisher.pending[1])
        rows = Gauge(
            "penstock_gateway_rows",
            "Rows that Kafka has confirmed since the start",
            registry=self._health.registry,
        )
        rows.set_function(lambda: self._publisher.rows)
        took = Histogram(
            "penstock_gateway_ack_seconds",
            "From sending rows to Kafka until it has confirmed them",
            buckets=SECONDS,
            registry=self._health.registry,
        )
        self._publisher.on_confirmed = took.observe
        lease = Gauge(
            "penstock_lease_held",
            "1: this room holds the lease",
            ["lease"],
            registry=self._health.registry,
        )
        lease.labels("catalog").set_function(lambda: float(self._writer.leading))

    async def start(self) -> None:
        await self._runner.setup()
        await GuardedSite(self._runner, self._settings, tls.server(self._settings)).start()
        self._health.ready("http")
        self._presence.start()
        self._halts.start()
        _log.info("listening", host=self._settings.host, port=self._settings.port)
        loops = {
            "catalog": self._follow_catalog(),
            "probe": self._probe(),
            "moves": self._finish_moves(),
            "topics": self._clear_topics(),
        }
        if self._kafka_rights is not None:
            loops |= {
                "root in Kafka": self._know_root(self._kafka_rights),
                "rights in Kafka": self._keep_rights(self._kafka_rights),
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
        self._halts.stop()
        self._stream_tables.close()
        self._publisher.close()
        self._bus.close()
        self._controls.close()
        self._definer.close()
        if self._kafka_rights is not None:
            self._kafka_rights.close()
        self._ledger.close()
        self._writer.close()
        self._reader.close()
        self._store.close()
        self._federation.close()
        self._topics.close()
        self._redis.close()

    async def _follow_catalog(self) -> None:
        """Read the catalog once Kafka has it; then try to lead it, so that the first DDL need not
        wait.
        """
        read = asyncio.Event()
        loop = asyncio.get_running_loop()

        def start() -> None:
            self._reader.start(timeout=_FOR_EVER_S)
            loop.call_soon_threadsafe(read.set)

        # a thread that may wait for Kafka as long as it likes, and holds up nobody's end
        threading.Thread(target=vital.run(start), name="catalog-start", daemon=True).start()
        await read.wait()
        self._health.ready("catalog")
        with contextlib.suppress(PenstockError):
            await asyncio.to_thread(self._writer.lead)

    def _forget_topics(self, changed: list[Changed]) -> None:
        """What was acked in a topic before it was dropped says nothing about one of the same name.
        On the catalog reader's thread.
        """
        topics = set()
        for entry in (c.new or c.old for c in changed if c.new is None or c.old is None):
            if isinstance(entry, Database):
                topics |= {topic for topic, _ in entry.lineage}
            elif isinstance(entry, Table) and names.has_own(entry.topic):
                topics.add(entry.topic)
        for place in [p for p in list(self._publisher.acked) if p[0] in topics] if topics else ():
            self._publisher.acked.pop(place, None)

    async def _finish_moves(self) -> None:
        """Go on with changes of partitions that a gateway has begun and not brought to an end."""
        # whatever is run brings them to an end first
        await self._while_leading(
            _PROBE_S, lambda: self._mover.under_way, lambda: None, "a database is still moving"
        )

    async def _clear_topics(self) -> None:
        """Delete topics of earlier generations once they are empty."""
        await self._while_leading(
            _CLEAR_S,
            lambda: self._mover.ended,
            self._mover.clear,
            "topics of earlier generations stay for now",
        )

    async def _know_root(self, rights: KafkaRights) -> None:
        """Let root log in to Kafka, as soon as that is there."""
        while True:
            try:
                await asyncio.to_thread(rights.know_root)
                return
            except BusError as fault:
                _log.info("root is not known to Kafka yet", reason=str(fault))
                await asyncio.sleep(_PROBE_S)

    async def _keep_rights(self, rights: KafkaRights) -> None:
        """Bring rules in Kafka to the grants: once for each leader, and again where that failed."""
        await self._while_leading(
            _PROBE_S, lambda: rights.behind, rights.keep, "rights in Kafka are behind the grants"
        )

    async def _while_leading(
        self, every: float, wanted: Callable[[], bool], action: Callable[[], None], complaint: str
    ) -> None:
        """Look *every* so many seconds whether *action* is wanted, and run it in the DDL thread;
        one that fails comes again.
        """
        while True:
            await asyncio.sleep(every)
            if self._writer.leading and wanted():
                try:
                    await self._definer.run(action)
                except vital.FAULTS as error:
                    _log.warning(complaint, reason=f"{type(error).__name__}: {error}")

    async def _probe(self) -> None:
        """Ask Kafka and Redis whether they are there, and say that we are."""
        while True:
            await asyncio.to_thread(self._probe_once)
            await asyncio.sleep(_PROBE_S)

    def _probe_once(self) -> None:
        try:
            self._ledger.heartbeat()
            self._health.ready("redis")
        except redis.RedisError as down:
            self._health.ready("redis", False, str(down))
        try:
            self._admin.topics()
            self._publisher.down = None
            self._health.ready("kafka")
        except BusError as down:
            self._publisher.down = down.detail or down.message
            self._health.ready("kafka", False, self._publisher.down)

    async def _forwarded(self, body: dict[str, object]) -> None:
        """DDL that another gateway sends to the catalog's leader."""
        user = str(body.get("user", ""))
        if "widen" in body:
            asked = body["widen"]
            assert isinstance(asked, dict)
            time, columns, tags = (
                [column_from_json(c) for c in asked[k]] for k in ("time", "columns", "tags")
            )
            await self._definer.run(
                lambda: self._definer.widen(
                    asked["database"], asked["table"], time[0], columns, tags
                ),
                user,
            )
            return
        database = body.get("database")
        timezone = str(body.get("timezone") or "UTC")
        session = Session(
            str(database) if database else None,
            timezone,
            user=user,
            remote="gateway",
            forwarded=True,
        )
        await self._executor.run(str(body["sql"]), session)


def _version() -> str:
    try:
        return version("penstock")
    except PackageNotFoundError:
        return "0"
