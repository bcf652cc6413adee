"""Where a query begins to read: at the positions that its topic's state files are named by.

Spark would begin where its last epoch did, up to a minute of records before the state, each of
which would have to be skipped. A position that is wrong does no harm: a processor skips what lies
below its own, and reads from the log what lies between.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import fsspec

from penstock.storage.statefile import is_state, position_of
from spark_jobs.operator import state_directory
from spark_jobs.queries import Wanted
from spark_jobs.settings import SparkSettings

#: as Spark writes it: the first record that there is
EARLIEST = -2


def begins(settings: SparkSettings, wanted: Wanted) -> dict[int, int]:
    """Return the first offset to read of each partition of a topic."""
    found = {}
    for partition in range(wanted.partitions):
        directory = state_directory(settings, wanted.topic, wanted.id, partition)
        found[partition] = newest(_names(directory))
    return found


def newest(files: Iterable[str]) -> int:
    """Return the position of the newest of some state files; without any, the beginning. Pure."""
    return max((position_of(name) for name in files if is_state(name)), default=EARLIEST)


def starting_offsets(topic: str, first: dict[int, int]) -> str:
    """Return offsets as Spark wants to be told them. Pure."""
    return json.dumps({topic: {str(p): offset for p, offset in first.items()}})


def _names(directory: str) -> list[str]:
    fs, path = fsspec.core.url_to_fs(directory)
    try:
        # another process has written there
        fs.invalidate_cache(path)
        return [str(p).rpartition("/")[2] for p in fs.ls(path, detail=False)]
    except FileNotFoundError:
        return []
