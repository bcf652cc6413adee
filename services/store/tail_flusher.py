"""Cuts tails into segments, one at a time and beside the reading, so a slow disk delays nobody's
rows.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from penstock.catalog.reader import CatalogReader
from penstock.runtime.log import get
from penstock.storage.segments import Position
from services.store import flush
from services.store.flush import Newest
from services.store.partitions import Partitions, layout_of
from services.store.settings import StoreSettings
from services.store.tail import Frozen, Tail

log = get(__name__)


@dataclass(frozen=True)
class _Flushing:
    tail: Tail
    done: Future[Position]


class TailFlusher:
    """Called by the thread that reads the log; the work itself is done by `worker`."""

    def __init__(
        self, settings: StoreSettings, catalog: CatalogReader, partitions: Partitions
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._partitions = partitions
        #: the one thread that writes segments; whatever must not meet a flush runs there, too
        self.worker = ThreadPoolExecutor(1, "flush")
        self._flushing: dict[tuple[str, int], _Flushing] = {}

    def step(self) -> None:
        """Begin flushes that are due, and take over those that are done."""
        now = time.monotonic()
        for key, tail in self._partitions.tails().items():
            if key not in self._flushing and self._is_due(tail, now):
                self._begin(key, tail)
        for key in [k for k, f in self._flushing.items() if f.done.done()]:
            self._end(key, self._flushing.pop(key))

    def _is_due(self, tail: Tail, now: float) -> bool:
        oldest = tail.oldest()
        old = bool(oldest) and now - oldest >= self._settings.flush_seconds
        return old or tail.rows >= self._settings.flush_rows

    def cut(self, topic: str, partition: int) -> None:
        """Have a tail cut into segments now."""
        if (topic, partition) not in self._flushing:
            self._begin((topic, partition), self._partitions.open(topic, partition))

    def _begin(self, key: tuple[str, int], tail: Tail) -> None:
        frozen = tail.freeze()
        if frozen is not None:
            self._flushing[key] = _Flushing(
                tail,
                self.worker.submit(
                    self._flush, key, frozen, tail.owner, self._partitions.newest[key]
                ),
            )

    # ---------------------------------------------------------------- the worker

    def _flush(
        self, key: tuple[str, int], frozen: Frozen, owner: int, newest: dict[int, Newest]
    ) -> Position:
        topic, partition = key
        tables = {t.id: t for t in self._catalog.catalog.tables_of_topic(topic)}
        layouts = {i: layout_of(t) for i, t in tables.items()}
        position = flush.flush(
            self._partitions.root,
            topic,
            partition,
            owner,
            frozen,
            layouts,
            newest,
        )
        for table_id in frozen.frames:
            if table_id in layouts:
                flush.merge(
                    self._partitions.root, layouts[table_id], partition, position.next, topic=topic
                )
        return position

    def _end(self, key: tuple[str, int], flushing: _Flushing) -> None:
        error = flushing.done.exception()
        if error is not None:
            why = "flush failed; the rows stay in memory and in kafka, and it is tried again"
            log.error(why, topic=key[0], partition=key[1], error=str(error))
            flushing.tail.unfreeze()
        else:
            flushing.tail.thaw(flushing.done.result())

    def flush_all(self) -> None:
        """Flush what is there, and wait until that is done."""
        for key, tail in self._partitions.tails().items():
            if key not in self._flushing:
                self._begin(key, tail)
        for key, flushing in self._flushing.items():
            self._end(key, flushing)

    def close(self) -> None:
        self.worker.shutdown()
