"""Batches through a pipe as Spark writes them: the same whether they come whole, in parts, small,
large, or not at all.
"""

from __future__ import annotations

import io
import os
import socket
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.conversion import ArrowBatchTransformer
from pyspark.sql.pandas.serializers import ArrowStreamSerializer

from spark_jobs.pipe import Pipe
from spark_jobs.task_batches import InputEnded, TaskBatches

ROW = pa.struct([("place", pa.int64()), ("time", pa.int64()), ("value", pa.binary())])
SCHEMA = pa.schema([("", ROW)])
Row = tuple[int, int, bytes] | None


def stream(batches: list[list[Row]]) -> bytes:
    """As Spark sends them: rows in a struct of which a filler has nothing."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, SCHEMA) as writer:
        for rows in batches:
            columns = [
                pa.array([None if r is None else r[i] for r in rows], kind.type)
                for i, kind in enumerate(ROW)
            ]
            writer.write_batch(
                pa.RecordBatch.from_arrays(
                    [pa.StructArray.from_arrays(columns, fields=list(ROW))], schema=SCHEMA
                )
            )
    return out.getvalue()


class Sent:
    """A task's batches as its worker gets them, while somebody sends them."""

    def __init__(self) -> None:
        near, self.far = socket.socketpair(socket.AF_UNIX)
        self.far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 21)
        self.pipe = Pipe(os.fdopen(near.detach(), "rb", 65536))
        given = map(
            ArrowBatchTransformer.flatten_struct, ArrowStreamSerializer().load_stream(self.pipe)
        )
        self.batches = TaskBatches(given, self.pipe)

    def all(self) -> Iterator[list[Row]]:
        while (columns := self.batches.take()) is not None:
            yield [
                None if place is None else (place, *rest)
                for place, *rest in zip(*(c.to_pylist() for c in columns), strict=True)
            ]

    def close(self) -> None:
        self.pipe.close()
        self.far.close()


@pytest.fixture
def sent() -> Iterator[Sent]:
    made = Sent()
    yield made
    made.close()


rows = st.builds(
    lambda place, size: (place, place * 7, bytes([place % 251]) * size),
    st.integers(0, 1 << 60),
    st.sampled_from([0, 1, 70, 3000, 70_000]),
)
small = st.one_of(
    st.tuples(rows, st.none()), st.tuples(st.none(), rows), st.tuples(st.none()), st.tuples(rows)
).map(list)
large = st.lists(rows, min_size=3, max_size=40)


@settings(deadline=None)
@given(
    batches=st.one_of(
        st.lists(small, max_size=30),
        st.lists(large, max_size=4),
        st.lists(st.one_of(small, large), max_size=10),
    ),
    cuts=st.lists(st.integers(1, 100_000), max_size=30),
)
def test_batches_are_what_was_sent_however_it_was_cut(
    batches: list[list[Row]], cuts: list[int]
) -> None:
    sent = Sent()
    data = stream(batches)

    def send() -> None:
        at = 0
        for size in [*cuts, len(data)]:
            sent.far.sendall(data[at : at + size])
            at += size
        sent.far.sendall(b"behind the stream")

    sender = threading.Thread(target=send)
    sender.start()
    assert list(sent.all()) == batches
    assert sent.pipe.read(17) == b"behind the stream", "not more than the stream is read"
    sender.join()
    sent.close()


def test_a_small_batch_waits_for_no_other(sent: Sent) -> None:
    record: list[Row] = [(1, 2, b"three"), None]
    data = stream([record, record, record])
    message = (len(data) - len(stream([]))) // 3
    head = len(stream([])) - 8  # the end is eight bytes
    sent.far.send(data[: head + message])
    assert sent.batches.waits(None)
    found = sent.all()
    assert next(found) == record
    assert not sent.batches.waits(0.0)
    sent.far.send(data[head + message : head + 2 * message + 10])
    assert next(found) == record
    assert sent.batches.waits(0.0), "a part of the next"
    sent.far.send(data[head + 2 * message + 10 :])
    assert next(found) == record
    assert next(found, None) is None


def test_an_input_that_ends_before_anything_came_is_no_fault(sent: Sent) -> None:
    """As Spark leaves it when a query is stopped while its task starts."""
    sent.far.close()
    with pytest.raises(InputEnded):
        sent.batches.take()


def test_an_input_that_is_cut_is_a_fault(sent: Sent) -> None:
    sent.far.sendall(stream([[(1, 2, b"x")]])[:40])
    sent.far.close()
    with pytest.raises(pa.ArrowInvalid):
        sent.batches.take()
