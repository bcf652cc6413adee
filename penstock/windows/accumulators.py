"""Accumulators: what each part of an aggregate keeps per slot, as arrays to which a call's pairs
are added.

    Number   counts, sums, minima, maxima: one array Moments  mean and squared deviations: a call's
    own are computed first and merged by Chan's rule Pick     first, last, last_row, min and max
    with companions: the time (and value) of the chosen row in arrays, what it
             brings along in a `Log`
    Rest     sketches, texts, decimals: partials merged by polars, kept in a `Log`

What a call's rows come to is the call's to know (`Call`), so that streams share it. Refuses to know
windows: a slot is a number, freed slots are reset when they are used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import polars as pl

from penstock.windows.aggregates import Aggregates, Part
from penstock.windows.calls import Array, Call
from penstock.windows.groups import Numbers
from penstock.windows.steps import NEVER, Ticks, grown


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
            self._values[slots] = call.summed(number, lambda: self._argument(call), held)
        else:
            self._values[slots] = self._into(
                held, call.once((self.part.kind, number), lambda: self._extremes(call))
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

    def _argument(self, call: Call) -> Array:
        x = call.argument(self.part.argument)
        if x.dtype != self.part.dtype:
            x = x.cast(self.part.dtype)
        if x.null_count():
            x = x.fill_null(pl.lit(self._nothing, dtype=self.part.dtype))
        return x.to_numpy()

    def _extremes(self, call: Call) -> Array:
        found = np.full(len(call), self._nothing, self._values.dtype)
        self._into.at(found, call.place, self._argument(call))
        return found

    def put(self, slots: Numbers, partials: pl.DataFrame) -> None:
        self._values[slots] = partials.get_column(self._name).fill_null(self._nothing).to_numpy()

    def read(self, slots: Numbers) -> list[pl.Series]:
        return [pl.Series(self._name, self._values.take(slots))]

    def compact(self, live: Numbers) -> None:
        pass


class Moments:
    """Number, mean and sum of squared deviations of an argument; *count* names the column with the
    number in a partial frame.
    """

    def __init__(self, part: Part, count: str) -> None:
        self._part = part
        self._count = count
        self._n: Array = np.empty(0, np.int64)
        self._mean: Array = np.empty(0, np.float64)
        self._m2: Array = np.empty(0, np.float64)
        #: what the mean is above the double in `_mean`
        self._low: Array = np.empty(0, np.float64)

    def grow(self, size: int) -> None:
        self._n = grown(self._n, size, 0)
        self._mean = grown(self._mean, size, 0)
        self._m2 = grown(self._m2, size, 0)
        self._low = grown(self._low, size, 0)

    def reset(self, slots: Numbers) -> None:
        for array in (self._n, self._mean, self._m2, self._low):
            array[slots] = 0

    def add(self, slots: Numbers, call: Call) -> None:
        n, mean, m2, low = call.once(("moments", self._part.argument), lambda: self._of(call))
        some = n > 0
        slots = slots[some]
        n = n[some]
        mean = mean[some]
        m2 = m2[some]
        low = low[some]
        before = self._n[slots]
        held = self._mean[slots]
        first = before == 0
        held[first] = mean[first]
        total = before + n
        delta = (mean - held) + (low - self._low[slots])
        self._n[slots] = total
        self._mean[slots], self._low[slots] = _two_sum(held, self._low[slots] + delta * (n / total))
        self._m2[slots] += m2 + delta**2 * (before * (n / total))

    def _of(self, call: Call) -> tuple[Array, Array, Array, Array]:
        """Number, mean, squared deviations and low part of the mean of each pair."""
        x = call.argument(self._part.argument)
        place = call.place
        size = len(call)
        if x.null_count():
            place = place[x.is_not_null().to_numpy()]
            x = x.drop_nulls()
        values = x.cast(pl.Float64).to_numpy()
        n = np.bincount(place, minlength=size)
        pivot = np.zeros(size)
        pivot[place] = values
        above = values - pivot[place]
        some = np.maximum(n, 1)
        share = np.bincount(place, above, size) / some
        apart = above - share[place]
        m2 = np.bincount(place, apart**2, size) - np.bincount(place, apart, size) ** 2 / some
        mean, low = _two_sum(pivot, share)
        return n, mean, np.maximum(m2, 0.0), low

    def put(self, slots: Numbers, partials: pl.DataFrame) -> None:
        columns = (self._count, *self._part.columns)
        for array, column in zip((self._n, self._mean, self._m2, self._low), columns, strict=True):
            array[slots] = partials.get_column(column).to_numpy()

    def read(self, slots: Numbers) -> list[pl.Series]:
        return [
            pl.Series(c, a.take(slots))
            for c, a in zip(self._part.columns, (self._mean, self._m2, self._low), strict=True)
        ]

    def compact(self, live: Numbers) -> None:
        pass


def _two_sum(large: Array, small: Array) -> tuple[Array, Array]:
    """The sum as a double, and what it is short of the exact one."""
    total = large + small
    back = total - large
    return total, (large - (total - back)) + (small - back)


class Log:
    """A line of a frame per slot: new lines go to the end, dead ones go when they are the most.
    Line 0 is all NULL.
    """

    def __init__(self) -> None:
        self.lines: Array = np.empty(0, np.int64)
        self._frame: pl.DataFrame | None = None

    def put(self, slots: Numbers, frame: pl.DataFrame) -> None:
        if self._frame is None:
            self._frame = frame.clear(1)
        base = self._frame.height
        self._frame = self._frame.vstack(frame.select(self._frame.columns))
        self.lines[slots] = np.arange(base, base + len(slots))
        if self._frame.n_chunks() > 64:
            self._frame = self._frame.rechunk()

    def read(self, slots: Numbers) -> pl.DataFrame | None:
        """Lines of *slots*; None before the first `put`."""
        return None if self._frame is None else self._frame[self.lines.take(slots)]

    def compact(self, live: Numbers) -> None:
        if self._frame is None or self._frame.height < 2 * len(live) + 4096:
            return
        held = live[self.lines[live] > 0]
        lines = np.concatenate(([0], self.lines[held]))
        self._frame = self._frame[lines].rechunk()
        self.lines[held] = np.arange(1, len(held) + 1)


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
        self._log = Log()

    def grow(self, size: int) -> None:
        self._times = grown(self._times, size, NEVER)  # type: ignore[assignment]
        self._values = grown(self._values, size, 0)
        self._log.lines = grown(self._log.lines, size, 0)

    def reset(self, slots: Numbers) -> None:
        self._times[slots] = NEVER
        self._log.lines[slots] = 0

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
            self._log.put(slots, pl.DataFrame(columns))

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
        self._log.put(slots, partials.select(self._part.columns))

    def read(self, slots: Numbers) -> list[pl.Series]:
        found = self._log.read(slots)
        if found is None:
            return [pl.Series(c, [None] * len(slots), dtype=t) for c, t in self._schema.items()]
        return found.get_columns()

    def compact(self, live: Numbers) -> None:
        self._log.compact(live)


class Rest:
    """Parts that only polars can merge."""

    def __init__(self, aggregates: Aggregates, parts: Sequence[Part]) -> None:
        self._aggregates = aggregates
        self._parts = tuple(parts)
        self._columns = [c for p in self._parts for c in p.columns]
        self._log = Log()

    def grow(self, size: int) -> None:
        self._log.lines = grown(self._log.lines, size, 0)

    def reset(self, slots: Numbers) -> None:
        self._log.lines[slots] = 0

    def add(self, slots: Numbers, call: Call) -> None:
        partials = call.once(self._parts, lambda: self._of(call))
        found = slots[partials.get_column("_slot").to_numpy()]
        partials = partials.with_columns(pl.Series("_slot", found))
        old = found[self._log.lines[found] > 0]
        if len(old):
            known = self._log.read(old)
            assert known is not None
            known = known.with_columns(pl.Series("_slot", old))
            partials = self._aggregates.merge(
                pl.concat([known, partials.select(known.columns)]), ["_slot"], parts=self._parts
            )
            found = partials.get_column("_slot").to_numpy()
        self._log.put(found, partials.select(self._columns))

    def _of(self, call: Call) -> pl.DataFrame:
        """Partials of the pairs, `_slot` being a pair's place."""
        return self._aggregates.partial(
            call.lines.with_columns(pl.Series("_slot", call.place)), ["_slot"], parts=self._parts
        )

    def put(self, slots: Numbers, partials: pl.DataFrame) -> None:
        self._log.put(slots, partials.select(self._columns))

    def read(self, slots: Numbers) -> list[pl.Series]:
        found = self._log.read(slots)
        assert found is not None, "a slot is read after it was added to"
        return found.get_columns()

    def compact(self, live: Numbers) -> None:
        self._log.compact(live)


def accumulators(aggregates: Aggregates) -> list[Accumulator]:
    """One for each part of *aggregates*; all that needs polars goes together."""
    made: list[Accumulator] = []
    rest: list[Part] = []
    counts = {p.argument: p.columns[0] for p in aggregates.parts if p.kind == "n"}
    for part in aggregates.parts:
        numeric = part.dtype.is_numeric() and not part.dtype.is_decimal()
        if part.elementwise:
            made.append(Number(part))
        elif part.kind == "moments":
            made.append(Moments(part, counts[part.argument]))
        elif (
            part.kind == "pick"
            and aggregates.key is None
            and (numeric or part.order not in ("min", "max"))
        ):
            made.append(Pick(part, aggregates.time, aggregates.pick_schema(part)))
        else:
            rest.append(part)
    if rest:
        made.append(Rest(aggregates, rest))
    return made
