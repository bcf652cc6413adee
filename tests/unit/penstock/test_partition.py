"""The partition rule is Java's: known vectors, librdkafka's own function, and one value however many are asked for at once."""

from __future__ import annotations

import confluent_kafka
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.partition import murmur2, partition, partition_of

#: from Kafka's own UtilsTest
VECTORS = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}


@pytest.mark.parametrize(("text", "expected"), VECTORS.items())
def test_vectors(text: str, expected: int) -> None:
    assert murmur2(text.encode()) == expected & 0xFFFF_FFFF


@given(st.text(min_size=1, max_size=60), st.integers(1, 64))
def test_same_as_librdkafka(name: str, partitions: int) -> None:
    assert partition(name, partitions) == confluent_kafka.murmur2(name.encode(), partitions)


@given(st.lists(st.text(min_size=1, max_size=20), min_size=49, max_size=120), st.integers(1, 9))
def test_many_at_once_are_as_one_by_one(names: list[str], partitions: int) -> None:
    assert partition_of(pl.Series(names), partitions).to_list() == [partition(n, partitions) for n in names]


def test_takes_slices_and_arrow() -> None:
    names = [f"device_{i}" for i in range(200)]
    expected = [partition(n, 4) for n in names]
    assert partition_of(pl.Series(["x", *names])[1:], 4).to_list() == expected
    assert partition_of(pa.array(["x", *names])[1:], 4).to_list() == expected
    assert partition_of(pa.chunked_array([names[:150], names[150:]]), 4).to_list() == expected
    assert partition_of(pl.Series([], dtype=pl.String), 4).to_list() == []
