"""Spark's Python worker daemon with the operator's imports done before it forks: workers start warm and share the pages."""

import gc

import confluent_kafka  # noqa: F401
import fastavro  # noqa: F401
import fsspec.implementations.local  # noqa: F401
import pandas  # noqa: F401
import polars  # noqa: F401
import pyarrow  # noqa: F401
import pyruhvro  # noqa: F401
import redis  # noqa: F401
from pyspark import daemon

import spark_jobs.operator  # noqa: F401

if __name__ == "__main__":
    # a collection in a worker would write to every object it inherits, and so unshare their pages
    gc.collect()
    gc.freeze()
    daemon.manager()
