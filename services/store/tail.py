"""The rows of one topic-partition that are not in segments yet, and what is needed to cut them off.

Pure memory: no Kafka, no files. Frames are immutable, so a reader takes a `PartitionView` under the
lock and works on without it. A flush has two halves: `freeze` sets the present tail aside (still
visible), `thaw` drops it once its segments are committed.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from penstock.storage.segments import Position, RangeDelete

#: frames of fewer rows are joined, so that a query meets a few dozen of them, not one for each read
#: of the log
_JOINED_ROWS = 1 << 16
#: table id → child table → tag → value, as ALTER TABLE … SET TAG left them
Tags = dict[int, dict[str, dict[str, Any]]]


@dataclass(frozen=True)
class PartitionView:
    """One moment of a partition: segments below `position.next` plus `frames`, in log order, make
    the whole of a table.
    """

    position: Position
    next: int
    frames: dict[int, tuple[pl.DataFrame, ...]]
    deletes: tuple[RangeDelete, ...]
    tags: Tags


@dataclass(frozen=True)
class Frozen:
    """What one flush takes over: records first..next-1."""

    first: int
    next: int
    frames: dict[int, tuple[pl.DataFrame, ...]]
    producers: dict[str, tuple[int, int]]
    deletes: tuple[RangeDelete, ...]
    tags: Tags
    over: str = ""


@dataclass
class _Rows:
    frames: dict[int, list[pl.DataFrame]] = field(default_factory=dict)
    rows: int = 0


class Tail:
    """Thread-safe. `next` is the next offset to be read; everything below is in segments, frozen or
    in the tail.
    """

    def __init__(self, position: Position) -> None:
        self._lock = threading.Condition()
        self._position = position
        self._next = position.next
        self._current = _Rows()
        self._frozen: Frozen | None = None
        self._producers = dict(position.producers)
        self._deletes = list(position.deletes)
        self._tags: Tags = {t: dict(c) for t, c in position.tags.items()}
        self._since = 0.0
        #: which control records have ended the partition: see `Position.over`
        self.over = position.over

    @property
    def position(self) -> Position:
        """What is in segments."""
        return self._position

    @property
    def next(self) -> int:
        return self._next

    @property
    def owner(self) -> int:
        """Whose topic it is (`Catalog.topic_owner`)."""
        return self._position.owner

    @property
    def rows(self) -> int:
        return self._current.rows

    def oldest(self) -> float:
        """When (clock seconds) the oldest unflushed record came; 0 = nothing to flush."""
        return self._since

    def seen(self, producer: str, offset: int, ordinal: int) -> bool:
        """Whether a record of this producer was had already; notes it when not (readers drop
        repeats, architecture 6).
        """
        last = self._producers.get(producer)
        if last is not None and (offset, ordinal) <= last:
            return True
        self._producers[producer] = (offset, ordinal)
        return False

    def close(self) -> None:
        """The partition takes results only."""
        self.over = self.over or "close"

    def end(self, offset: int) -> int:
        """The partition ends with the record at *offset*, unless it has ended already; where it
        did.
        """
        if not self.ended:
            self.over = f"end {offset}"
        return int(self.over.partition(" ")[2])

    @property
    def ended(self) -> bool:
        """Whether nothing counts any more."""
        return self.over.startswith("end")

    def append(
        self,
        next_offset: int,
        frames: dict[int, pl.DataFrame],
        deletes: list[RangeDelete],
        now: float,
    ) -> None:
        """Take over everything decoded below *next_offset*; wakes those who wait for it."""
        with self._lock:
            for table, frame in frames.items():
                _add(self._current.frames.setdefault(table, []), frame)
                self._current.rows += frame.height
            self._deletes.extend(deletes)
            self._next = next_offset
            self._since = self._since or now
            self._lock.notify_all()

    def set_tags(self, table_id: int, child: str, tags: dict[str, Any]) -> None:
        """ALTER TABLE … SET TAG: counts for the child's earlier rows as well."""
        with self._lock:
            children = dict(self._tags.get(table_id, {}))
            children[child] = {**children.get(child, {}), **tags}
            self._tags = {**self._tags, table_id: children}

    def wait_for(self, offset: int, timeout: float) -> bool:
        """Block until the record at *offset* is visible (read your own writes)."""
        with self._lock:
            return self._lock.wait_for(lambda: self._next > offset, timeout)

    def view(self) -> PartitionView:
        with self._lock:
            frames = {t: tuple(f) for t, f in self._current.frames.items()}
            for table, older in (self._frozen.frames if self._frozen else {}).items():
                frames[table] = older + frames.get(table, ())
            return PartitionView(
                self._position, self._next, frames, tuple(self._deletes), self._tags
            )

    def freeze(self) -> Frozen | None:
        """Set the tail aside for a flush; None when one is under way or there is nothing new."""
        with self._lock:
            if self._frozen is not None or self._next == self._position.next:
                return None
            frames = {t: tuple(f) for t, f in self._current.frames.items()}
            self._frozen = Frozen(
                self._position.next,
                self._next,
                frames,
                dict(self._producers),
                tuple(self._deletes),
                self._tags,
                self.over,
            )
            self._current = _Rows()
            self._since = 0.0
            return self._frozen

    def thaw(self, position: Position) -> None:
        """The frozen rows are committed in segments now: readers find them there."""
        with self._lock:
            self._position = position
            self._frozen = None

    def unfreeze(self) -> None:
        """The flush failed: put the rows back in front of the tail, to be tried again."""
        with self._lock:
            if self._frozen is None:
                return
            merged = _Rows({t: list(f) for t, f in self._frozen.frames.items()})
            for table, frames in self._current.frames.items():
                merged.frames.setdefault(table, []).extend(frames)
            merged.rows = sum(f.height for fs in merged.frames.values() for f in fs)
            self._current = merged
            self._frozen = None


def _add(frames: list[pl.DataFrame], frame: pl.DataFrame) -> None:
    """Append *frame*, joined with smaller ones before it: each row is copied a few times at most,
    and sizes fall from the first to the last.
    """
    while frames and frames[-1].height <= frame.height < _JOINED_ROWS:
        frame = pl.concat([frames.pop(), frame], how="diagonal_relaxed", rechunk=True)
    frames.append(frame)
