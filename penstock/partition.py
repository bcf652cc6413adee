"""Which partition a child table's rows belong to: Kafka's own rule, so that every publisher can follow it.

The hash is Java's `Utils.murmur2`, which librdkafka calls `partitioner=murmur2_random` (random only for null keys; a
table's name is never null).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

_SEED, _M, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFF_FFFF
#: below this many names a cached lookup beats the numpy version
_FEW = 256

_Words = npt.NDArray[np.uint32]


def murmur2(data: bytes) -> int:
    """32-bit murmur2 of *data*, unsigned, with Kafka's seed."""
    h = (_SEED ^ len(data)) & _MASK
    whole = len(data) & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _M & _MASK
        k = (k ^ (k >> 24)) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    if len(data) > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ (h >> 13)) * _M & _MASK
    return h ^ (h >> 15)


@lru_cache(maxsize=1 << 17)
def _positive(name: str) -> int:
    return murmur2(name.encode()) & 0x7FFF_FFFF


def partition(name: str, partitions: int) -> int:
    """Partition of the one table *name*."""
    return _positive(name) % partitions


def partition_of(names: pl.Series | pa.Array | pa.ChunkedArray, partitions: int) -> pl.Series:
    """Partition (UInt32) of each of *names*, which holds no nulls."""
    if not isinstance(names, pl.Series):
        names = pl.Series(values=names)
    if partitions == 1:
        return pl.Series("partition", np.zeros(len(names), dtype=np.uint32))
    return pl.Series("partition", hashes(names) % np.uint32(partitions))


def hashes(names: pl.Series) -> npt.NDArray[np.uint32]:
    """What decides the partition of each of *names*, which holds no nulls: its rest when divided by the number of partitions."""
    if len(names) <= _FEW:
        return np.array([_positive(n) for n in names.to_list()], np.uint32)
    return _murmur2_many(names) & np.uint32(0x7FFF_FFFF)


def _murmur2_many(names: pl.Series) -> _Words:
    """murmur2 of many strings, four bytes of every string at a time."""
    array = names.cast(pl.String).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_string())
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    starts, lengths = offsets[:-1], np.diff(offsets)
    data = np.frombuffer(data_buffer or b"", dtype=np.uint8)[: offsets[-1]]
    padded = np.concatenate([data, np.zeros(4, dtype=np.uint8)])
    words: _Words = np.ndarray(shape=(len(padded) - 3,), dtype="<u4", buffer=padded, strides=(1,))
    m, blocks = np.uint32(_M), lengths >> 2
    h = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    for block in range(int(blocks.max(initial=0))):
        at = slice(None) if (whole := bool((blocks > block).all())) else np.nonzero(blocks > block)[0]
        k = words[starts[at] + 4 * block] * m
        k = (k ^ (k >> np.uint32(24))) * m
        if whole:
            h = (h * m) ^ k
        else:
            h[at] = (h[at] * m) ^ k
    rest = lengths & 3
    if rest.any():
        tail = words[starts + (blocks << 2)] & np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], dtype=np.uint32)[rest]
        h = np.where(rest > 0, (h ^ tail) * m, h)
    h = (h ^ (h >> np.uint32(13))) * m
    return h ^ (h >> np.uint32(15))
