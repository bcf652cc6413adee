"""Deferred records come back whole and in order."""

from __future__ import annotations

import numpy as np

from penstock.codec import schema_ids
from spark_jobs.input import Records
from spark_jobs.processor.deferred import Deferred


def _records(first: int, *values: bytes | None) -> Records:
    offsets = np.arange(first, first + len(values))
    return Records("in.db", 0, offsets, offsets * 10, list(values), schema_ids(list(values)))


def test_records_are_counted_and_weighed_until_they_are_taken():
    deferred = Deferred()
    deferred.add(_records(5, b"abc", None))
    deferred.add(_records(7, b"de"))
    assert (deferred.count, deferred.size) == (3, 5)
    taken = deferred.take()
    assert taken.values == [b"abc", None, b"de"]
    assert taken.offsets.tolist() == [5, 6, 7]
    assert taken.timestamps.tolist() == [50, 60, 70]
    assert (deferred.count, deferred.size) == (0, 0)


def test_what_was_taken_does_not_come_again():
    deferred = Deferred()
    deferred.add(_records(5, b"abc"))
    deferred.take()
    deferred.add(_records(6, b"d"))
    assert deferred.take().values == [b"d"]
