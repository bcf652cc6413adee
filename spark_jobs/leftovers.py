"""Removes state and checkpoints of topics that are gone."""

from __future__ import annotations

from collections.abc import Iterator

import fsspec

from penstock import names
from penstock.catalog.reader import CatalogReader
from penstock.runtime import log
from spark_jobs.queries import Wanted, topics_to_read
from spark_jobs.settings import SparkSettings

_log = log.get(__name__)


class Leftovers:
    """Directories below those of state and checkpoints."""

    def __init__(self, settings: SparkSettings, catalog: CatalogReader) -> None:
        self._settings = settings
        self._catalog = catalog
        #: there may be something to remove
        self.due = False

    def remove_checkpoint(self, wanted: Wanted) -> None:
        """Remove the checkpoint of a topic's query."""
        self._remove(self._settings.checkpoint(wanted.topic, wanted.id))

    def remove_topic(self, wanted: Wanted) -> None:
        """Remove what is kept of a topic, unless the next generation of it takes that over."""
        if any(w.id == wanted.id for w in topics_to_read(self._catalog.catalog).values()):
            return
        for directory in (self._settings.checkpoint_dir, self._settings.state_dir):
            self._remove(f"{directory}/{wanted.id}")

    def remove_all(self) -> None:
        """Remove state of topics that were dropped while this process was not there, or whose
        removal was disturbed, and of topics of earlier generations that are gone.
        """
        self.due = False
        known = {str(w.id) for w in topics_to_read(self._catalog.catalog).values()}
        for directory in (self._settings.checkpoint_dir, self._settings.state_dir):
            fs, path = fsspec.core.url_to_fs(directory)
            for child in fs.ls(path, detail=False) if fs.exists(path) else ():
                name = str(child).rstrip("/").rpartition("/")[2]
                if name.isdigit() and name not in known:
                    fs.rm(str(child), recursive=True)
        for directory in self._former_directories():
            self._remove(directory)

    def _former_directories(self) -> Iterator[str]:
        """Yield the directories of topics of earlier generations that are gone."""
        for database in self._catalog.catalog.databases():
            for topic, partitions in database.lineage[: database.removed]:
                yield self._settings.checkpoint(topic, database.id)
                for p in range(partitions):
                    yield names.state_directory(
                        self._settings.state_dir, str(database.id), topic, p
                    )

    def _remove(self, directory: str) -> None:
        """Remove a directory of a topic that is gone. A worker of its stopped query may be writing
        its last file there just now: what that leaves goes with `remove_all`.
        """
        fs, path = fsspec.core.url_to_fs(directory)
        try:
            if fs.exists(path):
                fs.rm(path, recursive=True)
        except OSError as error:
            _log.info(
                "state of a dropped topic is still being written, removed later",
                path=path,
                reason=str(error),
            )
            self.due = True
