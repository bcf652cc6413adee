"""Wiring of the store: intake, queries, Flight."""

from __future__ import annotations

import threading

from penstock.auth.access import Access
from penstock.auth.login import Login
from penstock.catalog.reader import CatalogReader
from penstock.coordination import redis_link
from penstock.outbound.reach import Outbound
from penstock.runtime import tls, vital
from penstock.runtime.clock import SystemClock
from penstock.service import Service
from services.store.external_rows import ExternalRows
from services.store.flight import StoreServer
from services.store.flight_answers import FlightAnswers
from services.store.flight_connections import FlightConnections
from services.store.flight_lists import FlightLists
from services.store.flight_queries import FlightQueries
from services.store.gateway_statements import GatewayStatements
from services.store.intake import LogIntake
from services.store.metrics import StoreMetrics
from services.store.partitions import Partitions
from services.store.query import Queries, QueryLimits
from services.store.resolve import Resolver
from services.store.settings import StoreSettings


def run(settings: StoreSettings) -> int:
    """Serve until told to stop; returns the exit status (1: the intake died, the supervisor starts
    anew).
    """
    with Service(settings, waits_for=("catalog", "topics", "flight")) as service:
        metrics = StoreMetrics(service.health.registry)
        catalog = service.read_catalog()
        service.announce()
        return _serve(settings, service, catalog, metrics)


def _serve(
    settings: StoreSettings, service: Service, catalog: CatalogReader, metrics: StoreMetrics
) -> int:
    client = redis_link.connect(settings)
    partitions = Partitions(settings.segments_dir, catalog.catalog.topic_owner)
    metrics.tail.set_function(lambda: sum(t.rows for t in partitions.tails().values()))
    intake = LogIntake(settings, catalog, partitions, client, metrics.note_read)
    intake.start()
    access = Access(lambda: catalog.catalog, settings.user)
    external_rows = ExternalRows(catalog, settings.data_dir, Outbound(settings, access))
    queries = Queries(partitions, Resolver(catalog, client, external_rows), _limits(settings))
    gateway = GatewayStatements(
        settings.gateway_url, timeout=settings.query_seconds, ca=settings.tls_ca
    )
    flight_queries = FlightQueries(
        queries,
        partitions,
        access,
        reached=catalog.wait_for,
        own_writes_seconds=settings.own_writes_seconds,
        max_queries=settings.max_queries_per_user,
        timed=metrics.took.time,
    )
    server = StoreServer(
        f"{'grpc+tls' if settings.tls_cert else 'grpc'}://{settings.host}:{settings.port}",
        FlightAnswers(flight_queries, gateway),
        FlightLists(lambda: catalog.catalog, access),
        gateway,
        partitions,
        login=Login(
            lambda: catalog.catalog,
            settings.user,
            settings.root_password,
            SystemClock(),
            settings.signing_key,
        ),
        access=access,
        **tls.flight_server(settings),
    )
    threading.Thread(target=vital.run(server.serve), name="flight", daemon=True).start()
    connections = FlightConnections(
        server.port,
        most=settings.max_connections,
        most_per_address=settings.max_connections_per_address,
        idle_seconds=settings.silent_seconds,
        closed=metrics.note_closed,
    )
    connections.start()
    service.health.ready("flight")
    while not service.stop.wait(0.2):
        service.health.ready("topics", intake.caught_up.is_set(), "topics are not being read yet")
        if intake.failed is not None:
            return 1
    server.shutdown()
    connections.stop()
    gateway.close()
    intake.stop()
    external_rows.close()
    return 0


def _limits(settings: StoreSettings) -> QueryLimits:
    return QueryLimits(
        settings.query_memory,
        settings.query_threads,
        settings.max_result_rows,
        settings.query_seconds,
        settings.query_spill,
        settings.max_result_bytes,
    )
