"""The row that `first`, `last`, `last_row`, `min` or `max` chose, per slot.

Its time (and value) are in arrays; what it brings along is a line of a frame.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.windows.accumulate.slot_lines import SlotLines
from penstock.windows.assign.calls import Array, Call
from penstock.windows.clocks.ticks import NEVER, Ticks, grown
from penstock.windows.general.parts import Part
from penstock.windows.groups.key_index import Numbers


class Pick:
    """The row that `first`, `last`, `last_row`, `min` or `max` chose."""

    def __init__(self, part: Part, time: str, schema: dict[str, pl.DataType]) -> None:
        self._part = part
        self._sources = [f"_x{part.argument}", time, *(f"_x{c}" for c in part.companions)]
        self._schema = schema
        self._by_value = part.order in ("min", "max")
        self._late = part.order in ("last", "last_row")
        self._times: Ticks = np.empty(0, np.int64)
        self._values: Array = np.empty(
            0, pl.Series([], dtype=part.dtype).to_numpy().dtype if self._by_value else np.int8
        )
        self._lines = SlotLines()

    def grow(self, size: int) -> None:
        self._times = grown(self._times, size, NEVER)  # type: ignore[assignment]
        self._values = grown(self._values, size, 0)
        self._lines.lines = grown(self._lines.lines, size, 0)

    def reset(self, slots: Numbers) -> None:
        self._times[slots] = NEVER
        self._lines.lines[slots] = 0

    def add(self, slots: Numbers, call: Call) -> None:
        pairs, rows, times, values = call.once(
            ("pick", self._part.argument, self._part.order), lambda: self._of(call)
        )
        slots = slots[pairs]
        old = self._times[slots]
        better = old == NEVER
        if self._by_value:
            held = self._values[slots]
            better |= values < held if self._part.order == "min" else values > held
            better |= (values == held) & (times < old)
            self._values[slots[better]] = values[better]
        else:
            better |= times >= old if self._late else times < old
        slots = slots[better]
        rows = rows[better]
        self._times[slots] = times[better]
        if len(slots):
            columns = [
                call.lines.get_column(s).gather(rows).alias(c)
                for s, c in zip(self._sources, self._part.columns, strict=True)
            ]
            self._lines.put(slots, pl.DataFrame(columns))

    def _of(self, call: Call) -> tuple[Numbers, Numbers, Ticks, Array]:
        """The pairs that have a row to choose, of each the line chosen, its time and (by value) its
        value.
        """
        x = call.argument(self._part.argument)
        size = len(call)
        rows = np.arange(len(x))
        if self._part.order != "last_row" and x.null_count():
            rows = np.flatnonzero(x.is_not_null().to_numpy())
        if self._by_value and len(rows):
            rows = self._best(x, rows, call.place, size)
        times = call.times[rows]
        place = call.place[rows]
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            rows = rows[order]
            times = times[order]
            place = place[order]
        at = np.full(size, -1 if self._late else len(rows))
        (np.maximum if self._late else np.minimum).at(at, place, np.arange(len(rows)))
        pairs = np.flatnonzero((at >= 0) & (at < len(rows)))
        at = at[pairs]
        rows = rows[at]
        times = times[at]
        return pairs, rows, times, x.gather(rows).to_numpy() if self._by_value else times

    def _best(self, x: pl.Series, rows: Numbers, place: Numbers, count: int) -> Numbers:
        """Those of *rows* that hold the least (greatest) value of their pair."""
        values = x.gather(rows).to_numpy()
        of = place[rows]
        best = np.empty(count, values.dtype)
        best[of] = values
        (np.minimum if self._part.order == "min" else np.maximum).at(best, of, values)
        kept: Numbers = rows[values == best[of]]
        return kept

    def put(self, slots: Numbers, partials: pl.DataFrame) -> None:
        times = partials.get_column(self._part.columns[1])
        self._times[slots] = times.fill_null(NEVER).to_numpy()
        if self._by_value:
            self._values[slots] = partials.get_column(self._part.columns[0]).fill_null(0).to_numpy()
        self._lines.put(slots, partials.select(self._part.columns))

    def read(self, slots: Numbers) -> list[pl.Series]:
        found = self._lines.read(slots)
        if found is None:
            return [pl.Series(c, [None] * len(slots), dtype=t) for c, t in self._schema.items()]
        return found.get_columns()

    def compact(self, live: Numbers) -> None:
        self._lines.compact(live)
