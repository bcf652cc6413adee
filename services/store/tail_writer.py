"""Takes batches of the log into the tails of their partitions, whole and in order."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import polars as pl

from penstock import names
from penstock.bus import Batch
from penstock.catalog.reader import CatalogReader
from penstock.codec import schema_ids
from penstock.storage.segments import RangeDelete
from services.store.controls import ControlHandler
from services.store.latest import LatestRows
from services.store.partitions import Partitions
from services.store.record_decoder import RecordDecoder
from services.store.redis_reports import RedisReports, Report


class TailWriter:
    """Used by the thread that reads the log."""

    def __init__(
        self,
        catalog: CatalogReader,
        partitions: Partitions,
        decoder: RecordDecoder,
        controls: ControlHandler,
        latest: LatestRows,
        reports: RedisReports,
        on_read: Callable[[int, float], None],
    ) -> None:
        """
        Args:
            on_read: told the number of rows of a batch, and when its last record was appended
                (epoch milliseconds).
        """
        self._catalog = catalog
        self._partitions = partitions
        self._decoder = decoder
        self._controls = controls
        self._latest = latest
        self._reports = reports
        self._on_read = on_read

    def take(self, batch: Batch) -> None:
        """Append one partition's records to its tail."""
        tail = self._partitions.open(batch.topic, batch.partition)
        ids = schema_ids(batch.values)
        self._catalog.know(np.unique(ids).tolist())
        frames: dict[int, list[pl.DataFrame]] = {}
        deletes: list[RangeDelete] = []
        reports: list[Report] = []
        controls = np.flatnonzero(ids == names.CONTROL_SCHEMA_ID).tolist()
        for low, high in pairwise([-1, *controls, len(ids)]):
            for table, rows in self._decoder.stretch(batch, tail, ids, low + 1, high):
                frames.setdefault(table.id, []).append(rows)
                self._latest.note(table, rows)
            if high < len(ids):
                reports += self._controls.apply(batch, high, tail, deletes)
        joined = {
            table: pl.concat(parts, how="diagonal_relaxed") for table, parts in frames.items()
        }
        tail.append(batch.next_offset, joined, deletes, time.monotonic())
        self._reports.add(reports)
        self._on_read(sum(f.height for f in joined.values()), float(batch.timestamps[-1]))
