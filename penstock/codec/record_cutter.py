"""Cutting rows into records, and the fields of a record beside its rows.

Rows come laid out for the wire, in stretches: those of a stretch leave together, in as few records
as may be, cut at ends of client writes where that can be. The same rows and limit are always cut
the same way, so that whoever repeats something repeats the same records. A row that is larger than
a record may be raises `SchemaError`. Does not know what rows mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import SchemaError
from penstock.rows.versions import CLEAR

MAX_RECORD_BYTES = 900_000
#: the frame, as fields in front of the record's own
MAGIC = "penstock_magic"
ID = "penstock_id"
META = ("producer", "from_offset", "offset", "ordinal", "last", "trace")
#: bytes that a record has beside its rows and the texts of its head, at most
_BESIDE = 96

_Ints = npt.NDArray[np.int64]
_NO_WRITES = pa.array([], pa.int64())


@dataclass(frozen=True)
class Head:
    """Fields of the records of a stretch besides their rows; ordinals count from *ordinal*."""

    schema_id: int
    producer: str | None
    from_offset: int
    offset: int
    trace: str | None
    ordinal: int = 0

    @property
    def size(self) -> int:
        """Bytes, at most."""
        return _BESIDE + len((self.producer or "").encode()) + len((self.trace or "").encode())


def cut_into_records(
    rows: pa.StructArray,
    fixed: int,
    texts: Sequence[pa.Array],
    ends: _Ints,
    heads: Sequence[Head],
    writes: Sequence[int] | _Ints | None,
    max_bytes: int,
) -> tuple[pa.RecordBatch, list[int]]:
    """Cut each stretch ends[i]..ends[i+1] of *rows* into records, under heads[i]. Return them, and
    the stretch that each is of.

    Args:
        fixed: most bytes of a row without its texts.
        texts: columns of texts and bytes.
        writes: row counts of the client writes; without them each record is one.
    """
    write_ends = None if writes is None else np.cumsum(np.asarray(writes, dtype=np.int64))
    if write_ends is not None and (len(write_ends) == 0 or write_ends[-1] != len(rows)):
        raise SchemaError("writes does not add up to the number of rows")
    most = fixed * len(rows) + sum(t.get_total_buffer_size() for t in texts)
    small = most + max(h.size for h in heads) <= max_bytes
    sizes = None if small else _row_sizes(fixed, texts)
    clears = None if small else rows.field("op").to_numpy() == CLEAR
    cuts: list[int] = []
    owner: list[int] = []
    ordinals: list[int] = []
    last: list[bool] = []
    for i, (low, high) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
        if low == high:
            continue
        pieces = (
            [low]
            if sizes is None
            else _cut(sizes, low, high, write_ends, max_bytes - heads[i].size, clears)
        )
        cuts += pieces
        owner += [i] * len(pieces)
        ordinals += range(heads[i].ordinal, heads[i].ordinal + len(pieces))
        last += [False] * (len(pieces) - 1) + [True]
    about = [heads[i] for i in owner]
    return _record_batch(rows, cuts, write_ends, about, ordinals, last), owner


def _record_batch(
    rows: pa.StructArray,
    cuts: list[int],
    write_ends: _Ints | None,
    about: list[Head],
    ordinals: list[int],
    last: list[bool],
) -> pa.RecordBatch:
    """Make a batch of records that begin at *cuts*, each with a head (*about*), an ordinal and
    whether it is the last.
    """
    bounds = np.array([*cuts, len(rows)], dtype=np.int32)
    arrays = [
        pa.array(np.zeros(len(cuts), dtype=bool)),
        _of_all([h.schema_id for h in about], _ids),
        pa.ListArray.from_arrays(pa.array(bounds), rows),
        _writes_array(bounds, write_ends),
        _of_all([h.producer for h in about], _texts),
        pa.array(np.array([h.from_offset for h in about], np.int64)),
        pa.array(np.array([h.offset for h in about], np.int64)),
        pa.array(np.array(ordinals, np.int64)),
        pa.array(np.array(last, np.bool_)),
        _of_all([h.trace for h in about], _texts),
    ]
    return pa.RecordBatch.from_arrays(arrays, [MAGIC, ID, "rows", "writes", *META])


def _of_all(values: Sequence[Any], make: Callable[[tuple[Any, ...]], pa.Array]) -> pa.Array:
    """Call *make* for *values*; mostly it is one value, and one that it has had before."""
    return _of_one(values[0], make) if len(values) == 1 else make(tuple(values))


@lru_cache(maxsize=1024)
def _of_one(value: Any, make: Callable[[tuple[Any, ...]], pa.Array]) -> pa.Array:
    return make((value,))


def _ids(ids: tuple[int, ...]) -> pa.Array:
    """Schema ids as the four bytes of a float."""
    return pa.array(np.array(ids, dtype=">u4").view("<f4"))


def _texts(texts: tuple[str | None, ...]) -> pa.Array:
    return pa.array(texts, pa.string())


def _row_sizes(fixed: int, texts: Sequence[pa.Array]) -> _Ints:
    """Upper bound of each row's bytes; the same for the same rows, so that a repeat splits where
    the first one did.
    """
    size: _Ints = np.full(len(texts[0]) if texts else 0, fixed, dtype=np.int64)
    for text in texts:
        size = size + pc.binary_length(text).fill_null(0).to_numpy(zero_copy_only=False)
    return size


def _cut(
    size: _Ints,
    low: int,
    high: int,
    write_ends: _Ints | None,
    room: int,
    clears: npt.NDArray[np.bool_] | None = None,
) -> list[int]:
    """Find where records start in rows low..high so that each holds at most *room* bytes. A CLEAR
    stays with the row after it.
    """
    sums = np.cumsum(size[low:high])
    starts = [low]
    used = 0
    while sums[-1] - used > room:
        end = low + int(np.searchsorted(sums, used + room, side="right"))
        if clears is not None and clears[end - 1]:
            end = max(end - 1, starts[-1])
        if end == starts[-1]:
            raise SchemaError(
                "a row is larger than a record may be",
                code="E_ROW_TOO_LARGE",
                detail=f"at most {room} bytes",
            )
        if write_ends is not None:
            before = int(np.searchsorted(write_ends, end, side="right")) - 1
            if before >= 0 and write_ends[before] > starts[-1]:
                end = int(write_ends[before])
        starts.append(end)
        used = int(sums[end - low - 1])
    return starts


def _writes_array(bounds: npt.NDArray[np.int32], write_ends: _Ints | None) -> pa.ListArray:
    """Row counts of the writes in each record; a write that was cut counts in each part."""
    if write_ends is None:
        return pa.ListArray.from_arrays(pa.array(np.zeros(len(bounds), dtype=np.int32)), _NO_WRITES)
    ends = np.unique(np.concatenate([write_ends, bounds[1:]]))
    ends = ends[ends > 0]
    offsets = np.searchsorted(ends, bounds, side="right").astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(np.diff(np.concatenate([[0], ends])).astype(np.int64))
    )
