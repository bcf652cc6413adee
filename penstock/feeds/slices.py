"""Consecutive records of one partition, as listeners get them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from penstock.bus import Batch
from penstock.codec import schema_ids

T = TypeVar("T")
_SLICE_BYTES = 512 << 10


@dataclass(frozen=True, eq=False)
class Slice:
    """Consecutive records of one partition, and what listeners have made of them (`shared`)."""

    batch: Batch
    size: int
    _made: dict[Hashable, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def share(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what *make* gives, made once for all listeners while the slice is young."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            made: T = self._made[key]
            return made

    def forget(self) -> None:
        """Free what was made; it can be made again."""
        with self._lock:
            self._made.clear()

    def until(self, last: int) -> Slice | None:
        """Return the part up to offset *last*; None when that is nothing."""
        count = int(np.searchsorted(self.batch.offsets, last, side="right"))
        if count == len(self.batch):
            return self
        return slice_of(_part(self.batch, 0, count)) if count else None

    @property
    def partition(self) -> int:
        return self.batch.partition

    @property
    def first(self) -> int:
        return int(self.batch.offsets[0])

    @property
    def next(self) -> int:
        return self.batch.next_offset

    @cached_property
    def ids(self) -> npt.NDArray[np.int64]:
        """See `schema_ids`."""
        return schema_ids(self.batch.values)


def slice_of(batch: Batch) -> Slice:
    return Slice(batch, sum(len(v) for v in batch.values if v is not None))


def slices_of(batch: Batch) -> list[Slice]:
    """The batch in slices of a size that one message and one piece of work may have."""
    sizes = np.cumsum([len(v) if v is not None else 0 for v in batch.values])
    cuts = [0, *(np.flatnonzero(np.diff(sizes // _SLICE_BYTES)) + 1).tolist(), len(batch)]
    return [slice_of(_part(batch, a, b)) for a, b in itertools.pairwise(cuts)]


def _part(batch: Batch, a: int, b: int) -> Batch:
    return Batch(
        batch.topic,
        batch.partition,
        batch.offsets[a:b],
        batch.timestamps[a:b],
        batch.keys[a:b],
        batch.values[a:b],
    )
