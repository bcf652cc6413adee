"""Which partition a child table's rows belong to: Kafka's own rule, so that every publisher can
follow it.

The hash is Java's `Utils.murmur2`, which librdkafka calls `partitioner=murmur2_random` (random only
for null keys; a table's name is never null).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from penstock import tuning

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFF_FFFF

_Words = npt.NDArray[np.uint32]
#: `beside` tries to hold for every number of partitions that divides this, and content itself with
#: half of it
_ALIKE = 48
#: names that `beside` works on at once: it looks at 256 of each
_TOGETHER = 4096
#: the last two bytes of a name that ends in the hex digits 00 to ff, as murmur2 takes them
_ENDS = np.frombuffer("".join(f"{n:02x}" for n in range(256)).encode(), "<u2").astype(np.uint32)


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
    """What decides the partition of each of *names*, which holds no nulls: its rest when divided by
    the number of partitions.
    """
    if len(names) <= tuning.NAMES_HASHED_ONE_BY_ONE:
        return np.array([_positive(n) for n in names.to_list()], np.uint32)
    return _murmur2_many(names) & np.uint32(0x7FFF_FFFF)


def beside(names: Sequence[str], places: npt.NDArray[np.uint64]) -> list[str]:
    """*names* with other last two characters, both hex digits, so that each goes to the partition
    that a table of hash *places* goes to.

    So it is for each number of partitions that divides 24, and nearly always for 16 and 48. Names
    are ASCII, and all of one length, which leaves a rest of 2 when divided by 4: murmur2 takes
    their end by itself. One of 54,000 finds no such digits among the 256 and stays as it is.
    """
    made = list(names)
    for start in range(0, len(made), _TOGETHER):
        part = made[start : start + _TOGETHER]
        wanted = (places[start : start + _TOGETHER] % np.uint64(_ALIKE)).astype(np.uint32)[:, None]
        before = _blocks(
            np.frombuffer("".join(part).encode(), np.uint8).reshape(len(part), -1)[:, :-2]
        )
        found = (
            _finish((before[:, None] ^ _ENDS) * np.uint32(_M)) & np.uint32(0x7FFF_FFFF)
        ) % np.uint32(_ALIKE)
        half = np.uint32(_ALIKE // 2)
        fit = (found == wanted).astype(np.uint8) + (found % half == wanted % half)
        best = fit.argmax(axis=1)
        for i in np.flatnonzero(fit[np.arange(len(part)), best]).tolist():
            made[start + i] = f"{part[i][:-2]}{best[i]:02x}"
    return made


def _blocks(texts: npt.NDArray[np.uint8]) -> _Words:
    """murmur2 of texts of one length, two bytes before their end."""
    h = np.full(len(texts), _SEED ^ (texts.shape[1] + 2), np.uint32)
    for words in np.ascontiguousarray(texts).view("<u4").T:
        k = words * np.uint32(_M)
        h = (h * np.uint32(_M)) ^ ((k ^ (k >> np.uint32(24))) * np.uint32(_M))
    return h


def _finish(h: _Words) -> _Words:
    h = (h ^ (h >> np.uint32(13))) * np.uint32(_M)
    return h ^ (h >> np.uint32(15))


def _murmur2_many(names: pl.Series) -> _Words:
    """murmur2 of many strings, four bytes of every string at a time."""
    array = (
        names.cast(pl.String).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_string())
    )
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[
        array.offset : array.offset + len(array) + 1
    ]
    starts = offsets[:-1]
    lengths = np.diff(offsets)
    data = np.frombuffer(data_buffer or b"", dtype=np.uint8)[: offsets[-1]]
    padded = np.concatenate([data, np.zeros(4, dtype=np.uint8)])
    words: _Words = np.ndarray(shape=(len(padded) - 3,), dtype="<u4", buffer=padded, strides=(1,))
    m = np.uint32(_M)
    blocks = lengths >> 2
    h = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    for block in range(int(blocks.max(initial=0))):
        at = (
            slice(None)
            if (whole := bool((blocks > block).all()))
            else np.nonzero(blocks > block)[0]
        )
        k = words[starts[at] + 4 * block] * m
        k = (k ^ (k >> np.uint32(24))) * m
        if whole:
            h = (h * m) ^ k
        else:
            h[at] = (h[at] * m) ^ k
    rest = lengths & 3
    if rest.any():
        tail = (
            words[starts + (blocks << 2)]
            & np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], dtype=np.uint32)[rest]
        )
        h = np.where(rest > 0, (h ^ tail) * m, h)
    return _finish(h)
