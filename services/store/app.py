"""Wiring of the store: catalog, intake, Flight, health."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType

from prometheus_client import Counter, Gauge, Histogram

from penstock import bus
from penstock.auth.access import Access
from penstock.auth.login import Login
from penstock.catalog.reader import CatalogReader
from penstock.coordination import redis_link
from penstock.coordination.nodes import Presence
from penstock.outbound.reach import Outbound
from penstock.runtime import audit, tls, vital
from penstock.runtime.clock import SystemClock
from penstock.runtime.health import SECONDS, Health
from penstock.runtime.log import configure, get
from services.store.external_rows import ExternalRows
from services.store.flight import StoreServer
from services.store.flight_connections import IDLE, TOO_MANY, FlightConnections
from services.store.intake import LogIntake
from services.store.partitions import Partitions
from services.store.query import Queries, QueryLimits
from services.store.resolve import Resolver
from services.store.settings import StoreSettings

log = get(__name__)


def run(settings: StoreSettings) -> int:
    """Serve until told to stop; returns the exit status (1: the intake died, the supervisor starts
    anew).
    """
    configure("store", settings.log_level)
    audit.open_trail(
        settings.audit_log, "store", settings.audit_log_bytes, settings.audit_log_files
    )
    bus.secure(settings.kafka_options)
    health = Health(
        "store",
        settings.health_port,
        host=settings.host,
        metrics_key=settings.metrics_secret,
        wait_for=("catalog", "topics", "flight"),
    )
    rows = Counter("penstock_store_rows", "Rows taken from the log", registry=health.registry)
    lag = Gauge(
        "penstock_store_lag_seconds", "Age of the newest record taken", registry=health.registry
    )
    tail = Gauge("penstock_store_tail_rows", "Rows not in segments yet", registry=health.registry)
    took = Histogram(
        "penstock_store_query_seconds",
        "Time that a query took",
        buckets=SECONDS,
        registry=health.registry,
    )
    closed = Counter(
        "penstock_store_closed_connections",
        "Connections to the Flight port that were ended: too many of them, or idle",
        ["why"],
        registry=health.registry,
    )
    for why in (TOO_MANY, IDLE):
        closed.labels(why)  # 0 from the beginning on
    stop = threading.Event()

    def ask_to_stop(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, ask_to_stop)
    signal.signal(signal.SIGINT, ask_to_stop)

    def on_read(count: int, stamp: float) -> None:
        rows.inc(count)
        lag.set(max(time.time() - stamp / 1000, 0.0))

    client = redis_link.connect(settings)
    presence = Presence(settings)
    presence.start()
    with CatalogReader(
        settings.kafka_bootstrap, client_id="store-catalog", registry=health.registry
    ) as catalog:
        health.ready("catalog")
        partitions = Partitions(settings.segments_dir, catalog.catalog.topic_owner)
        tail.set_function(lambda: sum(t.rows for t in partitions.tails().values()))
        intake = LogIntake(settings, catalog, partitions, client, on_read)
        intake.start()
        access = Access(lambda: catalog.catalog, settings.user)
        external_rows = ExternalRows(catalog, settings.data_dir, Outbound(settings, access))
        limits = QueryLimits(
            settings.query_memory,
            settings.query_threads,
            settings.max_result_rows,
            settings.query_seconds,
            settings.query_spill,
            settings.max_result_bytes,
        )
        queries = Queries(partitions, Resolver(catalog, client, external_rows), limits)
        server = StoreServer(
            f"{'grpc+tls' if settings.tls_cert else 'grpc'}://{settings.host}:{settings.port}",
            queries,
            partitions,
            login=Login(
                lambda: catalog.catalog,
                settings.user,
                settings.root_password,
                SystemClock(),
                settings.signing_key,
            ),
            access=access,
            reached=catalog.wait_for,
            own_writes_seconds=settings.own_writes_seconds,
            max_queries=settings.max_queries_per_user,
            timed=took.time,
            **tls.flight_server(settings),
        )
        threading.Thread(target=vital.run(server.serve), name="flight", daemon=True).start()
        connections = FlightConnections(
            server.port,
            most=settings.max_connections,
            most_per_address=settings.max_connections_per_address,
            idle_seconds=settings.silent_seconds,
            closed=lambda why: closed.labels(why).inc(),
        )
        connections.start()
        health.ready("flight")
        while not stop.wait(0.2):
            health.ready("topics", intake.caught_up.is_set(), "topics are not being read yet")
            if intake.failed is not None:
                return 1
        server.shutdown()
        connections.stop()
        intake.stop()
        external_rows.close()
    presence.close()
    health.close()
    return 0
