"""What a node of stream tables tells Prometheus."""

from __future__ import annotations

from functools import partial

from prometheus_client import Gauge, Histogram
from prometheus_client.registry import CollectorRegistry

from penstock.runtime.health import SECONDS
from services.tables.election import Election, GroupStanding
from services.tables.keeper import ReplicaKeeper
from services.tables.server import Server


def register(
    registry: CollectorRegistry, keeper: ReplicaKeeper, server: Server, election: Election
) -> None:
    """Register all metrics of the node in *registry*."""
    lease = Gauge(
        "penstock_lease_held", "1: this service holds the lease", ["lease"], registry=registry
    )
    for standing in election.standings.values():
        lease.labels(f"group {standing.group.id}").set_function(partial(_leads, standing))
    rows = Gauge(
        "penstock_tables_rows",
        "Rows that the tables ever had, by this node's copies",
        registry=registry,
    )
    rows.set_function(lambda: sum(r.copy.next for r in keeper.all()))
    memory = Gauge("penstock_tables_memory_rows", "Rows in memory", registry=registry)
    memory.set_function(lambda: sum(r.copy.next - r.copy.memory_first for r in keeper.all()))
    subscribers = Gauge(
        "penstock_tables_subscribers", "Subscriptions connected here", registry=registry
    )
    subscribers.set_function(lambda: len(server.subscriptions.connected))
    fenced = Gauge(
        "penstock_tables_fenced_records",
        "Records of former leaders that were dropped",
        registry=registry,
    )
    fenced.set_function(lambda: sum(r.fenced for r in keeper.all()))
    took = Histogram(
        "penstock_tables_ack_seconds",
        "From a write's arrival at the leader until its producer is told that it counts",
        buckets=SECONDS,
        registry=registry,
    )
    server.intake.on_confirmed = took.observe


def _leads(standing: GroupStanding) -> float:
    return float(standing.term is not None)
