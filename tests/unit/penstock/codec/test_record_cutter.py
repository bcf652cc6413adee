"""Cutting rows into records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.codec.record_cutter import ID, MAGIC, META, Head, cut_into_records
from penstock.errors import SchemaError
from penstock.rows.versions import CLEAR
from tests.nightly import drawn

HEAD = Head(100, "p", 5, 9, "trace", 2)
FIXED = 10


def rows(texts: list[str], ops: list[int] | None = None) -> pa.StructArray:
    return pa.StructArray.from_arrays(
        [pa.array(texts, pa.string()), pa.array(ops or [0] * len(texts), pa.int64())],
        ["s", "op"],
    )


def cut(
    texts: list[str],
    *,
    ends: list[int] | None = None,
    heads: list[Head] | None = None,
    writes: list[int] | None = None,
    room: int = 1 << 20,
    ops: list[int] | None = None,
) -> tuple[list[dict[str, Any]], list[int]]:
    """Records, and the stretch of each; *room* is what rows have in a record."""
    given_rows = rows(texts, ops)
    bounds = np.array(ends or [0, len(texts)], dtype=np.int64)
    about = heads or [HEAD] * (len(bounds) - 1)
    size = max(h.size for h in about)
    batch, owner = cut_into_records(
        given_rows, FIXED, [given_rows.field("s")], bounds, about, writes, room + size
    )
    assert batch.schema.names == [MAGIC, ID, "rows", "writes", *META]
    return batch.to_pylist(), owner


def texts_of(records: list[dict[str, Any]]) -> list[list[str]]:
    return [[row["s"] for row in record["rows"]] for record in records]


def test_what_fits_is_one_record_with_its_head() -> None:
    (record,), owner = cut(["a", "b"])
    assert owner == [0]
    assert [row["s"] for row in record["rows"]] == ["a", "b"]
    about = {name: record[name] for name in META}
    assert about == {
        "producer": "p",
        "from_offset": 5,
        "offset": 9,
        "ordinal": 2,
        "last": True,
        "trace": "trace",
    }
    assert record["writes"] == [] and record[MAGIC] is False


def test_the_schema_id_is_the_four_bytes_of_a_float() -> None:
    (record,), _ = cut(["a"], heads=[Head(0x01020304, None, 0, 0, None)])
    assert np.float32(record[ID]).tobytes() == bytes([1, 2, 3, 4])


def test_rows_are_cut_where_a_record_is_full() -> None:
    records, owner = cut(["aaaaa"] * 5, room=2 * (FIXED + 5))
    assert texts_of(records) == [["aaaaa"] * 2, ["aaaaa"] * 2, ["aaaaa"]]
    assert [r["ordinal"] for r in records] == [2, 3, 4]
    assert [r["last"] for r in records] == [False, False, True]
    assert owner == [0, 0, 0]


def test_each_stretch_has_records_of_its_own() -> None:
    heads = [Head(1, "a", 0, 1, None), Head(1, "b", 0, 2, None), Head(1, "c", 0, 3, None)]
    records, owner = cut(["x", "y", "z"], ends=[0, 2, 2, 3], heads=heads)
    assert owner == [0, 2]
    assert texts_of(records) == [["x", "y"], ["z"]]
    assert [(r["producer"], r["offset"], r["ordinal"]) for r in records] == [
        ("a", 1, 0),
        ("c", 3, 0),
    ]


def test_a_record_ends_with_a_write_where_that_can_be() -> None:
    room = 4 * (FIXED + 1)
    records, _ = cut(list("abcdef"), writes=[3, 3], room=room)
    assert texts_of(records) == [["a", "b", "c"], ["d", "e", "f"]]
    assert [r["writes"] for r in records] == [[3], [3]]


def test_a_write_that_is_larger_than_a_record_counts_in_each_part() -> None:
    records, _ = cut(list("abcdef"), writes=[1, 5], room=3 * (FIXED + 1))
    assert texts_of(records) == [["a"], ["b", "c", "d"], ["e", "f"]]
    assert [r["writes"] for r in records] == [[1], [3], [2]]


def test_a_clear_stays_with_the_row_behind_it() -> None:
    room = 2 * (FIXED + 1)
    records, _ = cut(list("abcd"), ops=[0, CLEAR, 0, 0], room=room)
    assert texts_of(records) == [["a"], ["b", "c"], ["d"]]


@pytest.mark.parametrize("ops", [None, [CLEAR, 0]])
def test_a_row_that_is_larger_than_a_record_is_refused(ops: list[int] | None) -> None:
    with pytest.raises(SchemaError) as caught:
        cut(["a" * 90, "b" * 90], room=100 - 1, ops=ops)
    assert caught.value.code == "E_ROW_TOO_LARGE"


@pytest.mark.parametrize("writes", [[], [1], [1, 2]])
def test_writes_must_add_up(writes: list[int]) -> None:
    with pytest.raises(SchemaError, match="add up"):
        cut(["a", "b"], writes=writes)


@settings(max_examples=drawn(100), deadline=None)
@given(
    some.lists(some.text("aé", max_size=8), min_size=1, max_size=30),
    some.lists(some.integers(1, 6), min_size=1, max_size=30),
    some.integers(FIXED + 16, 80),
)
def test_rows_stay_in_order_within_the_limit_and_are_cut_the_same_way_again(
    texts: list[str], sizes: list[int], room: int
) -> None:
    writes: list[int] = []
    for size in sizes:
        left = len(texts) - sum(writes)
        if left:
            writes.append(min(size, left))
    if (left := len(texts) - sum(writes)) > 0:
        writes.append(left)
    records, _ = cut(texts, writes=writes, room=room)
    assert [t for record in texts_of(records) for t in record] == texts
    for record in texts_of(records):
        assert sum(FIXED + len(t.encode()) for t in record) <= room or len(records) == 1
    assert [sum(r["writes"]) for r in records] == [len(r["rows"]) for r in records]
    assert cut(texts, writes=writes, room=room)[0] == records


def test_the_size_of_a_head_grows_with_its_texts() -> None:
    plain = Head(1, None, 0, 0, None)
    assert Head(1, "é", 0, 0, "ab").size == plain.size + 4
