"""Password hashes, compared in one thread of low priority behind a short queue.

A hash takes tens of milliseconds of a core, and anybody may ask for one. Requests whose credentials
were accepted before never come here.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from penstock.errors import OverloadError
from penstock.runtime.networks import network_of

#: attempts that may wait, in all and from one address
_WAITING = 32
_PER_ADDRESS = 8
_NICENESS = 10


class HashQueue:
    """Run checks one after another. Any thread."""

    def __init__(self, waiting: int = _WAITING, per_address: int = _PER_ADDRESS) -> None:
        self._waiting = waiting
        self._per_address = per_address
        self._pool = ThreadPoolExecutor(
            1, thread_name_prefix="passwords", initializer=_yield_to_others
        )
        self._by_key: dict[bytes, Future[str]] = {}
        self._by_address: Counter[str] = Counter()
        self._lock = threading.Lock()

    def submit(self, key: bytes, address: str, check: Callable[[], str]) -> Future[str]:
        """Return the outcome of *check*; of the one that waits already under the same *key*, if
        any.

        Raises:
            OverloadError: the queue is full.
        """
        where = network_of(address)
        with self._lock:
            waiting = self._by_key.get(key)
            if waiting is not None:
                return waiting
            if len(self._by_key) >= self._waiting or self._by_address[where] >= self._per_address:
                raise OverloadError(
                    "too many logins wait to be checked", hint="try again in a second"
                )
            future = self._pool.submit(check)
            self._by_key[key] = future
            self._by_address[where] += 1
        future.add_done_callback(lambda _: self._done(key, where))
        return future

    def _done(self, key: bytes, where: str) -> None:
        with self._lock:
            del self._by_key[key]
            self._by_address[where] -= 1
            if not self._by_address[where]:
                del self._by_address[where]


def _yield_to_others() -> None:
    """Lower the priority of this thread; elsewhere than on Linux that would be the process's."""
    if sys.platform.startswith("linux"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
