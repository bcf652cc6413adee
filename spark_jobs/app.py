"""Wiring of the stream jobs' driver."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import NoReturn

from prometheus_client import Gauge

from penstock.bus import Admin, Publisher
from penstock.coordination import redis_link
from penstock.runtime import log, vital
from penstock.runtime.clock import SystemClock
from penstock.runtime.health import Health
from penstock.service import Service
from spark_jobs.controls import Controls
from spark_jobs.entry_file import EntryFile
from spark_jobs.epochs import Epochs
from spark_jobs.leadership import Leadership
from spark_jobs.queries import topics_to_read
from spark_jobs.recovery import recover
from spark_jobs.rehearsal import Rehearsal, newest_records
from spark_jobs.session import SparkSessions
from spark_jobs.settings import SparkSettings
from spark_jobs.supervisor import QuerySupervisor
from spark_jobs.watch import SleepWatch

#: exit status when the JVM or Kafka is gone: whoever supervises starts the process anew
EXIT_LOST = 70
_log = log.get(__name__)


def run(settings: SparkSettings) -> int:
    """Run until SIGTERM or SIGINT; returns the exit status."""
    clock = SystemClock()
    with Service(settings, waits_for=("session", "catalog", "queries")) as service:
        health = service.health
        stop = service.stop
        # other nodes know of this one before it may lead the jobs
        service.announce()
        sessions = SparkSessions.start(settings)
        # Spark has set a handler of its own
        service.hear_signals()
        sessions.when_gone(_end_at_once)
        health.ready("session")
        catalog = service.read_catalog(children=False, client_id="spark-driver")
        client = redis_link.connect(settings, decode_responses=True, socket_timeout=5)
        leadership = Leadership(
            client,
            clock,
            ttl=settings.lease_seconds,
            node=settings.node,
            data_dir=settings.data_dir,
            on_lost=_end_at_once,
        )
        held = Gauge(
            "penstock_lease_held",
            "1: this service holds the lease",
            ["lease"],
            registry=health.registry,
        )
        held.labels("jobs").set_function(lambda: float(leadership.lease.held))
        rehearsal = Rehearsal(sessions, partial(newest_records, settings.kafka_bootstrap))
        if not _lead(leadership, health, stop, rehearsal):
            return 0
        health.ready("queries", False, "starting")
        recover(settings, list(topics_to_read(catalog.catalog).values()))
        if settings.master == "local":
            EntryFile(settings.entry_file, catalog).begin()
        publisher = Publisher(settings.kafka_bootstrap, client_id="spark-driver")
        admin = Admin(settings.kafka_bootstrap, client_id="spark-driver")
        controls = Controls(
            catalog,
            client,
            publisher,
            clock,
            tick_seconds=settings.tick_seconds,
            grace_seconds=settings.grace_seconds,
            snapshot_seconds=settings.snapshot_seconds,
            ticking=settings.clock == "system",
        )
        supervisor = QuerySupervisor(
            settings,
            sessions,
            catalog,
            client,
            admin,
            Epochs(settings, publisher, clock),
            health,
            clock,
            leadership.token,
            SleepWatch(settings.kafka_bootstrap),
        )

        def stop_supervisor() -> None:
            stop.wait()
            supervisor.stop()

        threading.Thread(target=vital.run(stop_supervisor), name="stop", daemon=True).start()
        controls.start()
        try:
            supervisor.run()
        except Exception:
            _log.exception("the jobs cannot go on in this process")
            _end_at_once()
        finally:
            controls.stop()
        sessions.context.stop()
        leadership.release()
        publisher.close()
    return 0


def _lead(
    leadership: Leadership, health: Health, stop: threading.Event, rehearsal: Rehearsal
) -> bool:
    """Return True once this process runs the jobs, False when *stop* came first. Who stands by
    rehearses, and is ready then: it has all that it needs.
    """

    def waiting(why: str) -> None:
        stands_by = bool(why) and "Redis" not in why
        if stands_by:
            rehearsal.begin()
        health.ready("queries", stands_by and rehearsal.is_over, why)

    try:
        return leadership.wait(stop, waiting)
    finally:
        rehearsal.end()


def _end_at_once() -> NoReturn:
    """End the process without saying good-bye: other nodes must not think that it has stopped, for
    its workers may still run.
    """
    os._exit(EXIT_LOST)
