"""A few rows in INTERVAL windows, in order: what most single rows are, without frames and hardly an
array.

Owns plans whose groups are tables, whose windows follow each other in equal steps, and whose
aggregates are numbers over plain columns (`few_windows`). A row in any other position (its window
is over or was closed, its group is new, more than rows has raised T) sends all rows of the call to
the kernel's own way, before anything was changed. All that is counted is in the kernel's state:
nothing is kept here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
import polars as pl

from penstock.rows.rows import Rows
from penstock.sql.plan import Aggregate, StreamPlan
from penstock.windows.accumulate.accumulators import Number
from penstock.windows.accumulate.aggregates import Aggregates, unwrapped
from penstock.windows.accumulate.slots import Slots
from penstock.windows.assign.boundaries import Grid
from penstock.windows.clocks.clock import GroupClock
from penstock.windows.clocks.ticks import Mask
from penstock.windows.emit.few_results import FewResults, Picked
from penstock.windows.emit.result import Results
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.key_index import Numbers
from penstock.windows.rows.scope import Scope

#: sums of numbers within these bounds are within Int64 and UInt64
_MOST_HELD = 1 << 62
_MOST_ADDED = 1 << 58
#: what 64 bits hold, by whether they have a sign
_WITHIN = {True: (-(1 << 63), (1 << 63) - 1), False: (0, (1 << 64) - 1)}

#: an aggregate's value from what is held of its parts
_Value = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class _Argument:
    """A source column; `floats`: NaN in it counts as NULL."""

    name: str
    floats: bool

    def of(self, rows: Rows) -> list[Any]:
        """Return its values in *rows*."""
        values = rows.column(self.name)
        if not self.floats:
            return values
        return [None if v is None or math.isnan(v) else v for v in values]


@dataclass
class _Found:
    """Where rows fall: of each its window (group, index in the grid) and that one's slot (-1: it is
    new), and of each group its table and how far it comes with them.
    """

    windows: list[tuple[int, int]] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    tables: dict[int, str] = field(default_factory=dict)
    highest: dict[int, int] = field(default_factory=dict)


class FewWindows:
    """The short way of one interval kernel, over its state."""

    def __init__(
        self,
        plan: StreamPlan,
        picked: Picked,
        grid: Grid,
        groups: Groups,
        results: Results,
        slots: Slots,
        clock: GroupClock,
        arguments: Sequence[_Argument],
        numbers: Mapping[str, Number],
        values: Mapping[str, _Value],
    ) -> None:
        self._time = plan.source.time_column
        self._picked = picked
        self._grid = grid
        self._groups = groups
        self._slots = slots
        self._clock = clock
        assert results.few is not None
        self._layout = results.few
        self._at_once = plan.trigger.kind == "at_once"
        self._arguments = arguments
        self._numbers = numbers
        self._values = values
        #: sums of whole numbers, which must stay within theirs
        self._whole = [
            n for n in numbers.values() if n.part.kind == "sum" and n.part.dtype.is_integer()
        ]

    def count(self, rows: Rows) -> tuple[FewResults, int, int] | None:
        """Count *rows*. Return what that publishes, the earliest of their times, and when the last
        one came. Return None if nothing was done.

        Where no row is read the times are -1.
        """
        picked = self._picked.of(rows)
        if picked is None:
            return None
        if not len(picked):
            return self._layout.none, -1, -1
        times = picked.column(self._time)
        came = picked.column("_now")[-1]
        found = self._find(picked.column("tbname"), times)
        arguments = [argument.of(picked) for argument in self._arguments]
        if found is None or not self._fit(found.slots, arguments):
            return None
        for group, highest in found.highest.items():
            self._clock.advance_one(group, highest)
        slots = self._open_slots(found)
        self._add(slots, arguments)
        groups, chained, over = self._closing(found)
        if self._at_once:  # in order of their last rows
            touched = list(dict.fromkeys(reversed(slots)))[::-1]
        else:
            touched = chained[over].tolist()
        made = self._make_results(touched, found.tables, came) if touched else self._layout.none
        if len(groups):
            self._slots.mark_closed(chained[over])
            self._slots.retire(groups, chained, over, keep=False)
        return made, min(times), came

    def _find(self, tables: Sequence[str], times: Sequence[int]) -> _Found | None:
        """Where rows fall; None: one of them is none of ours."""
        if self._clock.raised:
            return None
        found = _Found()
        for table, time in zip(tables, times, strict=True):
            group = self._groups.of_table(table)
            if group < 0:
                return None
            index = self._grid.place(time)
            slot = self._slots.open_one(group, index)
            if self._slots.closed.item(slot) if slot >= 0 else not self._slots.is_new(group, index):
                return None
            found.windows.append((group, index))
            found.slots.append(slot)
            found.tables[group] = table
            highest = found.highest.get(group)
            found.highest[group] = max(
                time, self._clock.highest.item(group) if highest is None else highest
            )
        over = any(
            self._grid.ends(index) < self._clock.reaches(found.highest[group])
            for group, index in found.windows
        )
        return None if over else found

    def _open_slots(self, found: _Found) -> list[int]:
        """The slot of each row's window; those that were not there are made."""
        new = sorted(
            {window for window, slot in zip(found.windows, found.slots, strict=True) if slot < 0}
        )
        if not new:
            return found.slots
        groups, indexes = np.array(new, np.int64).T
        made = dict(
            zip(
                new,
                self._slots.locate(groups, indexes, self._grid.stops(indexes)).tolist(),
                strict=True,
            )
        )
        return [
            made.get(window, slot) for window, slot in zip(found.windows, found.slots, strict=True)
        ]

    def _closing(self, found: _Found) -> tuple[Numbers, Numbers, Mask]:
        """Groups with windows that are over now, their open windows, and which of these are."""
        closing = sorted(
            g
            for g, highest in found.highest.items()
            if self._slots.oldest.item(g) < self._clock.reaches(highest)
        )
        groups = np.array(closing, np.int64)
        if not closing:
            return groups, groups, groups < 0
        chained = self._slots.open_of(groups)
        return (
            groups,
            chained,
            self._slots.stop[chained] < self._clock.t(self._slots.group[chained]),
        )

    def _fit(self, slots: Sequence[int], arguments: Sequence[Sequence[Any]]) -> bool:
        """Whether no sum of whole numbers can leave its type."""
        for number in self._whole:
            if any(v is not None and abs(v) > _MOST_ADDED for v in arguments[number.part.argument]):
                return False
            if any(slot >= 0 and abs(number.held(slot)) > _MOST_HELD for slot in slots):
                return False
        return True

    def _add(self, slots: Sequence[int], arguments: Sequence[Sequence[Any]]) -> None:
        for number in self._numbers.values():
            values = repeat(1) if number.part.argument < 0 else arguments[number.part.argument]
            for slot, value in zip(slots, values):  # noqa: B905  repeat has no end
                if value is not None:
                    number.add_one(slot, value)
        self._slots.touch(slots)

    def _make_results(
        self, slots: Sequence[int], tables: Mapping[int, str], came: int
    ) -> FewResults:
        """The values of windows."""
        held = [
            {name: number.held(slot) for name, number in self._numbers.items()} for slot in slots
        ]
        made: dict[str, list[Any]] = {
            name: [value(parts) for parts in held] for name, value in self._values.items()
        }
        made["_wstart"] = starts = [
            self._grid.begins(self._slots.index.item(slot)) for slot in slots
        ]
        length = self._grid.length
        count = len(slots)
        made |= {
            "_wend": [s + length for s in starts],
            "_wduration": [length] * count,
            "_now": [came] * count,
        }
        groups = [self._slots.group.item(slot) for slot in slots]
        made["_k0"] = [tables[group] for group in groups]
        return self._layout.upserts(made, [self._groups.targets.one(group) for group in groups])


def few_windows(
    scope: Scope,
    picked: Picked,
    grid: Grid,
    aggregates: Aggregates,
    groups: Groups,
    results: Results,
    slots: Slots,
    clock: GroupClock,
) -> FewWindows | None:
    """Return the short way of a kernel made of these, or None if its plan has none."""
    plan = scope.plan
    if (
        not (
            groups.by_name
            and grid.tumbling
            and grid.length
            and aggregates.elementwise
            and results.few
        )
        or plan.idle_timeout
    ):
        return None
    arguments = [_argument(scope, sql) for sql in aggregates.arguments.texts]
    values = {item.name: _value(aggregates, item) for item in aggregates.items}
    numbers = {
        part.columns[0]: n
        for part, n in zip(aggregates.parts, slots.accumulators, strict=True)
        if isinstance(n, Number)
    }
    known = {*values, "_wstart", "_wend", "_wduration", "_now", *groups.columns}
    if None in arguments or None in values.values() or not results.reads <= known:
        return None
    return FewWindows(plan, picked, grid, groups, results, slots, clock, arguments, numbers, values)  # type: ignore[arg-type]


def _argument(scope: Scope, sql: str) -> _Argument | None:
    compiled = scope.over_rows(sql)
    if not compiled.expr.meta.is_column():
        return None
    return _Argument(compiled.expr.meta.root_names()[0], compiled.type.kind in ("FLOAT", "DOUBLE"))


def _value(aggregates: Aggregates, item: Aggregate) -> _Value | None:
    """How the aggregate's value follows from its parts, if it has the type of that already."""
    count = aggregates.held("n", item)
    n = count.columns[0]
    if item.function == "count":
        return (lambda parts: parts[n]) if item.type.polars() == count.dtype else None
    if item.function == "avg":
        total = aggregates.held("sum", item).columns[0]
        if item.type.polars() != pl.Float64:
            return None
        if aggregates.wide(item):
            rough = aggregates.held("sum", item, rough=True).columns[0]
            return lambda parts: (
                unwrapped(parts[total], parts[rough]) / parts[n] if parts[n] else None
            )
        return lambda parts: _finite(float(parts[total]) / parts[n]) if parts[n] else None
    if item.function not in ("sum", "min", "max"):
        return None
    part = aggregates.held(item.function, item)  # type: ignore[arg-type]
    name = part.columns[0]
    if item.type.polars() != part.dtype:
        return None
    if item.function == "sum" and part.dtype.is_float():
        return lambda parts: _finite(parts[name]) if parts[n] else None
    if item.function == "sum" and aggregates.wide(item):
        about = aggregates.held("sum", item, rough=True).columns[0]
        least, most = _WITHIN[part.dtype.is_signed_integer()]
        return lambda parts: (
            _between(unwrapped(parts[name], parts[about]), least, most) if parts[n] else None
        )
    return lambda parts: parts[name] if parts[n] else None


def _between(value: int, least: int, most: int) -> int | None:
    return value if least <= value <= most else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
