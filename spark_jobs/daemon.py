"""Spark's Python worker daemon, with two changes.

The imports of the operator and of its kernels are done before it forks, so workers start warm and
share the pages. And what Spark sends a worker comes through a `Pipe`, which can tell whether there
is something to read.
"""

import gc

import confluent_kafka  # noqa: F401
import fastavro  # noqa: F401
import fsspec.implementations.local  # noqa: F401
import pandas  # noqa: F401
import polars  # noqa: F401
import pyarrow  # noqa: F401
import pyruhvro  # noqa: F401
import redis  # noqa: F401
from pyspark import daemon, worker

import penstock.windows.choose  # noqa: F401
import spark_jobs.operator  # noqa: F401
from spark_jobs.pipe import through_a_pipe

if __name__ == "__main__":
    worker.main = through_a_pipe(worker.main)
    # a collection in a worker would write to every object it inherits, and so unshare their pages
    gc.collect()
    gc.freeze()
    daemon.manager()
