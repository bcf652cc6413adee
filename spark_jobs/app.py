"""Wiring of the stream jobs' driver."""

from __future__ import annotations

import signal

from penstock import log, redis_link
from penstock.bus import Admin, Publisher
from penstock.catalog.reader import CatalogReader
from penstock.clock import SystemClock
from penstock.health import Health
from spark_jobs.controls import Controls
from spark_jobs.epochs import Epochs
from spark_jobs.session import SparkSessions
from spark_jobs.settings import SparkSettings
from spark_jobs.supervisor import Supervisor

#: exit status when the JVM or Kafka is gone: whoever supervises starts the process anew
EXIT_LOST = 70


def run(settings: SparkSettings) -> int:
    """Run until SIGTERM or SIGINT; returns the exit status."""
    log.configure("spark", settings.log_level)
    logger = log.get(__name__)
    clock = SystemClock()
    with Health("spark", settings.health_port, host=settings.host, wait_for=("session", "catalog", "queries")) as health:
        sessions = SparkSessions.start(settings)
        health.ready("session")
        catalog = CatalogReader(settings.kafka_bootstrap, client_id="spark-driver", children=False).start()
        health.ready("catalog")
        client = redis_link.connect(settings, decode_responses=True, socket_timeout=5)
        publisher = Publisher(settings.kafka_bootstrap, client_id="spark-driver")
        admin = Admin(settings.kafka_bootstrap, client_id="spark-driver")
        controls = Controls(
            catalog, client, publisher, clock, tick_seconds=settings.tick_seconds, grace_seconds=settings.grace_seconds,
            ticking=settings.clock == "system",
        )  # fmt: skip
        supervisor = Supervisor(settings, sessions, catalog, client, admin, Epochs(settings, publisher, clock), health, clock)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: supervisor.stop())
        controls.start()
        try:
            supervisor.run()
        except Exception:
            logger.exception("the jobs cannot go on in this process")
            return EXIT_LOST
        finally:
            controls.stop()
        sessions.context.stop()
        publisher.close()
        catalog.close()
    return 0
