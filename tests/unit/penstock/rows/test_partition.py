"""The partition rule is Java's: known vectors, librdkafka's own function, and one value however
many are asked for at once.
"""

from __future__ import annotations

import aiokafka.partitioner
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import names as table_names
from penstock.rows.partition import beside, hashes, murmur2, partition, partition_of

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
def test_same_as_another_client(name: str, partitions: int) -> None:
    theirs = aiokafka.partitioner.murmur2(name.encode()) & 0x7FFF_FFFF
    assert partition(name, partitions) == theirs % partitions


@given(st.lists(st.text(min_size=1, max_size=20), min_size=49, max_size=120), st.integers(1, 9))
def test_many_at_once_are_as_one_by_one(names: list[str], partitions: int) -> None:
    assert partition_of(pl.Series(names), partitions).to_list() == [
        partition(n, partitions) for n in names
    ]


def test_takes_slices_and_arrow() -> None:
    names = [f"device_{i}" for i in range(200)]
    expected = [partition(n, 4) for n in names]
    assert partition_of(pl.Series(["x", *names])[1:], 4).to_list() == expected
    assert partition_of(pa.array(["x", *names])[1:], 4).to_list() == expected
    assert partition_of(pa.chunked_array([names[:150], names[150:]]), 4).to_list() == expected
    assert partition_of(pl.Series([], dtype=pl.String), 4).to_list() == []


@given(
    st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=40),
    st.sampled_from((1, 2, 3, 4, 6, 8, 12, 24)),
)
def test_names_beside_tables_go_where_those_go(tables: list[str], partitions: int) -> None:
    names = [table_names.automatic_child("out", n) for n in range(len(tables))]
    made = beside(names, hashes(pl.Series(tables)).astype("u8"))
    changed = [
        (table, name)
        for table, name, before in zip(tables, made, names, strict=True)
        if name != before
    ]
    assert [partition(n, partitions) for _, n in changed] == [
        partition(t, partitions) for t, _ in changed
    ]
    assert [n[:32] for n in made] == [n[:32] for n in names] and all(
        set(n[32:]) <= set("0123456789abcdef") for n in made
    )
    assert made == [
        beside([n], hashes(pl.Series([t])).astype("u8"))[0]
        for n, t in zip(names, tables, strict=True)
    ]


def test_nearly_every_name_finds_a_place() -> None:
    tables = [f"device_{i}" for i in range(5000)]
    made = beside(
        [table_names.automatic_child("out", n) for n in range(5000)],
        hashes(pl.Series(tables)).astype("u8"),
    )
    near = {
        n: (partition_of(pl.Series(made), n) == partition_of(pl.Series(tables), n)).mean()
        for n in (48, 24)
    }
    assert near[48] > 0.99 and near[24] > 0.999 and len(set(made)) == 5000
