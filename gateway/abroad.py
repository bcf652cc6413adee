"""Rows of an INSERT on their way to a table of another deployment.

A stream table over there recognises rows that come again, so they are sent until their outcome is
known, over however many links and leaders that takes. For other tables an INSERT whose link breaks
has an unknown outcome: what they hold of a producer costs a look into their log.
"""

from __future__ import annotations

import secrets
import threading
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import tenacity

from penstock.catalog.model import External
from penstock.client.nodes import patience_is_over
from penstock.errors import PenstockError
from penstock.link.address import Address
from penstock.link.pool import Links

#: errors after which the same rows are sent again
_AGAIN = frozenset(
    {"E_LINK_LOST", "E_TIMEOUT", "E_BUS", "E_FENCED", "E_OVERLOAD", "E_NO_QUORUM", "E_NOT_LEADER"}
)
_PATIENCE_S = 60.0
_PAUSE_S = 0.2


@dataclass
class _Producer:
    """Who sends, as the other side knows it; its INSERTs count up."""

    id: str = field(default_factory=lambda: f"i-{secrets.token_hex(8)}")
    inserts: int = 0


class Producers:
    """Safe to use from several threads: a producer serves one INSERT at a time."""

    def __init__(self, links: Links, patience: float = _PATIENCE_S) -> None:
        self._links = links
        self._patience = patience
        self._lock = threading.Lock()
        self._idle: defaultdict[tuple[int, tuple[Address, ...]], list[_Producer]] = defaultdict(
            list
        )

    def write(self, replicas: tuple[Address, ...], entry: External, rows: pa.Table) -> int:
        """Append rows of one shard, and wait until they are there. Raises PenstockError."""
        if not entry.numbered:
            return self._links.get(replicas).write(entry.remote_name, entry.remote_database, rows)
        with self._lock:
            idle = self._idle[entry.id, replicas]
            producer = idle.pop() if idle else _Producer()
        producer.inserts += 1
        count = int(rows.num_rows)
        placed = rows.append_column(
            "_offset", pa.array(np.full(count, producer.inserts))
        ).append_column("_row", pa.array(np.arange(count)))
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(
                lambda e: isinstance(e, PenstockError) and e.code in _AGAIN
            ),
            wait=tenacity.wait_fixed(_PAUSE_S),
            stop=tenacity.stop_after_delay(self._patience),
            retry_error_callback=patience_is_over,
        )
        attempts(
            lambda: self._links.get(replicas).write(
                entry.remote_name, entry.remote_database, placed, producer=producer.id
            )
        )
        with self._lock:
            idle.append(producer)
        return count
