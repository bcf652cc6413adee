"""Rows that several streams send at one moment, encoded at once where they look alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from penstock.codec.encoder import in_stretches, partitions_of
from penstock.codec.record_cutter import Head
from penstock.codec.table import TableCodec


@dataclass(frozen=True)
class Outgoing:
    """Rows that leave a stream together; `encode_partitioned` says what the fields are."""

    codec: TableCodec
    rows: pl.DataFrame
    partitions: int
    producer: str
    from_offset: int
    offset: int
    trace: str | None = None
    hashes: pl.Series | None = None

    def encode(self) -> list[tuple[int, bytes]]:
        """Encode the rows as (partition, record value)."""
        return self.codec.encode_partitioned(
            self.rows,
            self.partitions,
            producer=self.producer,
            from_offset=self.from_offset,
            offset=self.offset,
            trace=self.trace,
            hashes=self.hashes,
        )

    @property
    def head(self) -> Head:
        return Head(self.codec.schema_id, self.producer, self.from_offset, self.offset, self.trace)


def encode_together(parts: Sequence[Outgoing]) -> list[list[tuple[int, bytes]]]:
    """Encode each of *parts* as `Outgoing.encode` does, those of one shape at once.

    What is fixed of the cost of encoding is as much as that of some thousand rows.

    Raises:
        SchemaError: one of them does not fit its table, which one is not told.
    """
    alike: dict[Hashable, list[int]] = {}
    for i, part in enumerate(parts):
        shape = part.codec.shape(part.rows) if len(parts) > 1 else None
        alike.setdefault(i if shape is None else shape, []).append(i)
    encoded: dict[int, list[tuple[int, bytes]]] = {}
    for chosen in alike.values():
        some = [parts[i] for i in chosen]
        results = [some[0].encode()] if len(some) == 1 else _encode_alike(some)
        encoded.update(zip(chosen, results, strict=True))
    return [encoded[i] for i in range(len(parts))]


def _encode_alike(parts: Sequence[Outgoing]) -> list[list[tuple[int, bytes]]]:
    bases = np.cumsum([0, *(p.partitions for p in parts)])
    stretches = np.concatenate(
        [
            partitions_of(p.rows, p.partitions, p.hashes) + base
            for p, base in zip(parts, bases, strict=False)
        ]
    )
    order, ends = in_stretches(stretches, int(bases[-1]))
    of_part = np.repeat(np.arange(len(parts)), np.diff(bases)).tolist()
    values, owner = parts[0].codec.encode_alike(
        [p.codec.in_order(p.rows) for p in parts], ends, [parts[i].head for i in of_part], order
    )
    encoded: list[list[tuple[int, bytes]]] = [[] for _ in parts]
    for stretch, value in zip(owner, values, strict=True):
        part = of_part[stretch]
        encoded[part].append((int(stretch - bases[part]), value))
    return encoded
