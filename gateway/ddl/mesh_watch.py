"""What runs in the mesh, as Redis has it, and waiting until it has done its part."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable

import redis

from penstock import names
from penstock.coordination import nodes
from penstock.coordination.redis_link import ask
from penstock.errors import BusError


class MeshWatch:
    """Safe to use from several threads."""

    def __init__(self, client: redis.Redis, *, live_timeout: float, wait_for_jobs: bool) -> None:
        """
        Args:
            live_timeout: seconds to wait for others.
            wait_for_jobs: the stream jobs run; else nothing waits for them.
        """
        self._redis = client
        self._live_timeout = live_timeout
        self.wait_for_jobs = wait_for_jobs

    def nodes(self) -> list[nodes.Node]:
        """Return the nodes of the mesh."""
        return ask(lambda: nodes.read(self._redis, time.time()))

    def runs(self, service: str) -> bool:
        """Tell whether a process of *service* has been heard of lately."""
        return any(service in n.services for n in self.nodes())

    def until_read(self, topic: str) -> None:
        """Return when a query reads *topic* (the stream jobs keep a heartbeat): only then is it of
        use.
        """
        if not self.wait_for_jobs:
            return
        self.until(
            lambda: bool(self._redis.exists(names.query_heartbeat(topic))),
            f"nothing reads topic {topic} yet",
            "is spark_jobs running?",
        )

    def rests(self, topics: Iterable[str]) -> bool:
        """Tell whether one of these topics is at rest: it is read again with its next record."""
        keys = [names.query_heartbeat(topic) for topic in topics]
        beats = ask(lambda: self._redis.mget(keys)) if keys else []
        return any(json.loads(beat)["mode"] == "rest" for beat in beats if beat is not None)

    def forget_pause(self, view_id: int) -> None:
        """Drop what the federation service said of the view: a PAUSE to come waits for an answer of
        its own.
        """
        ask(lambda: self._redis.hset(names.view_status(view_id), "state", "starting"))

    def until_paused(self, view_id: int) -> None:
        """Return when no row of the view comes any more."""
        self.until(
            lambda: self._redis.hget(names.view_status(view_id), "state") == b"paused",
            "rows of the view are still on their way",
            "it is paused once the target has answered; `penstock logs federation` says what it"
            " waits for",
        )

    def until(self, done: Callable[[], bool], message: str, hint: str) -> None:
        """Ask Redis until *done*, less often as time goes by. Raises BusError (`E_NOT_LIVE`)."""
        waited = 0.0
        pause = 0.002
        never = threading.Event()
        while not ask(done):
            if waited > self._live_timeout:
                raise BusError(
                    message,
                    code="E_NOT_LIVE",
                    detail=f"waited {self._live_timeout:g} s",
                    hint=hint,
                    retryable=True,
                )
            never.wait(pause)
            waited += pause
            pause = min(pause * 1.3, 0.1)
