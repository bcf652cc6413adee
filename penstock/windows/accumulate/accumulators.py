"""What each part of an aggregate keeps per slot, as arrays to which a call's pairs are added.

    Number   counts, sums, minima, maxima: one array
    Moments  mean and squared deviations (`moment_accumulator`)
    Pick     first, last, last_row, min and max with companions (`pick_accumulator`)
    Rest     sketches, texts, decimals: partials merged by polars, a line each

A call computes what its rows come to once (`Call`), so that streams share it. A slot is a number
and knows no window; freed slots are reset when they are used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import polars as pl

from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.accumulate.moment_accumulator import Moments
from penstock.windows.accumulate.pick_accumulator import Pick
from penstock.windows.accumulate.slot_lines import SlotLines
from penstock.windows.assign.calls import Array, Call
from penstock.windows.clocks.ticks import grown
from penstock.windows.general.parts import Part
from penstock.windows.groups.key_index import Numbers


class Accumulator(Protocol):
    """What `Slots` asks of each; `read` gives the part's columns of a partial frame."""

    def grow(self, size: int) -> None: ...

    def reset(self, slots: Numbers) -> None: ...

    def add(self, slots: Numbers, call: Call) -> None:
        """Add the rows of each of the call's pairs to its slot."""
        ...

    def put(self, slots: Numbers, partials: pl.DataFrame) -> None: ...

    def read(self, slots: Numbers) -> list[pl.Series]: ...

    def compact(self, live: Numbers) -> None: ...


class Number:
    """One machine number per slot."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._name = part.columns[0]
        dtype = pl.Series([], dtype=part.dtype).to_numpy().dtype
        self._nothing: float | int = 0
        if part.kind in ("min", "max"):
            limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
            low, high = (-np.inf, np.inf) if dtype.kind == "f" else (limits.min, limits.max)
            self._nothing = (
                float(high if part.kind == "min" else low)
                if dtype.kind == "f"
                else int(high if part.kind == "min" else low)
            )
        self._values: Array = np.empty(0, dtype)
        self._into: np.ufunc = {"min": np.minimum, "max": np.maximum}.get(part.kind, np.add)

    def grow(self, size: int) -> None:
        self._values = grown(self._values, size, self._nothing)

    def reset(self, slots: Numbers) -> None:
        self._values[slots] = self._nothing

    def add(self, slots: Numbers, call: Call) -> None:
        number = self.part.argument
        held = self._values.take(slots)
        if self.part.kind == "n":
            self._values[slots] = held + call.counts(number)
        elif self.part.kind == "sum":
            self._values[slots] = call.add_to(number, self.part.dtype, held)
        else:
            self._values[slots] = self._into(
                held, call.extremes(number, self.part.dtype, self._nothing, self._into)
            )

    def add_one(self, slot: int, value: Any) -> None:
        """Add a row whose argument is *value*, which is not NULL and within the type also when it
        is added.
        """
        held = self._values.item(slot)
        if self.part.kind == "n":
            value = held + 1
        elif self.part.kind == "sum":
            value = held + value
        elif self.part.kind == "min":
            value = held if held < value else value
        else:
            value = held if held > value else value
        self._values[slot] = value

    def held(self, slot: int) -> Any:
        """What a slot has."""
        return self._values.item(slot)

    def put(self, slots: Numbers, partials: pl.DataFrame) -> None:
        self._values[slots] = partials.get_column(self._name).fill_null(self._nothing).to_numpy()

    def read(self, slots: Numbers) -> list[pl.Series]:
        return [pl.Series(self._name, self._values.take(slots))]

    def compact(self, live: Numbers) -> None:
        pass


class Rest:
    """Parts that only polars can merge."""

    def __init__(self, aggregates: Aggregates, parts: Sequence[Part]) -> None:
        self._aggregates = aggregates
        self._parts = tuple(parts)
        self._columns = [c for p in self._parts for c in p.columns]
        self._lines = SlotLines()

    def grow(self, size: int) -> None:
        self._lines.lines = grown(self._lines.lines, size, 0)

    def reset(self, slots: Numbers) -> None:
        self._lines.lines[slots] = 0

    def add(self, slots: Numbers, call: Call) -> None:
        partials = call.once(self._parts, lambda: self._of(call))
        found = slots[partials.get_column("_slot").to_numpy()]
        partials = partials.with_columns(pl.Series("_slot", found))
        old = found[self._lines.lines[found] > 0]
        if len(old):
            known = self._lines.read(old)
            assert known is not None
            known = known.with_columns(pl.Series("_slot", old))
            partials = self._aggregates.merge(
                pl.concat([known, partials.select(known.columns)]), ["_slot"], parts=self._parts
            )
            found = partials.get_column("_slot").to_numpy()
        self._lines.put(found, partials.select(self._columns))

    def _of(self, call: Call) -> pl.DataFrame:
        """Partials of the pairs, `_slot` being a pair's place."""
        return self._aggregates.partial(
            call.lines.with_columns(pl.Series("_slot", call.place)), ["_slot"], parts=self._parts
        )

    def put(self, slots: Numbers, partials: pl.DataFrame) -> None:
        self._lines.put(slots, partials.select(self._columns))

    def read(self, slots: Numbers) -> list[pl.Series]:
        found = self._lines.read(slots)
        assert found is not None, "a slot is read after it was added to"
        return found.get_columns()

    def compact(self, live: Numbers) -> None:
        self._lines.compact(live)


def accumulators(aggregates: Aggregates) -> list[Accumulator]:
    """Return one for each part of *aggregates*; all that needs polars goes together."""
    counts = {p.argument: p.columns[0] for p in aggregates.parts if p.kind == "n"}
    made: list[Accumulator] = []
    rest: list[Part] = []
    for part in aggregates.parts:
        if part.elementwise:
            made.append(Number(part))
        elif part.kind == "moments":
            made.append(Moments(part, counts[part.argument]))
        elif aggregates.key is None and _fits_arrays(part):
            made.append(Pick(part, aggregates.time, aggregates.pick_schema(part)))
        else:
            rest.append(part)
    return [*made, Rest(aggregates, rest)] if rest else made


def _fits_arrays(part: Part) -> bool:
    """Tell whether *part* is a pick whose choice arrays of numbers can hold."""
    numeric = part.dtype.is_numeric() and not part.dtype.is_decimal()
    return part.kind == "pick" and (numeric or part.order not in ("min", "max"))
