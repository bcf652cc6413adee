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
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import tenacity

from gateway import named_nulls
from gateway.layout import RowLayout
from penstock.catalog.model import External
from penstock.client.nodes import patience_is_over
from penstock.errors import PenstockError
from penstock.link import external
from penstock.link.address import Address
from penstock.link.pool import Links
from penstock.outbound.reach import Outbound
from penstock.rows.partition import partition_of

#: errors after which the same rows are sent again
_AGAIN = frozenset(
    {"E_LINK_LOST", "E_TIMEOUT", "E_BUS", "E_FENCED", "E_OVERLOAD", "E_NO_QUORUM", "E_NOT_LEADER"}
)
_PATIENCE_S = 60.0
_CONNECT_S = 5.0
#: ticks that no row lies ahead of
_NO_LIMIT = 1 << 62
_PAUSE_S = 0.2


@dataclass
class _Producer:
    """Who sends, as the other side knows it; its INSERTs count up."""

    id: str = field(default_factory=lambda: f"i-{secrets.token_hex(8)}")
    inserts: int = 0


class RemoteProducers:
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


class RemoteInsert:
    """Writes rows into external streams. `write` blocks: call it from a worker thread."""

    def __init__(self, data_dir: Path, outbound: Outbound) -> None:
        """*outbound*: where external streams may be."""
        self._data_dir = data_dir
        self._outbound = outbound
        self._links = Links(timeout=_CONNECT_S)
        self._producers = RemoteProducers(self._links)

    def close(self) -> None:
        self._links.close()

    @staticmethod
    def layout(entry: External) -> RowLayout:
        """Return what rows of an external stream look like to INSERT."""
        columns = tuple(c for c in external.description_of(entry).given if c not in entry.tags)
        key = None if entry.numbered else entry.key_column
        return RowLayout(
            entry.id,
            0,
            entry.database,
            entry.name,
            "",
            1,
            columns,
            entry.tags,
            entry.precision,
            _NO_LIMIT,
            not entry.tags,
            key,
        )

    def write(self, entry: External, frame: pl.DataFrame) -> int:
        """Append rows over there; rows of one child table (or time) always go to the same shard.
        Raises PenstockError.
        """
        shards = external.addresses(
            entry, self._data_dir, self._outbound.reach(entry.maker, link=True)
        )
        by = frame["tbname"] if entry.tags else frame[entry.time_column].cast(pl.String)
        numbers = partition_of(by, len(shards))
        written = 0
        for number, replicas in enumerate(shards):
            part = frame.filter(numbers == number)
            if part.height:
                values = [c for c in entry.columns[1:] if c.name != entry.key_column]
                versions, _ = named_nulls.spell_out(part, values, [part.height])
                sent = self._producers.write(replicas, entry, _arrow(versions, entry))
                written += min(sent, part.height)
        return written


def _arrow(frame: pl.DataFrame, entry: External) -> pa.Table:
    """Return ticks as timestamps, in the types of the other side's columns."""
    arrays: dict[str, pa.Array] = {}
    if entry.tags:
        names = frame["tbname"].to_arrow(compat_level=pl.CompatLevel.oldest())
        arrays["tbname"] = names.cast(pa.string())
    if "_op" in frame.columns:
        arrays["_op"] = frame["_op"].to_arrow()
    for column in (*entry.columns, *entry.tags):
        if column.name in frame.columns:
            array = frame[column.name].to_arrow(compat_level=pl.CompatLevel.oldest())
            arrays[column.name] = array.cast(column.type.arrow(entry.precision))
    return pa.table(arrays)
