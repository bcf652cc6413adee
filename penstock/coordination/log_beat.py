"""Sends what a process has logged where no presence does: a worker of the stream jobs is part of
its driver's, and nodes of stream tables have a registry of their own.
"""

from __future__ import annotations

import contextlib
import threading

import redis

from penstock.coordination.nodes import EVERY_SECONDS
from penstock.coordination.service_logs import LogSender


class LogBeat(threading.Thread):
    """Sends until `close`. Redis away is no trouble: the next beat sends it again."""

    def __init__(self, client: redis.Redis, sender: LogSender) -> None:
        super().__init__(name="log beat", daemon=True)
        self._redis = client
        self._sender = sender
        self._halt = threading.Event()

    def run(self) -> None:
        while not self._halt.wait(EVERY_SECONDS):
            self._send()

    def close(self) -> None:
        """Stop, and send what is left."""
        self._halt.set()
        if self.is_alive():
            self.join(5)
        self._send()

    def _send(self) -> None:
        with contextlib.suppress(redis.RedisError), self._redis.pipeline(False) as pipe:
            self._sender.send(pipe)
