"""One service as a process: what all of them start, in which order, and how they stop.

What a service does is its own: it gets the catalog, reports its conditions to `health`, and returns
when it is asked to stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from threading import Event
from typing import Any, Self, TypeVar

from penstock import bus
from penstock.catalog.reader import CatalogReader
from penstock.config.settings import Settings
from penstock.coordination import redis_link
from penstock.coordination.log_beat import LogBeat
from penstock.coordination.nodes import Presence
from penstock.coordination.service_logs import LogSender
from penstock.runtime import audit, log
from penstock.runtime.health import Health
from penstock.runtime.newest_entries import NewestEntries
from penstock.runtime.pulse import Pulse
from penstock.service.spans import send_spans
from penstock.service.stop import StopRequest, StopSignals

T = TypeVar("T")


class Service:
    """The common parts of a service, as a context manager in the main thread.

        with Service(settings, waits_for=("catalog", "socket")) as service:
            catalog = service.read_catalog()
            service.announce()
            service.run_async(lambda stop: serve(settings, catalog, service.health, stop))

    Entering configures the log, opens the audit trail, tells Kafka's clients how to log in, takes
    SIGTERM and SIGINT, serves health, and has spans sent where variables name a collector, in this
    order. The catalog and the presence start when the service calls for them. When the block ends,
    all that was started is closed in the reverse order, also if a part could not start. Health
    says that the service is not ready from the moment that it is to stop.
    """

    health: Health

    def __init__(
        self,
        settings: Settings,
        *,
        waits_for: tuple[str, ...],
        make_reader: Callable[..., CatalogReader] = CatalogReader,
        make_presence: Callable[[Settings, Health, NewestEntries], Presence] = Presence,
    ) -> None:
        """
        Args:
            settings: of the service; `settings.service` is its name in logs, health and client ids.
            waits_for: conditions that must be reported before the service is ready.
            make_reader: makes the reader of the catalog.
            make_presence: makes the thread that tells Redis that the service is there, how it is,
                and what it logs.
        """
        self._settings = settings
        self._waits_for = waits_for
        self._make_reader = make_reader
        self._make_presence = make_presence
        self._logged = NewestEntries()
        self._request = StopRequest()
        self._signals = StopSignals(self._request.ask)
        self._parts = ExitStack()

    @property
    def stop(self) -> Event:
        """Set when the service is to stop: for services that work in threads."""
        return self._request.event

    def __enter__(self) -> Self:
        settings = self._settings
        log.configure(settings.service, settings.log_level, self._logged.keep)
        audit.open_trail(
            settings.audit_log, settings.service, settings.audit_log_bytes, settings.audit_log_files
        )
        bus.secure(settings.kafka_options)
        with ExitStack() as parts:
            parts.enter_context(self._signals)
            self.health = parts.enter_context(
                Health(
                    settings.service,
                    settings.health_port,
                    host=settings.host,
                    metrics_key=settings.metrics_secret,
                    wait_for=self._waits_for,
                )
            )
            parts.enter_context(send_spans(settings.service, self.health.registry))
            parts.enter_context(self._request.heard_by(self._end_readiness))
            self._parts = parts.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._request.ask()
        self._parts.close()

    def read_catalog(self, *, children: bool = True, client_id: str = "") -> CatalogReader:
        """Follow the catalog, and return its reader once it has read what is there.

        Args:
            children: keep child tables too, perhaps millions.
            client_id: name in the broker's log; without it `<name of the service>-catalog`.

        Raises:
            BusError: nothing of the catalog can be read.
            SystemExit: the service is asked to stop before the catalog is read.
        """
        reader = self._make_reader(
            self._settings.kafka_bootstrap,
            client_id=client_id or f"{self._settings.service}-catalog",
            children=children,
            registry=self.health.registry,
        )
        self._parts.callback(reader.close)
        with self._signals.ending_process():
            reader.start()
        self.health.ready("catalog")
        return reader

    def announce(self) -> None:
        """Tell Redis from now on that the service runs on this node, and what it logs."""
        presence = self._make_presence(self._settings, self.health, self._logged)
        self._parts.callback(presence.close)
        presence.start()

    def send_log(self) -> None:
        """Tell Redis what the service logs, where it is not announced."""
        client = redis_link.connect(self._settings, socket_timeout=3, socket_connect_timeout=3)
        beat = LogBeat(client, LogSender(self._settings, self._logged))
        self._parts.callback(beat.close)
        beat.start()

    def hear_signals(self) -> None:
        """Take SIGTERM and SIGINT back from a library that handles them itself."""
        self._signals.hear()

    def run_async(
        self,
        serve: Callable[[asyncio.Event], Coroutine[Any, Any, T]],
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    ) -> T:
        """Run *serve* in an event loop, and return what it returns.

        Args:
            serve: gets an event of that loop, which is set when the service is to stop.
            loop_factory: makes the loop; without it, it is asyncio's own.
        """
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(self._in_loop(serve))

    async def _in_loop(self, serve: Callable[[asyncio.Event], Coroutine[Any, Any, T]]) -> T:
        loop = asyncio.get_running_loop()
        self.health.watch("event loop", Pulse(loop).late)
        stop = asyncio.Event()
        with self._request.heard_by(lambda: loop.call_soon_threadsafe(stop.set)):
            return await serve(stop)

    def _end_readiness(self) -> None:
        self.health.ready("stop", False, "the service is stopping")
