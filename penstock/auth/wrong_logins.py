"""Wrong passwords and tokens, counted per address and per name."""

from __future__ import annotations

import threading
from collections import OrderedDict

from penstock.errors import OverloadError
from penstock.runtime.clock import Clock
from penstock.runtime.networks import network_of

#: wrong attempts a minute as one user from one address, and from one address as anybody
PER_NAME = 20
PER_ADDRESS = 60
#: counters kept; the one that was used longest ago is dropped first
_COUNTERS = 4096
_NAME_CHARACTERS = 64
_MINUTE_NS = 60_000_000_000


class WrongLogins:
    """Count wrong attempts in whole minutes of *clock*. Any thread."""

    def __init__(
        self, clock: Clock, per_name: int = PER_NAME, per_address: int = PER_ADDRESS
    ) -> None:
        self._clock = clock
        self._limits = {True: per_name, False: per_address}
        self._counts: dict[bool, OrderedDict[tuple[str, ...], tuple[int, int]]] = {
            True: OrderedDict(),
            False: OrderedDict(),
        }
        self._lock = threading.Lock()

    def require(self, address: str, name: str) -> None:
        """Check that another attempt may be made.

        Raises:
            OverloadError: there were too many wrong ones in this minute.
        """
        now = self._clock.now() // _MINUTE_NS
        for named, key in _keys(address, name):
            minute, count = self._counts[named].get(key, (now, 0))
            if minute == now and count >= self._limits[named]:
                raise OverloadError(
                    "too many wrong logins from this address", hint="try again in a minute"
                )

    def note(self, address: str, name: str) -> None:
        """Count one wrong attempt."""
        now = self._clock.now() // _MINUTE_NS
        with self._lock:
            for named, key in _keys(address, name):
                counts = self._counts[named]
                minute, count = counts.pop(key, (now, 0))
                counts[key] = (now, count + 1 if minute == now else 1)
                while len(counts) > _COUNTERS:
                    counts.popitem(last=False)


def _keys(address: str, name: str) -> tuple[tuple[bool, tuple[str, ...]], ...]:
    """Return the counters of an attempt: (whether it is the name's, its key).

    Tokens ("" for a name) have a counter of their own: a program with an expired one locks out no
    passwords.
    """
    where = network_of(address)
    of_name = (True, (where, name.casefold()[:_NAME_CHARACTERS]))
    return (of_name, (False, (where,))) if name else (of_name,)
