"""Spark's Python worker daemon, with five changes.

The imports of the operator and of its kernels are done before it forks, so workers start warm and
share the pages. pandas is none of them: what crosses is Arrow, and functions of users run in
processes of their own. What Spark sends a worker comes through a `Pipe`, which can tell whether
there is something to read. A worker does not read again what is in the archives that Spark's own
modules come from. And it inherits the definitions that the driver has read (`entry_file.py`).
"""

import gc
import os
import zipimport

if __name__ == "__main__":
    # before whatever loads it
    import penstock.runtime.lean_imports  # noqa: F401

import confluent_kafka  # noqa: F401
import fastavro  # noqa: F401
import fsspec.implementations.local  # noqa: F401
import polars  # noqa: F401
import pyarrow  # noqa: F401
import pyruhvro  # noqa: F401
import redis  # noqa: F401
from pyspark import daemon, worker

import penstock.windows.choose  # noqa: F401
import spark_jobs.operator  # noqa: F401
from penstock.config.environment import entry_file
from spark_jobs.entry_file import BUILT, EntryFileReader
from spark_jobs.pipe import through_a_pipe


def keep_lists_of_archives() -> None:
    """Have nobody read the lists of archives again. Each worker that sets up Spark's files has all
    importers forget what they know, and there is one for each package of Spark's: 65 ms for
    archives that do not change while Spark runs.
    """
    setattr(zipimport.zipimporter, "invalidate_caches", lambda _: None)  # noqa: B010


def build_before_forks() -> None:
    """Have each worker inherit the definitions that the driver has read until it is forked."""
    if path := entry_file():
        os.register_at_fork(before=EntryFileReader(path, BUILT).catch_up)


if __name__ == "__main__":
    keep_lists_of_archives()
    worker.main = through_a_pipe(worker.main)
    # a collection in a worker would write to every object it inherits, and so unshare their pages
    gc.collect()
    gc.freeze()
    build_before_forks()
    daemon.manager()
