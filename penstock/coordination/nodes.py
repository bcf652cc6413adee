"""The nodes of a mesh as Redis knows them: every service says now and then that it is there, and on
which node.

A node (DNODE) is a number that whoever starts a service gives it. Refused: deciding what an absence
means; leases do that.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from typing import Any

import psutil
import redis

from penstock import names
from penstock.config.settings import Settings
from penstock.coordination import redis_link
from penstock.coordination.service_logs import LogSender
from penstock.installed import version
from penstock.runtime import log, vital
from penstock.runtime.health import Health
from penstock.runtime.newest_entries import NewestEntries

EVERY_SECONDS = 2.0
#: a service that was not heard of for this long is offline, one for a week is forgotten
OFFLINE_SECONDS = 15.0
_FORGOTTEN_SECONDS = 7 * 86_400.0
_log = log.get(__name__)


@dataclass(frozen=True)
class Node:
    """`services` are those online; times are epoch seconds."""

    id: int
    host: str
    services: tuple[str, ...]
    started: float
    seen: float
    online: bool


@dataclass(frozen=True)
class ServiceReport:
    """What a service last said of itself; times are epoch seconds."""

    name: str
    node: int
    host: str
    started: float
    seen: float
    #: it was heard of lately
    online: bool
    #: what it waits for, and why; empty when it is ready
    waiting: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    #: bytes that its process has in memory; None: an earlier version, which does not say
    memory: int | None = None
    #: how often it was started again; None: nobody counts
    restarts: int | None = None


class Presence(threading.Thread):
    """Tells Redis that a service is there, how it is and what it logs, until `close`; Redis away is
    no trouble.
    """

    def __init__(self, settings: Settings, health: Health, logged: NewestEntries) -> None:
        super().__init__(name="presence", daemon=True)
        self._field = f"{settings.node}:{settings.service}"
        self._since = time.time()
        self._restarts = settings.restarts
        self._health = health
        self._log_sender = LogSender(settings, logged)
        self._version = _own_version()
        self._process = psutil.Process(os.getpid())
        self._client = redis_link.connect(settings, socket_timeout=3, socket_connect_timeout=3)
        self._halt = threading.Event()

    @vital.run
    def run(self) -> None:
        told = True
        while True:
            try:
                with self._client.pipeline(transaction=False) as beat:
                    beat.hset(names.nodes(), self._field, json.dumps(self._about()))
                    self._log_sender.send(beat)
                told = True
            except redis.RedisError as down:
                if told:
                    _log.info("cannot tell Redis that this service is there", reason=str(down))
                told = False
            if self._halt.wait(EVERY_SECONDS):
                return

    def _about(self) -> dict[str, Any]:
        conditions = self._health.conditions()
        return {
            "host": socket.gethostname(),
            "started": self._since,
            "seen": time.time(),
            "waiting": {name: c.why for name, c in conditions.items() if not c.ready},
            "version": self._version,
            "memory": self._process.memory_info().rss,
            "restarts": self._restarts,
        }

    def close(self) -> None:
        """Stop, and say so: the service is offline at once."""
        self._halt.set()
        if self.is_alive():  # a service that could not start has not started this either
            self.join(5)
        try:
            with self._client.pipeline(transaction=False) as farewell:
                farewell.hdel(names.nodes(), self._field)
                self._log_sender.send(farewell)
        except redis.RedisError as down:
            _log.info("cannot tell Redis that this service is gone", reason=str(down))


def _own_version() -> str:
    """Return the version of this installation; empty for sources that are not installed."""
    try:
        return version()
    except PackageNotFoundError:
        return ""


def read(client: redis.Redis, now: float) -> list[Node]:
    """Nodes heard of in the last week, by number; *now*: epoch seconds.

    Raises:
        redis.RedisError: it does not answer.
    """
    found: dict[int, list[tuple[str, dict[str, Any]]]] = {}
    for node, service, about in _heard(client, now):
        found.setdefault(node, []).append((service, about))
    nodes = []
    for number, services in sorted(found.items()):
        online = sorted(
            service for service, about in services if now - float(about["seen"]) < OFFLINE_SECONDS
        )
        newest = max((about for _, about in services), key=lambda a: float(a["seen"]))
        started = min(float(about["started"]) for _, about in services)
        nodes.append(
            Node(
                number,
                str(newest["host"]),
                tuple(online),
                started,
                float(newest["seen"]),
                bool(online),
            )
        )
    return nodes


def services(client: redis.Redis, now: float) -> list[ServiceReport]:
    """Services heard of in the last week, by name and node; *now*: epoch seconds.

    Raises:
        redis.RedisError: it does not answer.
    """
    found = [
        ServiceReport(
            service,
            node,
            str(about["host"]),
            float(about["started"]),
            float(about["seen"]),
            now - float(about["seen"]) < OFFLINE_SECONDS,
            about.get("waiting", {}),
            about.get("version", ""),
            about.get("memory"),
            about.get("restarts"),
        )
        for node, service, about in _heard(client, now)
    ]
    return sorted(found, key=lambda report: (report.name, report.node))


def _heard(client: redis.Redis, now: float) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield node, service and what it said, of each that was heard of in the last week."""
    for key, value in client.hgetall(names.nodes()).items():
        node, _, service = (key.decode() if isinstance(key, bytes) else str(key)).partition(":")
        about = json.loads(value)
        if node.isdigit() and now - float(about["seen"]) < _FORGOTTEN_SECONDS:
            yield int(node), service, about
