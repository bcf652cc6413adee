"""Who runs the jobs: one process of all nodes, by a lease in Redis; the others stand by.

Taking over waits until the lease has run out, except from a predecessor of this machine that is
dead, whose Python workers are ended first. The workers look at the lease themselves
(`spark_jobs.guard`), so that those of a node that slept stop before they publish again. While
nobody stands by elsewhere, Redis being away is no reason to stop: nobody could take over. Where
somebody does, a holder that cannot renew stops when its time is over. A standby on the holder's own
machine needs no such promise: it sees whether the holder lives, and ends one that does not renew
its lease. Refused: going on when somebody else has led in between.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import redis

from penstock import names
from penstock.coordination.lease import Lease
from penstock.errors import LeaseLost, RemoteError
from penstock.runtime import log, vital
from penstock.runtime.clock import Clock
from penstock.runtime.mesh_members import members
from spark_jobs.holder import Holding, this_machine

LEASE = "jobs"
#: between two looks at the lease; the end of a holder on this machine is noticed at once
_ASK_SECONDS = 0.3
#: the same when that has just ended
_SOON_SECONDS = 0.05
_log = log.get(__name__)


class Leadership:
    """The part of one process in it; `on_lost` is called when it must stop at once."""

    def __init__(
        self,
        client: redis.Redis,
        clock: Clock,
        *,
        ttl: float,
        node: int,
        data_dir: Path,
        on_lost: Callable[[], None],
    ) -> None:
        self._redis = client
        self._clock = clock
        self._node = node
        self._data_dir = data_dir
        mine = Holding(node, this_machine(), os.getpid(), psutil.Process().create_time())
        self.lease = Lease(client, LEASE, ttl=ttl, address=mine.to_address(), clock=clock)
        self._on_lost = on_lost
        self._epoch = 0
        self._waited_since = 0.0
        #: whom this process has seen holding the lease last
        self._known: Holding | None = None
        self._free_since: float | None = None
        self._strict = False
        self._halt = threading.Event()

    @property
    def token(self) -> str:
        """By which this process's workers know its lease."""
        return self.lease.token

    def wait(self, stop: threading.Event, waiting: Callable[[str], None]) -> bool:
        """Return True once this process holds the lease, False when *stop* came first; *waiting* is
        told for whom it waits.
        """
        shown = ""
        self._waited_since = self._clock.monotonic()
        while not stop.is_set():
            try:
                if self._take():
                    self._epoch = self.lease.epoch
                    threading.Thread(target=self._hold, name="leadership", daemon=True).start()
                    _log.info("leading the jobs", epoch=self._epoch, node=self._node)
                    return True
                why = self._stand_by()
            except (RemoteError, redis.RedisError) as down:
                why = f"Redis does not answer: {down}"
                self._free_since = None
            if why != shown:
                _log.info("standing by", why=why)
                shown = why
            waiting(why)
            self._pause(stop)
        return False

    def _pause(self, stop: threading.Event) -> None:
        """Wait until the next look at the lease."""
        known = self._known
        if known is not None and known.is_dead():
            stop.wait(min(_SOON_SECONDS, _ASK_SECONDS))
        elif known is None or not known.wait(_ASK_SECONDS):
            stop.wait(_ASK_SECONDS)

    def release(self) -> None:
        """Let a standby take over at once."""
        self._halt.set()
        try:
            self.lease.release()
        except RemoteError as down:
            _log.warning(
                "the lease of the jobs could not be given back; it runs out by itself",
                reason=str(down),
            )

    def _take(self) -> bool:
        found = self.lease.holder()
        if found is None:
            if not self._may_take_free():
                return False
        else:
            self._free_since = None
            self._known = Holding.from_address(found.address)
            if not (self._known.is_dead() and self.lease.revoke(found)):
                return False
        if not self.lease.acquire():
            return False
        self._end_workers()
        return True

    def _may_take_free(self) -> bool:
        """Whether a lease that nobody holds may be taken now."""
        now = self._clock.monotonic()
        if self._free_since is None:
            self._free_since = now
        if self._known is not None and self._known.lives_here():
            # after a sleep of the whole machine it renews within a third of the lease
            if now - self._free_since < self.lease.ttl / 2:
                return False
            _log.warning("whoever ran the jobs does not renew the lease", pid=self._known.pid)
            self._known.end()
            return False
        # workers of a node that sleeps have to see first that somebody stands by
        return not (self._others() and now - self._waited_since < self.lease.ttl / 2)

    def _stand_by(self) -> str:
        """Say that this process waits, to those who cannot see it; whom it waits for."""
        known = self._known
        if known is None or not known.lives_here():
            self._redis.set(names.standby(), self._node, px=int(self.lease.ttl * 3000))
        if known is None or self._free_since is not None:
            return ""
        return f"node {known.node} runs the jobs"

    def _others(self) -> bool:
        """Whether another node has run the jobs, and has not said that it stopped."""
        fields = [str(f) for f in self._redis.hkeys(names.nodes())]
        return any(f.endswith(":spark") and f != f"{self._node}:spark" for f in fields)

    def _end_workers(self) -> None:
        """End Python workers that a dead driver of this mesh has left: they would publish beside
        ours.
        """
        left = []
        mine = {process.pid for process in psutil.Process().children(recursive=True)}
        for process in members(self._data_dir):
            try:
                # as an argument of its own: the JVM has it inside of another
                if process.pid not in mine and "spark_jobs.daemon" in process.cmdline():
                    process.kill()
                    left.append(process)
            except psutil.Error:
                continue
        psutil.wait_procs(left, timeout=10)

    @vital.run
    def _hold(self) -> None:
        while not self._halt.wait(self.lease.ttl / 3):
            try:
                self._strict = bool(self._redis.exists(names.standby()))
                self.lease.renew()
            except LeaseLost:
                if not self._halt.is_set() and not self._regain():
                    _log.critical("somebody else leads the jobs now", epoch=self._epoch)
                    self._on_lost()
                    return
            except (RemoteError, redis.RedisError) as down:
                if self._strict and not self.lease.held:
                    _log.critical(
                        "Redis does not answer and somebody stands by: stopping", reason=str(down)
                    )
                    self._on_lost()
                    return

    def _regain(self) -> bool:
        """Whether the lease, which ran out or went with Redis's data, is ours again and was nobody
        else's in between.
        """
        while not self._halt.is_set():
            try:
                mine = self.lease.acquire(seen=self._epoch)
            except RemoteError:
                if self._strict:
                    return False
                self._halt.wait(_ASK_SECONDS)
                continue
            if mine and self.lease.epoch == self._epoch + 1:
                _log.warning(
                    "the lease of the jobs had run out and is held again", epoch=self.lease.epoch
                )
                self._epoch = self.lease.epoch
                return True
            if mine:
                self.lease.release()
            return False
        return True
