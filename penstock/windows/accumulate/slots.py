"""Open windows in slots: one per (group, window), freed when the window is done.

A call costs what it touches: lookup, accumulation and closing are vectorised scatters into arrays;
nothing walks over all slots. A group's newest window is known by its group, one later than all its
group had is new; only others are looked up by hash, and what nobody looks up is never hashed: where
rows come in order windows come and go without it. What a slot holds is `accumulators`' matter.
Refuses to know time: when a window ends is told by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.windows.accumulate.accumulators import accumulators
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.calls import Array, Call
from penstock.windows.clocks.ticks import Ticks, grown
from penstock.windows.groups.key_index import Numbers
from penstock.windows.rows import columnwise

_EMPTY = -1
_GONE = -2
#: places of the smallest table
_TABLE = 4096
_FOREVER = np.iinfo(np.int64).max
#: a window before all others
_NONE = np.iinfo(np.int64).min


class Slots:
    """Windows in slots. `group`, `index`, `stop` (last tick), `closed` are read by slot number."""

    def __init__(self, aggregates: Aggregates) -> None:
        self.group: Numbers = np.empty(0, np.int64)
        self.index: Numbers = np.empty(0, np.int64)
        self.stop: Ticks = np.empty(0, np.int64)
        self.closed: Array = np.empty(0, np.bool_)
        self._older: Array = np.empty(0, np.int32)  # next open slot of the same group
        self._place: Array = np.empty(0, np.int32)  # in the table, `_EMPTY`: not there yet
        self._live: Array = np.empty(0, np.bool_)
        self._changed: Array = np.empty(0, np.bool_)
        self._saved: Array = np.empty(0, np.bool_)
        self._free: list[Array] = []
        self._used = 0
        self._count = 0
        self._head: Array = np.full(64, -1, np.int32)
        #: each group's latest window ever
        self._latest: Numbers = np.full(64, _NONE, np.int64)
        #: last tick of each group's earliest open window
        self.oldest: Ticks = np.full(64, _FOREVER, np.int64)
        self._table: Array = np.full(_TABLE, _EMPTY, np.int32)
        self._filled = 0
        self._waits: Array = np.empty(0, np.bool_)  # among the unhashed
        #: made since the table was last looked at, and how many; some may be done already
        self._unhashed: list[Array] = []
        self._unhashed_count = 0
        self._gone: list[pl.DataFrame] = []
        self._aggregates = aggregates
        self.accumulators = accumulators(aggregates)
        self._added = 0

    def __len__(self) -> int:
        return self._count

    # ---------------------------------------------------------------- finding

    def reserve_groups(self, count: int) -> None:
        self._head = grown(self._head, count, -1)
        self._latest = grown(self._latest, count, _NONE)  # type: ignore[assignment]
        self.oldest = grown(self.oldest, count, _FOREVER)  # type: ignore[assignment]

    def locate(self, groups: Numbers, indexes: Numbers, stops: Ticks) -> Numbers:
        """Slot of each of these distinct (group, window); missing ones are made.

        A group's windows come one after the other, the earliest first.
        """
        if not self._used:
            slots: Numbers = np.full(len(groups), -1, np.int64)
        else:
            slots = self._head.take(groups).astype(np.int64)
            slots[self.index.take(slots, mode="wrap") != indexes] = -1
        missed = np.flatnonzero(slots < 0)
        if len(missed):
            met = missed[indexes[missed] <= self._latest.take(groups[missed])]
            if len(met):
                slots[met] = self.find(groups[met], indexes[met])
                missed = missed[slots[missed] < 0]
        if len(missed):
            slots[missed] = self._create(groups[missed], indexes[missed], stops[missed])
        return slots

    def open_one(self, group: int, index: int) -> int:
        """Slot of one window, if it is open; else -1."""
        slot: int = self._head.item(group)
        while slot >= 0 and (found := self.index.item(slot)) != index:
            slot = self._older.item(slot) if found > index else -1
        return slot

    def is_new(self, group: int, index: int) -> bool:
        """Whether the window is later than all that its group had."""
        return index > self._latest.item(group)

    def find(self, groups: Numbers, indexes: Numbers) -> Numbers:
        """Slot of each (group, window), -1 where there is none."""
        if not self._used:
            return np.full(len(groups), -1, np.int64)
        self._hash_all()
        mask = len(self._table) - 1
        places = _hash(groups, indexes) & mask
        found: Numbers = self._table[places].astype(np.int64)
        wrong = np.flatnonzero((found != _EMPTY) & ~self._is(found, groups, indexes))
        while len(wrong):
            places[wrong] = (places[wrong] + 1) & mask
            candidates = self._table[places[wrong]].astype(np.int64)
            found[wrong] = candidates
            wrong = wrong[
                (candidates != _EMPTY) & ~self._is(candidates, groups[wrong], indexes[wrong])
            ]
        return found

    def _is(self, slots: Numbers, groups: Numbers, indexes: Numbers) -> npt.NDArray[np.bool_]:
        held: npt.NDArray[np.bool_] = (
            (slots >= 0) & (self.group[slots] == groups) & (self.index[slots] == indexes)
        )
        return held

    def _create(self, groups: Numbers, indexes: Numbers, stops: Ticks) -> Numbers:
        """New slots for windows, which come as `locate` says."""
        n = len(groups)
        slots = self._take(n)
        self.group[slots] = groups
        self.index[slots] = indexes
        self.stop[slots] = stops
        self.closed[slots] = False
        self._live[slots] = True
        self._saved[slots] = False
        self._place[slots] = _EMPTY
        for accumulator in self.accumulators:
            accumulator.reset(slots)
        self._count += n
        self._postpone(slots)
        self._link(groups, slots)
        latest = self.index[self._head[groups]]
        self._latest[groups] = np.maximum(self._latest[groups], latest)
        np.minimum.at(self.oldest, groups, stops)
        return slots

    def _take(self, n: int) -> Numbers:
        taken: list[Array] = []
        while self._free and n:
            piece = self._free.pop()
            if len(piece) > n:
                self._free.append(piece[n:])
                piece = piece[:n]
            taken.append(piece)
            n -= len(piece)
        if n:
            taken.append(np.arange(self._used, self._used + n))
            self._used += n
            for name in (
                "group",
                "index",
                "stop",
                "closed",
                "_older",
                "_place",
                "_live",
                "_changed",
                "_saved",
                "_waits",
            ):
                setattr(self, name, grown(getattr(self, name), self._used, 0))
            for accumulator in self.accumulators:
                accumulator.grow(self._used)
        return np.concatenate(taken).astype(np.int64)

    def _postpone(self, slots: Numbers) -> None:
        """Note *slots* for when the table is looked at."""
        fresh = slots[~self._waits[slots]]
        self._waits[fresh] = True
        self._unhashed.append(fresh)
        self._unhashed_count += len(fresh)
        if self._unhashed_count > 2 * self._count + _TABLE:  # most of them are done
            left = self._take_unhashed()
            self._waits[left] = True
            self._unhashed = [left]
            self._unhashed_count = len(left)

    def _take_unhashed(self) -> Numbers:
        made: Numbers = np.concatenate(self._unhashed)
        self._waits[made] = False
        self._unhashed = []
        self._unhashed_count = 0
        left: Numbers = made[self._live[made]]
        return left

    def _hash_all(self) -> None:
        """Put into the table what is not there yet."""
        if not self._unhashed:
            return
        made = self._take_unhashed()
        if (self._filled + len(made)) * 2 > len(self._table):
            # laid out afresh, without the places of freed slots
            self._table = np.full(
                max(1 << (self._count * 3).bit_length(), _TABLE), _EMPTY, np.int32
            )
            self._filled = 0
            made = np.flatnonzero(self._live[: self._used])
        self._insert(made)

    def _insert(self, slots: Numbers) -> None:
        mask = len(self._table) - 1
        places = _hash(self.group[slots], self.index[slots]) & mask
        self._filled += len(slots)
        while len(slots):
            free = self._table[places] == _EMPTY
            self._table[places[free]] = slots[free]
            won = self._table[places] == slots
            self._place[slots[won]] = places[won]
            slots = slots[~won]
            places = (places[~won] + 1) & mask

    def _link(self, groups: Numbers, slots: Numbers) -> None:
        """Put *slots*, in order of group, on top of their groups' lists of open windows."""
        first = np.concatenate(([True], groups[1:] != groups[:-1]))
        self._older[slots[1:]] = slots[:-1]
        self._older[slots[first]] = self._head[groups[first]]
        last = np.concatenate((first[1:], [True]))
        self._head[groups[last]] = slots[last]

    # ---------------------------------------------------------------- closing

    def open_of(self, groups: Numbers) -> Numbers:
        """Open windows of the given (distinct) groups, by group and window."""
        found: list[Array] = []
        current = self._head[groups]
        current = current[current >= 0]
        while len(current):
            found.append(current)
            current = self._older[current]
            current = current[current >= 0]
        slots = np.concatenate(found).astype(np.int64) if found else np.empty(0, np.int64)
        return slots[np.lexsort((self.index[slots], self.group[slots]))]

    def retire(
        self, groups: Numbers, open_slots: Numbers, done: npt.NDArray[np.bool_], keep: bool
    ) -> None:
        """Take the *done* of *open_slots* (all that `open_of(groups)` gave) off the open lists;
        free them unless *keep*.
        """
        kept = open_slots[~done]
        gone = open_slots[done]
        self._head[groups] = -1
        self.oldest[groups] = _FOREVER
        if len(kept):
            self._link(self.group[kept], kept)
            np.minimum.at(self.oldest, self.group[kept], self.stop[kept])
        if keep:
            self.closed[gone] = True
            self._changed[gone] = True
        else:
            self.free(gone)

    def mark_closed(self, slots: Numbers) -> None:
        """Say that *slots* have been published as closed."""
        self.closed[slots] = True
        self._changed[slots] = True

    def free(self, slots: Numbers) -> None:
        """Forget *slots*, which must be on no open list."""
        if not len(slots):
            return
        saved = slots[self._saved[slots]]
        if len(saved):
            gone = [pl.Series("_g", self.group[saved]), pl.Series("_i", self.index[saved])]
            self._gone.append(columnwise.beside(gone))
        self._live[slots] = False
        self._changed[slots] = False
        hashed = self._place[slots]
        self._table[hashed[hashed != _EMPTY]] = _GONE
        self._count -= len(slots)
        self._free.append(slots)

    def drop(self, slots: Numbers) -> None:
        """Forget *slots* wherever they are."""
        groups = np.unique(self.group[slots])
        chained = self.open_of(groups)
        self.retire(groups, chained, np.isin(chained, slots), keep=True)
        self.free(slots)

    # ---------------------------------------------------------------- values

    def add(self, slots: Numbers, call: Call) -> None:
        """Add the rows of each of the call's pairs to the window in its slot."""
        if not len(slots):
            return
        self._changed[slots] = True
        for accumulator in self.accumulators:
            accumulator.add(slots, call)
        self._tidy(len(slots))

    def touch(self, slots: Sequence[int]) -> None:
        """Rows were added to windows, by `add_one` of their accumulators."""
        for slot in slots:
            self._changed[slot] = True
        self._tidy(len(slots))

    def put(self, slots: Numbers, partials: pl.DataFrame) -> None:
        """Replace the values of distinct *slots* by *partials*, line by line."""
        self._changed[slots] = True
        for accumulator in self.accumulators:
            accumulator.put(slots, partials)
        self._tidy(len(slots))

    def partials(self, slots: Numbers) -> pl.DataFrame:
        """Partial aggregates of *slots*."""
        return columnwise.beside(
            [series for accumulator in self.accumulators for series in accumulator.read(slots)]
        )

    def _tidy(self, added: int) -> None:
        """Let dead lines go once as many were added as live ones can be."""
        self._added += added
        if self._added > self._count + 4096:
            self._added = 0
            live = self.live()
            for accumulator in self.accumulators:
                accumulator.compact(live)

    # ---------------------------------------------------------------- state

    def live(self, full: bool = True) -> Numbers:
        """All windows held, or those changed since the last `delta`."""
        mask = (
            self._live[: self._used]
            if full
            else self._live[: self._used] & self._changed[: self._used]
        )
        return np.flatnonzero(mask)

    def delta(self, full: bool) -> dict[str, pl.DataFrame]:
        """`windows` to put and `windows.gone` to remove, by (`_g`, `_i`)."""
        slots = self.live(full)
        self._changed[: self._used] = False
        self._saved[slots] = True
        gone = self._gone
        self._gone = []
        frames = {}
        if len(slots):
            about = {"_g": self.group, "_i": self.index, "_stop": self.stop, "_closed": self.closed}
            made = [pl.Series(name, array[slots]) for name, array in about.items()]
            frames["windows"] = columnwise.beside([*made, *self.partials(slots).get_columns()])
        if gone and not full:
            frames["windows.gone"] = pl.concat(gone)
        return frames

    def restore(self, put: pl.DataFrame | None, gone: pl.DataFrame | None, keep: bool) -> None:
        """Apply one `delta`; *keep*: closed windows are off the open lists."""
        if gone is not None:
            slots = self.find(gone.get_column("_g").to_numpy(), gone.get_column("_i").to_numpy())
            self.drop(slots[slots >= 0])
        if put is not None:
            put = put.sort("_g", "_i")
            groups, indexes, stops = (put.get_column(c).to_numpy() for c in ("_g", "_i", "_stop"))
            self.reserve_groups(int(groups.max()) + 1)
            slots = self.locate(groups, indexes, stops)
            self.put(slots, self._aggregates.completed(put))
            closed = put.get_column("_closed").to_numpy()
            self.closed[slots] = closed
            if keep and closed.any():
                owners = np.unique(groups[closed])
                chained = self.open_of(owners)
                self.retire(owners, chained, self.closed[chained], keep=True)
            self._saved[slots] = True
        self._changed[: self._used] = False
        self._gone = []


def _hash(groups: Numbers, indexes: Numbers) -> Numbers:
    mixed = groups.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + indexes.view(
        np.uint64
    ) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(20)).view(np.int64)
