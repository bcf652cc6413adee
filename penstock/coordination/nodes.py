"""The nodes of a mesh as Redis knows them: every service says now and then that it is there, and on
which node.

A node (DNODE) is a number that whoever starts a service gives it. Refused: deciding what an absence
means; leases do that.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from dataclasses import dataclass

import redis

from penstock import names
from penstock.config.settings import Settings
from penstock.coordination import redis_link
from penstock.runtime import log, vital

_EVERY_SECONDS = 2.0
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


class Presence(threading.Thread):
    """Tells Redis that a service is there, until `close`; Redis away is no trouble."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(name="presence", daemon=True)
        self._field = f"{settings.node}:{settings.service}"
        self._since = time.time()
        self._client = redis_link.connect(settings, socket_timeout=3, socket_connect_timeout=3)
        self._halt = threading.Event()

    @vital.run
    def run(self) -> None:
        told = True
        while True:
            try:
                about = {"host": socket.gethostname(), "started": self._since, "seen": time.time()}
                self._client.hset(names.nodes(), self._field, json.dumps(about))
                told = True
            except redis.RedisError as down:
                if told:
                    _log.info("cannot tell Redis that this service is there", reason=str(down))
                told = False
            if self._halt.wait(_EVERY_SECONDS):
                return

    def close(self) -> None:
        """Stop, and say so: the service is offline at once."""
        self._halt.set()
        if self.is_alive():  # a service that could not start has not started this either
            self.join(5)
        try:
            self._client.hdel(names.nodes(), self._field)
        except redis.RedisError as down:
            _log.info("cannot tell Redis that this service is gone", reason=str(down))


def read(client: redis.Redis, now: float) -> list[Node]:
    """Nodes heard of in the last week, by number; *now*: epoch seconds.

    Raises:
        redis.RedisError: it does not answer.
    """
    found: dict[int, list[tuple[str, dict[str, float | str]]]] = {}
    for field, value in client.hgetall(names.nodes()).items():
        node, _, service = (field.decode() if isinstance(field, bytes) else str(field)).partition(
            ":"
        )
        about = json.loads(value)
        if node.isdigit() and now - float(about["seen"]) < _FORGOTTEN_SECONDS:
            found.setdefault(int(node), []).append((service, about))
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
