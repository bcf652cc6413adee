"""The pipe: the bytes that were sent, and whether there are any, before anybody has to wait for
them.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs import pipe
from spark_jobs.pipe import Pipe, through_a_pipe


def connected() -> tuple[Pipe, socket.socket]:
    """A pipe as a worker has it, and Spark's end."""
    near, far = socket.socketpair(socket.AF_UNIX)
    made = Pipe(os.fdopen(os.dup(near.fileno()), "rb", 65536))
    near.close()
    return made, far


@pytest.fixture
def ends() -> Iterator[tuple[Pipe, socket.socket]]:
    made, far = connected()
    yield made, far
    far.close()
    made.close()


def test_nothing_waits_until_something_was_sent(ends: tuple[Pipe, socket.socket]) -> None:
    mine, spark = ends
    assert not mine.waits(0.0)
    assert not mine.waits(0.01)
    spark.send(b"abcdef")
    assert mine.waits(None)
    assert mine.read(2) == b"ab"
    assert mine.waits(0.0)  # it has the rest already
    assert mine.read(4) == b"cdef"
    assert not mine.waits(0.0)


def test_who_waits_is_woken(ends: tuple[Pipe, socket.socket]) -> None:
    mine, spark = ends
    threading.Timer(0.02, spark.send, [b"x"]).start()
    assert mine.waits(5.0)
    assert mine.read(1) == b"x"


def test_the_end_waits_too(ends: tuple[Pipe, socket.socket]) -> None:
    mine, spark = ends
    spark.send(b"abc")
    spark.close()
    assert mine.read(5) == b"abc"
    assert mine.waits(0.0)
    assert mine.read(1) == b""
    assert mine.read() == b""


@given(
    parts=st.lists(st.integers(0, 200_000), max_size=6),
    reads=st.lists(st.integers(0, 150_000), max_size=12),
)
def test_reads_give_what_was_sent_however_it_was_cut(parts: list[int], reads: list[int]) -> None:
    mine, spark = connected()
    sent = os.urandom(sum(parts))

    def send() -> None:
        at = 0
        for size in parts:
            spark.sendall(sent[at : at + size])
            at += size
        spark.close()

    sender = threading.Thread(target=send)
    sender.start()
    found = [mine.read(size) for size in reads]
    at = 0
    for size, got in zip(reads, found, strict=True):
        assert got == sent[at : at + size]
        at += len(got)
    assert mine.read() == sent[at:]
    sender.join()
    mine.close()


@given(sent=st.integers(0, 150_000), reads=st.lists(st.integers(0, 150_000), max_size=12))
def test_what_was_sent_and_not_read_waits_wherever_it_is(sent: int, reads: list[int]) -> None:
    mine, spark = connected()
    spark.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    spark.sendall(bytes(sent))
    for size in reads:
        part = min(size, sent)
        assert len(mine.read(part)) == part
        sent -= part
        assert mine.waits(0.0) == (sent > 0)
    spark.close()
    mine.close()


def test_what_is_peeked_at_is_read_once_it_is_skipped(ends: tuple[Pipe, socket.socket]) -> None:
    mine, spark = ends
    spark.send(b"abcdef")
    assert bytes(mine.peek()) == b"abcdef"
    mine.skip(2)
    assert bytes(mine.peek()) == b"cdef"
    assert mine.read(1) == b"c"
    mine.skip(3)
    assert not mine.waits(0.0)
    spark.send(b"gh")
    assert bytes(mine.peek()) == b"gh"
    spark.close()
    assert mine.read() == b"gh"
    assert not mine.peek()


def test_arrow_batches_come_one_by_one_without_waiting_for_the_next(
    ends: tuple[Pipe, socket.socket],
) -> None:
    mine, spark = ends
    out = spark.makefile("wb")
    first = pa.record_batch([pa.array([1, None])], names=["place"])
    with pa.RecordBatchStreamWriter(out, first.schema) as writer:
        writer.write_batch(first)
        out.flush()
        batches = iter(pa.ipc.open_stream(mine))
        assert next(batches).equals(first)
        assert not mine.waits(0.0)
        writer.write_batch(first)
        writer.write_batch(first)
        out.flush()
        assert mine.waits(0.0)
        next(batches)
        assert mine.waits(0.0)
        next(batches)
        assert not mine.waits(0.0)
    out.flush()
    assert mine.waits(0.0)
    assert next(batches, None) is None


def test_a_workers_task_is_asked_through_its_pipe(ends: tuple[Pipe, socket.socket]) -> None:
    _, spark = ends
    near, far = socket.socketpair(socket.AF_UNIX)
    infile = os.fdopen(os.dup(near.fileno()), "rb", 65536)
    outfile = os.fdopen(os.dup(near.fileno()), "wb")

    def main(given: Any, out: Any) -> str:
        assert out is outfile
        assert pipe.current() is given
        far.send(b"ok")
        return str(given.read(2))

    assert pipe.current() is None
    assert through_a_pipe(main)(infile, outfile) == "b'ok'"
    assert pipe.current() is None
    for end in (infile, outfile, near, far):
        end.close()
