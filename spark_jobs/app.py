"""Wiring of the stream jobs' driver."""

from __future__ import annotations

import os
import signal
import threading

from prometheus_client import Gauge

from penstock import bus
from penstock.bus import Admin, Publisher
from penstock.catalog.reader import CatalogReader
from penstock.coordination import redis_link
from penstock.coordination.nodes import Presence
from penstock.runtime import log, vital
from penstock.runtime.clock import SystemClock
from penstock.runtime.health import Health
from spark_jobs.controls import Controls
from spark_jobs.epochs import Epochs
from spark_jobs.leadership import Leadership
from spark_jobs.queries import topics_to_read
from spark_jobs.recovery import recover
from spark_jobs.session import SparkSessions
from spark_jobs.settings import SparkSettings
from spark_jobs.supervisor import QuerySupervisor

#: exit status when the JVM or Kafka is gone: whoever supervises starts the process anew
EXIT_LOST = 70


def run(settings: SparkSettings) -> int:
    """Run until SIGTERM or SIGINT; returns the exit status."""
    log.configure("spark", settings.log_level)
    bus.secure(settings.kafka_options)
    logger = log.get(__name__)
    clock = SystemClock()
    stop = threading.Event()
    presence = Presence(settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    presence.start()
    with Health(
        "spark",
        settings.health_port,
        host=settings.host,
        metrics_key=settings.metrics_secret,
        wait_for=("session", "catalog", "queries"),
    ) as health:
        sessions = SparkSessions.start(settings)
        health.ready("session")
        catalog = CatalogReader(
            settings.kafka_bootstrap, client_id="spark-driver", children=False
        ).start()
        health.ready("catalog")
        client = redis_link.connect(settings, decode_responses=True, socket_timeout=5)
        leadership = Leadership(
            client,
            clock,
            ttl=settings.lease_seconds,
            node=settings.node,
            data_dir=settings.data_dir,
            on_lost=lambda: os._exit(EXIT_LOST),
        )
        held = Gauge(
            "penstock_lease_held",
            "1: this room holds the lease",
            ["lease"],
            registry=health.registry,
        )
        held.labels("jobs").set_function(lambda: float(leadership.lease.held))
        # a node that stands by has all that it needs: ready
        if not leadership.wait(
            stop, lambda why: health.ready("queries", bool(why) and "Redis" not in why, why)
        ):
            presence.close()
            return 0
        health.ready("queries", False, "starting")
        recover(settings, list(topics_to_read(catalog.catalog).values()))
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
        )

        def stop_supervisor() -> None:
            stop.wait()
            supervisor.stop()

        threading.Thread(target=vital.run(stop_supervisor), name="stop", daemon=True).start()
        controls.start()
        try:
            supervisor.run()
        except Exception:
            logger.exception("the jobs cannot go on in this process")
            return EXIT_LOST
        finally:
            controls.stop()
        sessions.context.stop()
        leadership.release()
        presence.close()
        publisher.close()
        catalog.close()
    return 0
