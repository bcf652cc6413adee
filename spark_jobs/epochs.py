"""Manifests: after each epoch of a query, what is committed, on `penstock.epochs`. Only the driver
knows; workers do not.
"""

from __future__ import annotations

import json

import fsspec
from pyspark.sql.streaming.query import StreamingQuery

from penstock import names
from penstock.bus import Publisher
from penstock.records import Manifest, encode
from penstock.runtime.clock import Clock, milliseconds
from spark_jobs.operator import state_directory
from spark_jobs.queries import Wanted
from spark_jobs.settings import SparkSettings


class Epochs:
    """Notices finished epochs by their progress reports."""

    def __init__(self, settings: SparkSettings, publisher: Publisher, clock: Clock) -> None:
        self._settings = settings
        self._publisher = publisher
        self._clock = clock
        self._reported: dict[str, int] = {}

    def report(self, wanted: Wanted, query: StreamingQuery) -> bool:
        """Publish a manifest for the query's newest epoch unless it is known already; whether there
        was one.
        """
        progress = query.lastProgress
        if progress is None:
            return False
        batch = int(progress["batchId"])
        key = f"{wanted.topic}/{query.runId}"
        if self._reported.get(key, -1) >= batch:
            return False
        self._reported[key] = batch
        offsets = {
            f"{topic}:{partition}": int(offset)
            for source in progress["sources"]
            for topic, partitions in json.loads(source["endOffset"] or "{}").items()
            for partition, offset in partitions.items()
        }
        manifest = Manifest(
            query=wanted.topic,
            batch=batch,
            time=milliseconds(self._clock),
            checkpoint=self._settings.checkpoint(wanted.topic, wanted.id),
            offsets=offsets,
            files=tuple(self._files(wanted)),
        )
        self._publisher.send(names.EPOCHS, encode(manifest), key=wanted.topic.encode(), partition=0)
        return True

    def _files(self, wanted: Wanted) -> list[str]:
        """State files there are now: the newest of each partition covers the offsets and more."""
        found: list[str] = []
        for partition in range(wanted.partitions):
            fs, path = fsspec.core.url_to_fs(
                state_directory(self._settings, wanted.topic, wanted.id, partition)
            )
            if fs.exists(path):
                listed = (str(p) for p in fs.ls(path, detail=False))
                found += sorted(p for p in listed if p.endswith((".full", ".delta")))
        return found
