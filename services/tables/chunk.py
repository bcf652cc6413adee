"""Consecutive rows of a table, columnar, and the file they are kept in."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.errors import StateError

_NAME = re.compile(r"(\d{16})-(\d{16})-(\d{1,16})-(\d{1,16})\.arrow\Z")
_PLAIN = pa.ipc.IpcWriteOptions()
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows first … next-1; `oldest` and `newest` are when they were appended to the log (epoch
    ms).
    """

    first: int
    batch: pa.RecordBatch
    oldest: int
    newest: int

    @property
    def next(self) -> int:
        return self.first + int(self.batch.num_rows)

    @property
    def rows(self) -> int:
        return int(self.batch.num_rows)

    def since(self, row: int) -> Chunk:
        """The rows from *row* on."""
        return (
            self
            if row <= self.first
            else Chunk(row, self.batch.slice(row - self.first), self.oldest, self.newest)
        )

    def upto(self, row: int) -> Chunk:
        """The rows before *row*."""
        return (
            self
            if row >= self.next
            else Chunk(self.first, self.batch.slice(0, row - self.first), self.oldest, self.newest)
        )

    def own(self) -> Chunk:
        """The same rows in memory of their own, when they are a part of something larger."""
        batch = pa.concat_batches([self.batch, self.batch.slice(0, 0)]) if self.rows else self.batch
        return Chunk(self.first, batch, self.oldest, self.newest)


def join(chunks: Sequence[Chunk]) -> Chunk:
    """Chunks that follow each other as one."""
    if len(chunks) == 1:
        return chunks[0]
    batch = pa.concat_batches([c.batch for c in chunks])
    return Chunk(
        chunks[0].first, batch, min(c.oldest for c in chunks), max(c.newest for c in chunks)
    )


def encode(batch: pa.RecordBatch) -> bytes:
    """An Arrow IPC stream of one batch: what subscribers get."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


@dataclass(frozen=True, order=True)
class SegmentFile:
    """A chunk in a file whose name says everything about it but its rows."""

    first: int
    next: int
    oldest: int
    newest: int
    path: Path

    @property
    def rows(self) -> int:
        return self.next - self.first

    def read(self) -> Chunk:
        """Its rows, mapped from the file.

        Raises:
            StateError: the file is damaged.
            FileNotFoundError: retention or a merge was faster.
        """
        try:
            with pa.memory_map(str(self.path)) as source:
                table = pa.ipc.open_file(source).read_all().combine_chunks()
        except (pa.ArrowInvalid, pa.ArrowSerializationError) as damaged:
            raise StateError(
                "a segment of a stream table is damaged",
                detail=f"{self.path.name}: {damaged}"[:300],
            ) from damaged
        batch = (
            table.to_batches()[0]
            if table.num_rows
            else pa.RecordBatch.from_pylist([], schema=table.schema)
        )
        if batch.num_rows != self.rows:
            raise StateError("a segment of a stream table is not whole", detail=self.path.name)
        return Chunk(self.first, batch, self.oldest, self.newest)


def write(directory: Path, chunk: Chunk, compress: bool = True) -> SegmentFile:
    """Put a chunk into a file of its own."""
    options = _COMPRESSED if compress else _PLAIN
    name = f"{chunk.first:016d}-{chunk.next:016d}-{chunk.oldest}-{chunk.newest}.arrow"
    path = directory / name
    fresh = directory / f"{name}.new"
    with (
        pa.OSFile(str(fresh), "wb") as sink,
        pa.ipc.new_file(sink, chunk.batch.schema, options=options) as writer,
    ):
        writer.write_batch(chunk.batch)
    os.replace(fresh, path)
    return SegmentFile(chunk.first, chunk.next, chunk.oldest, chunk.newest, path)


def segments(directory: Path) -> list[SegmentFile]:
    """The segments of a directory in order, without those that a merge left behind."""
    found = []
    for path in directory.iterdir():
        match = _NAME.match(path.name)
        if match is None:
            continue
        first, next_, oldest, newest = (int(g) for g in match.groups())
        found.append(SegmentFile(first, next_, oldest, newest, path))
    kept: list[SegmentFile] = []
    for segment in sorted(found, key=lambda s: (s.first, -s.next)):
        if kept and segment.next <= kept[-1].next:
            segment.path.unlink(missing_ok=True)  # merged into the one before
        else:
            kept.append(segment)
    return kept
