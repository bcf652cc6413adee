from __future__ import annotations

import contextlib
import io
import random
import struct

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from penstock.errors import SchemaError
from penstock.rows.arrow_reader import Limits, Opened, for_body, read


def stream(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def crafted(array: pa.Array, good: bytes, bad: bytes) -> bytes:
    """A stream of one column in which some bytes of a buffer were replaced."""
    body = stream(pa.table({"x": array}))
    assert body.count(good) == 1 and len(good) == len(bad)
    return body.replace(good, bad)


def refused(data: bytes, limits: Limits | None = None) -> str:
    with pytest.raises(SchemaError) as caught:
        read(data, limits or Limits())
    assert caught.value.code == "E_BODY"
    return caught.value.detail


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_what_is_good_is_read(compression: str | None) -> None:
    table = pa.table(
        {
            "n": pa.array([1, None, 3], pa.int64()),
            "s": ["a", None, "ü"],
            "d": pa.array(["x", "y", "x"]).dictionary_encode(),
            "v": pa.array(["short", "a text of more than twelve bytes", None], pa.string_view()),
            "l": pa.array([[1, 2], None, []], pa.list_(pa.int32())),
            "z": pa.nulls(3),
            "t": pa.array([0, 1, 2], pa.timestamp("ms", "UTC")),
        }
    )
    assert read(stream(table, compression=compression)).equals(table)


def test_offsets_past_their_buffer_are_refused() -> None:
    texts = pa.array(["abcde", "fghijkl"])
    for bad in ((0, 5, 4_000_000), (0, -5, 12), (0, 9_999_999, 12), (-70_000, 5, 12)):
        refused(crafted(texts, struct.pack("<3i", 0, 5, 12), struct.pack("<3i", *bad)))
    large = pa.array([b"abcdefghijk"], pa.large_binary())
    refused(crafted(large, struct.pack("<2q", 0, 11), struct.pack("<2q", 0, 1 << 40)))
    lists = pa.array([[1, 2, 3, 4, 5], [6]], pa.list_(pa.int8()))
    refused(crafted(lists, struct.pack("<3i", 0, 5, 6), struct.pack("<3i", 0, 5, 1 << 30)))


def test_texts_that_are_no_utf8_and_views_that_lead_elsewhere_are_refused() -> None:
    refused(crafted(pa.array(["some text"]), b"some text", b"some\xfftext"))
    view = pa.array(["a text of more than twelve bytes"], pa.string_view())
    good = struct.pack("<i4sii", 32, b"a te", 0, 0)
    for bad in (
        (32, b"a te", 7, 0),
        (32, b"a te", 0, 1 << 20),
        (1 << 30, b"a te", 0, 0),
        (-1, b"a te", 0, 0),
    ):
        refused(crafted(view, good, struct.pack("<i4sii", *bad)))


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
@pytest.mark.parametrize("extension", [False, True])
def test_what_a_null_holds_leads_nowhere(kind: pa.DataType, extension: bool) -> None:
    """Arrow does not look at it, polars follows it."""
    good = pa.array(["a text that is not inline", None, "short", None] * 8, kind)
    validity, views, values = good.buffers()
    odd = np.frombuffer(views, np.int32).reshape(-1, 4).copy()
    odd[1::2] = [1_000_000, 0, 7, 123_456_789]
    array = pa.Array.from_buffers(kind, 32, [validity, pa.py_buffer(odd), values])
    array.validate(full=True)
    if extension:
        array = pa.ExtensionArray.from_storage(pa.opaque(kind, "odd", "test"), array)
    # a slice keeps a part of the buffers
    for start, stop in ((0, 32), (3, 32), (8, 17)):
        table = pa.table({"a": array[start:stop]})
        with pa.ipc.new_stream(sink := io.BytesIO(), table.schema) as writer:
            writer.write_table(table)
        found = pl.from_arrow(read(sink.getvalue()))
        assert isinstance(found, pl.DataFrame)
        # this is where the process ended
        assert found["a"].to_arrow().to_pylist() == good.to_pylist()[start:stop]


@pytest.mark.parametrize("words", [["a", "b" * 40], [1.5, 2.5], []])
def test_an_index_under_a_null_leads_nowhere(words: list[object]) -> None:
    indices = np.where(np.arange(64) % 2, 0, 2_000_000_000).astype(np.int32)
    bits = np.packbits(np.arange(64) % 2 if words else np.zeros(64, np.int64), bitorder="little")
    array = pa.Array.from_buffers(pa.int32(), 64, [pa.py_buffer(bits), pa.py_buffer(indices)])
    kind = pa.string() if not words else None
    coded = pa.DictionaryArray.from_arrays(array, pa.array(words, kind), safe=False)
    table = pa.table({"a": coded})
    with pa.ipc.new_stream(sink := io.BytesIO(), table.schema) as writer:
        writer.write_table(table)
    found = pl.from_arrow(read(sink.getvalue()))
    assert isinstance(found, pl.DataFrame)
    texts = found["a"].cast(pl.String).to_arrow().to_pylist()
    assert texts == ([None, str(words[0])] * 32 if words else [None] * 64)


def test_indices_outside_a_dictionary_are_refused() -> None:
    words = pa.array(["a", "b"])
    array = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1, 0], pa.int32()), words)
    refused(crafted(array, struct.pack("<4i", 1, 0, 1, 0), struct.pack("<4i", 1, 1_000_000, 1, 0)))
    refused(crafted(array, struct.pack("<4i", 1, 0, 1, 0), struct.pack("<4i", 1, -9, 1, 0)))


def test_a_small_body_that_would_be_large_is_refused_before_it_is_inflated() -> None:
    zeros = pa.array(np.zeros(10 << 20, dtype=np.int64))
    body = stream(pa.table({"x": zeros}), compression="zstd")
    assert len(body) < 64 << 10
    before = pa.total_allocated_bytes()
    assert "more than" in refused(body)
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_rows_without_bytes_are_counted() -> None:
    assert "rows" in refused(stream(pa.table({"x": pa.nulls(100 << 20)})))
    batch = pa.record_batch([pa.nulls(3 << 20)], names=["x"])
    assert "rows" in refused(stream(pa.Table.from_batches([batch] * 3)))


def test_texts_that_rows_share_are_counted_for_each() -> None:
    words = pa.array(["x" * 60_000] * 1_000)
    assert "each row has its own" in refused(
        stream(pa.table({"x": words.dictionary_encode()})), Limits(size=1 << 20)
    )
    view = pa.py_buffer(struct.pack("<i4sii", 60_000, b"xxxx", 0, 0) * 20_000)
    shared = pa.Array.from_buffers(
        pa.string_view(), 20_000, [None, view, pa.py_buffer(b"x" * 60_000)]
    )
    assert "each row has its own" in refused(stream(pa.table({"x": shared})))


_WIDE = 100_000


@pytest.mark.parametrize(
    "words",
    [
        pa.array(["x" * _WIDE]),
        pa.array(["x" * _WIDE], pa.large_string()),
        pa.array([b"x" * _WIDE]),
        pa.array([b"x" * _WIDE], pa.binary(_WIDE)),
        # a null of fixed width takes as much, without a value in the dictionary
        pa.array([], pa.binary(_WIDE)),
        pa.array([1], pa.decimal256(50)),
    ],
    ids=["string", "large_string", "binary", "fixed", "fixed_nulls", "decimal"],
)
@pytest.mark.parametrize("extension", [False, True])
def test_values_of_a_dictionary_are_counted_for_each_row(words: pa.Array, extension: bool) -> None:
    indices = pa.array(np.zeros(10_000, np.int16)) if len(words) else pa.nulls(10_000, pa.int16())
    array = pa.DictionaryArray.from_arrays(indices, words)
    if extension:
        array = pa.ExtensionArray.from_storage(pa.opaque(array.type, "kind", "vendor"), array)
    body = stream(pa.table({"x": array}))
    assert "each row has its own" in refused(body, Limits(size=200_000))
    plain = 10_000 * (32 if pa.types.is_decimal(words.type) else _WIDE)
    assert read(body, Limits(size=plain)).num_rows == 10_000


def test_a_dictionary_that_many_batches_look_at_is_counted_for_each() -> None:
    words = pa.array([str(i) * 4 for i in range(20_000)])
    chunk = pa.DictionaryArray.from_arrays(pa.array([1], pa.int32()), words)
    table = pa.table({"x": pa.chunked_array([chunk] * 400)})
    assert "dictionaries" in refused(stream(table))


def test_buffers_that_share_their_bytes_are_counted_for_each() -> None:
    column = pa.array(range(10), pa.int64())
    places = [struct.pack("<4q", 80 * i, 0, 80 * i, 80) for i in range(2)]
    body = stream(pa.table({"a": column, "b": column}))
    assert body.count(places[1]) == 1
    assert "bytes" in refused(body.replace(places[1], places[0]), Limits(size=100))


def test_columns_depth_and_batches_are_limited() -> None:
    kind: pa.DataType = pa.int8()
    for _ in range(8):
        kind = pa.list_(kind)
    assert "deeply" in refused(stream(pa.table({"x": pa.array([None], kind)})))
    assert "columns" in refused(stream(pa.table({f"c{i}": [1] for i in range(5_000)})))
    batch = pa.record_batch([pa.array([1])], names=["x"])
    assert "batches" in refused(stream(pa.Table.from_batches([batch] * 50)), Limits(messages=20))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1], [2]], pa.list_view(pa.int8())),
        pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["a"])),
        pa.UnionArray.from_dense(
            pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]
        ),
        pa.array([["a"]], pa.list_(pa.string_view())),
    ],
    ids=["list_view", "run_end", "union", "view_inside"],
)
def test_types_whose_values_repeat_without_bytes_are_refused(array: pa.Array) -> None:
    refused(stream(pa.table({"x": array})))


def test_a_dictionary_that_adds_to_another_is_refused() -> None:
    kind = pa.dictionary(pa.int32(), pa.string())
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(sink, pa.schema([("x", kind)]), options=options) as writer:
        for words in (["a"], ["a", "b"]):
            array = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(words))
            writer.write_batch(pa.record_batch([array], names=["x"]))
    assert "adds" in refused(sink.getvalue())


@pytest.mark.parametrize("data", [b"", b"x" * 100, b"\xff" * 64, stream(pa.table({"x": [1]}))[:60]])
def test_what_is_no_stream_is_refused(data: bytes) -> None:
    with pytest.raises(SchemaError):
        read(data)
    with pytest.raises(SchemaError):
        Opened(data[:20])


def test_metadata_comes_without_the_rows() -> None:
    table = pa.table({"x": ["a"] * 1000}).replace_schema_metadata({"penstock.seq": "7"})
    assert Opened(stream(table)[:400]).metadata == {"penstock.seq": "7"}


def test_larger_bodies_may_hold_more() -> None:
    assert for_body(1024) == Limits()
    assert for_body(64 << 20).size == 256 << 20


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_many_texts_are_judged_as_arrow_judges_each(kind: pa.DataType) -> None:
    """Long columns of texts are looked at together: no damage to offsets, nulls or characters gets
    through.
    """
    chance = random.Random(26)
    texts = pa.array(["plain", None, "", "some more"] * 800 + ["ü" * 7], kind)
    taken = 0
    for place in (
        *range(0, 64, 4),
        *(chance.randrange(len(stream(pa.table({"x": texts})))) for _ in range(300)),
    ):
        for column in (texts, texts.slice(0, 3_200)):
            body = bytearray(stream(pa.table({"n": pa.array(range(len(column))), "x": column})))
            body[place % len(body)] ^= chance.choice((0x80, 0x01, 0xFF, 0x40))
            try:
                judged = pa.ipc.open_stream(bytes(body)).read_all()
                judged.validate(full=True)
            except (pa.ArrowException, OSError, ValueError):
                refused(bytes(body))
                continue
            with contextlib.suppress(SchemaError):  # a limit of ours may be lower
                assert read(bytes(body)).num_rows == judged.num_rows
                taken += 1
    assert taken > 50


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (b"plain" * 9, b"plain" * 8 + b"pla\xffn"),
        *(
            (struct.pack("<4i", 0, 5, 10, 15), struct.pack("<4i", 0, *bad))
            for bad in ((50_000, 10, 15), (10, 5, 15), (-5, 10, 15))
        ),
    ],
)
def test_damage_in_a_long_column_of_texts_is_refused(good: bytes, bad: bytes) -> None:
    body = stream(pa.table({"x": ["plain"] * 5_000}))
    refused(body.replace(good, bad, 1))
