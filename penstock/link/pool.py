"""Links to whichever replica can be reached, kept open between questions."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pyarrow as pa

from penstock.link.address import Address, LinkLost
from penstock.link.client import Link


def connect_any(
    replicas: Sequence[Address], *, timeout: float = 10.0, ping_seconds: float = 10.0
) -> Link:
    """Make a link to the first of *replicas* that can be reached; one that answers with an error
    ends the search.

    Raises:
        LinkLost: none can.
    """
    said = []
    for address in replicas:
        try:
            return Link(address, timeout=timeout, ping_seconds=ping_seconds)
        except LinkLost as down:
            said.append(f"{down.message}: {down.detail}")
    raise LinkLost("no replica can be reached", detail="; ".join(said))


class Links:
    """Links kept open between questions, one for each address and group of replicas.
    Thread-safe.
    """

    def __init__(self, *, timeout: float = 10.0, idle_seconds: float = 60.0) -> None:
        self._timeout = timeout
        self._idle = idle_seconds
        self._lock = threading.Lock()
        self._open: dict[tuple[Address, ...], tuple[Link, float]] = {}

    def get(self, replicas: tuple[Address, ...]) -> Link:
        """Return a living link to one of *replicas*. Raises PenstockError."""
        now = time.monotonic()
        with self._lock:
            found = self._open.get(replicas)
            for key, (link, used) in list(self._open.items()):
                if not link.alive or (now - used > self._idle and key != replicas):
                    del self._open[key]
                    threading.Thread(target=link.close, daemon=True).start()
            if found is not None and found[0].alive:
                self._open[replicas] = (found[0], now)
                return found[0]
        link = connect_any(replicas, timeout=self._timeout)
        with self._lock:
            self._open[replicas] = (link, now)
        return link

    def query(
        self, replicas: tuple[Address, ...], sql: str, database: str, timezone: str
    ) -> pa.Table:
        """Return the rows of one SELECT. A link that is lost while they come costs another
        question. Raises PenstockError.
        """
        for _ in replicas:
            link = self.get(replicas)
            try:
                return link.query(sql, database, timezone)
            except LinkLost:
                link.close()
        return self.get(replicas).query(sql, database, timezone)

    def close(self) -> None:
        with self._lock:
            links = [link for link, _ in self._open.values()]
            self._open = {}
        for link in links:
            link.close()
