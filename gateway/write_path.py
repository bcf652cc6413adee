"""The way of rows into Kafka, put together: gate, ledger and publisher."""

from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry, Gauge, Histogram

from gateway.backends import Backends
from gateway.children import Children
from gateway.idempotency import Ledger
from gateway.publisher import RowPublisher
from gateway.row_batches import RowBatches
from gateway.settings import GatewaySettings
from penstock import names
from penstock.catalog.apply import Changed
from penstock.catalog.model import Database, Table
from penstock.repartition.write_gate import Gate, Halts
from penstock.runtime.clock import Clock
from penstock.runtime.health import SECONDS


class WritePath:
    """One per process."""

    def __init__(
        self,
        settings: GatewaySettings,
        backends: Backends,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
    ) -> None:
        gate = Gate(lambda topic: backends.reader.catalog.is_halted(topic))
        self._halts = Halts(backends.reader, gate, backends.redis, backends.name)
        self.ledger = Ledger(
            backends.redis,
            backends.admin,
            backends.bootstrap,
            backends.name,
            lambda t, p: self.publisher.confirmed.offsets.get((t, p)),
        )
        self.publisher = RowPublisher(
            backends.rows,
            RowBatches(Children(backends.redis)),
            self.ledger,
            backends.catalog,
            gate,
            loop=loop,
            clock=clock,
            max_bytes=settings.max_pending_bytes,
            max_writes=settings.max_pending_writes,
        )
        backends.reader.listen(self._forget_topics)
        backends.reader.listen(lambda _: self.publisher.look_again())

    def measure(self, registry: CollectorRegistry) -> None:
        """Register the metrics of rows."""
        waiting = Gauge(
            "penstock_gateway_waiting_bytes",
            "Rows that Kafka has not confirmed",
            registry=registry,
        )
        waiting.set_function(lambda: self.publisher.pending[1])
        rows = Gauge(
            "penstock_gateway_rows",
            "Rows that Kafka has confirmed since the start",
            registry=registry,
        )
        rows.set_function(lambda: self.publisher.confirmed.rows)
        took = Histogram(
            "penstock_gateway_ack_seconds",
            "From sending rows to Kafka until it has confirmed them",
            buckets=SECONDS,
            registry=registry,
        )
        self.publisher.confirmed.on_seconds = took.observe

    def start(self) -> None:
        self._halts.start()

    def stop(self) -> None:
        """Send what was taken in."""
        self._halts.stop()
        self.publisher.close()

    def _forget_topics(self, changed: list[Changed]) -> None:
        """Forget what was acked in a topic before it was dropped: it says nothing about one of the
        same name. On the catalog reader's thread.
        """
        topics: set[str] = set()
        for change in changed:
            if change.new is None or change.old is None:
                topics |= _topics_of(change)
        if topics:
            self.publisher.confirmed.forget(topics)


def _topics_of(change: Changed) -> set[str]:
    """Return the topics of a database, or of a table that has its own."""
    entry = change.new or change.old
    if isinstance(entry, Database):
        return {topic for topic, _ in entry.lineage}
    if isinstance(entry, Table) and names.has_own(entry.topic):
        return {entry.topic}
    return set()
