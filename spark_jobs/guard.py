"""A worker's own look at the lease of the jobs: whoever slept through its end stops before it
publishes again.

Asked on a thread, three times per lease; what the path of rows pays is one comparison. While nobody
stands by to take over, a Redis that does not answer stops nobody.
"""

from __future__ import annotations

import os
import threading

import redis

from penstock import names
from penstock.errors import LeaseLost
from penstock.runtime import log, vital
from penstock.runtime.clock import Clock, SystemClock
from spark_jobs.leadership import LEASE

#: exit status of a worker whose driver has lost the jobs
EXIT_LOST = 75


class Guard:
    """Of the driver whose lease carries *token*; an empty token guards nothing."""

    def __init__(
        self, client: redis.Redis, token: str, ttl: float, clock: Clock | None = None
    ) -> None:
        self._redis = client
        self._token = token
        self._ttl = ttl
        self._clock = clock or SystemClock()
        self._strict = self._lost = False
        self._until = self._clock.monotonic() + ttl
        self._looked = float("inf")
        if token:
            self.look()
            threading.Thread(target=self._follow, name="guard", daemon=True).start()

    def check(self) -> None:
        """Raises LeaseLost when somebody else may run the jobs by now."""
        if self._clock.monotonic() - self._looked > 2 * self._ttl:
            self.look()  # the thread that looks has not run for long: this process slept
        if self._lost or (self._strict and self._clock.monotonic() > self._until):
            raise LeaseLost(LEASE, 0)

    def enforce(self) -> None:
        """End the process when `check` says so: as an exception this would only stop the stream at
        work.
        """
        try:
            self.check()
        except LeaseLost as lost:
            log.get(__name__).critical(
                "another node runs the jobs: this worker ends", error=str(lost)
            )
            os._exit(EXIT_LOST)

    def look(self) -> None:
        """Ask Redis once."""
        asked = self._looked = self._clock.monotonic()
        try:
            with self._redis.pipeline(transaction=True) as pipe:
                pipe.get(names.lease(LEASE))
                pipe.pttl(names.lease(LEASE))
                pipe.exists(names.standby())
                held, left, strict = pipe.execute()
        except redis.RedisError:
            return
        text = held.decode() if isinstance(held, bytes) else held or ""
        self._strict = bool(strict)
        if text.startswith(f"{self._token}|"):
            self._until = asked + max(int(left), 0) / 1000
        elif text:
            self._lost = True

    @vital.run
    def _follow(self) -> None:
        never = threading.Event()
        while not never.wait(self._ttl / 3):
            self.look()
