"""Old rows are let go and read again when a correction reaches back: the bound on a kernel's
memory.

Every partition has a horizon; live rows and windows below it are not in memory. `trim` moves
horizons up to the windows that may still change by themselves (and one before them), `load` moves
them down again through `History` as far as a change reaches. What is read again must be what was
live: rows that came before the stream or were dropped as late are left out, and rows that storage
does not keep as they counted (a repeated row's earlier copies, one whose update was dropped, fails
WHERE or counts in some of its windows only) never leave memory. Refuses to work without a History:
then everything stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from penstock.rows.copies import find_copies
from penstock.sql.plan import TICKS_PER_SECOND
from penstock.windows.assign.ingest import Ingest
from penstock.windows.assign.regions import Regions
from penstock.windows.clocks.clock import GroupClock
from penstock.windows.clocks.ticks import NEVER, Highest, Ticks
from penstock.windows.general.bound import Bound
from penstock.windows.general.store import Numbers, Store
from penstock.windows.general.stored_rows import StoredRows
from penstock.windows.kernel import History

#: how far back the first, second … reading goes, in seconds; after them everything is read
_STEPS = (600, 86_400, 30 * 86_400)


class Evictor:
    """Horizons of one kernel."""

    def __init__(
        self,
        ingest: Ingest,
        store: Store,
        clock: GroupClock,
        regions: Regions,
        history: History | None,
        remembered: Callable[[pl.DataFrame], pl.DataFrame],
        unique: bool,
        room: int,
    ) -> None:
        """*remembered*: rows (sorted) → their windows, as remembered once published and closed.
        *unique*: a repeat replaces. *room*: live rows that are kept in any case.
        """
        self.ingest = ingest
        self.store = store
        self.clock = clock
        self.regions = regions
        self.stored = StoredRows(ingest, history)
        self.bound = Bound(room)
        self._remembered = remembered
        self._unique = unique
        plan = ingest.plan
        second = TICKS_PER_SECOND[plan.source.precision]
        counts = plan.window is not None and plan.window.kind == "count"
        #: how far back the first, second … reading goes, in ticks; None: everything is read
        self._steps: list[int | None] = (
            [None] if counts else [*(seconds * second for seconds in _STEPS), None]
        )
        #: first time in memory per partition; NEVER: all of it is
        self.horizon = Highest()
        #: arrival numbers of rows that storage lacks, or has otherwise than they count
        self.unstored = store.rows.select("_seq").clear()
        #: rows below a horizon that storage does not keep
        self.extras = store.rows.clear()

    def keep(self, live: pl.DataFrame) -> None:
        """Remember *live* rows (by `_seq`) as ones that storage lacks, or has otherwise than they
        count.
        """
        if self.stored.history is not None and live.height:
            self.unstored = pl.concat([self.unstored, live.select("_seq")], rechunk=True)

    def count_again(self, rows: pl.DataFrame, low: int, high: int) -> None:
        """All stored *rows* of *low*..*high* (with `_offset`) count from now on, whatever came of
        them before.
        """
        self.keep(self.stored.count_again(rows, low, high))

    def supersede(self, rows: pl.DataFrame) -> None:
        """Prepared *rows* that do not count themselves replace what is stored: what counts in their
        place stays in memory.
        """
        if self.stored.history is None or not rows.height:
            return
        identity = self.ingest.identity
        latest = rows.group_by(identity).agg(pl.col("_seq").max().alias("_until"))
        counted = self.store.like(rows.select(identity), identity).join(
            latest, on=identity, nulls_equal=True
        )
        self.keep(counted.filter(pl.col("_seq") < pl.col("_until")))
        if not self.bound.trimmed:
            return
        below = rows.filter(pl.col(self.ingest.time) < int(self.horizon.values.max()))
        if below.height and (stored := self._like(below)) is not None:
            place = (
                stored.get_column(self.ingest.time).to_numpy()
                < self.horizon.values[stored.get_column("_g").to_numpy()]
            )
            saved = stored.filter(pl.Series(place)).select(self.ingest.columns)
            saved = saved.join(
                self.extras.select(identity), on=identity, how="anti", nulls_equal=True
            )
            self.keep(saved)
            self.extras = pl.concat([self.extras, saved], rechunk=True)

    def _like(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        """Return stored rows of the stream that have the identity of one of *rows*; None without
        storage for them.
        """
        times = rows.get_column(self.ingest.time)
        names = self.ingest.tables_of(rows)
        stored = self.stored.fetch(times.min(), times.max(), names)  # type: ignore[arg-type]
        same = rows.select(self.ingest.identity)
        return (
            None
            if stored is None
            else stored.join(same, on=self.ingest.identity, how="semi", nulls_equal=True)
        )

    # ---------------------------------------------------------------- up

    def trim(self) -> None:
        """Let go of old rows when there are many."""
        if self.stored.history is None or self.bound.allows(self.store.count):
            return
        groups = len(self.ingest.groups)
        keep = self.clock.all_t()[:groups]
        done = self.store.done
        latest = done.group_by("_g").agg(pl.col("_wstart").max())
        for windows in (
            self.store.heads,
            self.store.pending,
            latest,
            done.filter(pl.col("_dirty")),
        ):
            if windows.height:
                np.minimum.at(
                    keep,
                    windows.get_column("_g").to_numpy(),
                    windows.get_column("_wstart").to_numpy(),
                )
        self.horizon.reserve(groups)
        numbers = np.flatnonzero(keep > self.horizon.values[:groups])
        self.horizon.raise_to(numbers, keep[numbers])
        rows = self.store.rows
        old = rows.filter(
            pl.Series(
                rows.get_column(self.ingest.time).to_numpy()
                < self.horizon.values[rows.get_column("_g").to_numpy()]
            )
        )
        self.extras = pl.concat([self.extras, self._find_unstored(old)], rechunk=True)
        self.store.remove(old)
        self.store.forget(self.horizon.values)
        self.bound.settle(self.store.count)

    def _find_unstored(self, old: pl.DataFrame) -> pl.DataFrame:
        """Rows among *old* that storage does not have, or has in another version."""
        rows = self.store.rows
        if not self._unique:
            # whatever partition they are in, and whichever of them is let go
            copies = find_copies(rows, self.ingest.identity)
            last = copies.sort("_seq").unique(self.ingest.identity, keep="last").select("_seq")
            self.keep(copies.join(last, on="_seq", how="anti"))
        if not self.unstored.height:
            return old.clear()
        held = pl.concat([rows.select("_seq"), self.extras.select("_seq")])
        self.unstored = self.unstored.unique(maintain_order=True).join(
            held, on="_seq", how="semi", maintain_order="left"
        )
        return old.join(self.unstored, on="_seq", how="semi")

    def _restore_unstored(self) -> pl.DataFrame:
        """The same of a state that an earlier version saved, which found out only as it let rows
        go: those whose update was dropped.
        """
        stale = self.store.rows.join(
            self.stored.dropped.select(self.ingest.identity),
            on=self.ingest.identity,
            how="semi",
            nulls_equal=True,
        )
        return pl.concat([self.extras.select("_seq"), stale.select("_seq")])

    # ---------------------------------------------------------------- down

    def load_for(self, rows: pl.DataFrame) -> None:
        """Bring into memory what prepared *rows* of the present call may reach, and what they may
        replace.
        """
        if self.stored.history is None or not self.bound.trimmed or not rows.height:
            return
        points = [rows.select("_g", pl.col(self.ingest.time).alias("_t"))]
        if not self.ingest.groups.whole:
            # a new version of a row may belong to another partition than those before it
            below = rows.filter(pl.col(self.ingest.time) < int(self.horizon.values.max()))
            if below.height:
                same = below.select(self.ingest.identity)
                earlier = self.extras.join(
                    same, on=self.ingest.identity, how="semi", nulls_equal=True
                )
                points += [
                    f.select("_g", pl.col(self.ingest.time).alias("_t"))
                    for f in (self._like(below), earlier)
                    if f is not None
                ]
        self.load(
            pl.concat(points)
            .group_by("_g")
            .agg(pl.col("_t").min().alias("_lo"), pl.col("_t").max().alias("_hi"))
        )

    def load_range(self, low: int, high: int, tables: Sequence[str] | None = None) -> None:
        """Bring into memory what a change of *low*..*high* may reach in the partitions of *tables*
        (None: in all).
        """
        if self.stored.history is not None and self.bound.trimmed:
            numbers = np.arange(len(self.ingest.groups))
            if tables is not None and self.ingest.groups.whole:
                numbers = self.ingest.tables_named(tables)
            horizon = self.horizon.values[numbers]
            known = horizon[horizon != NEVER]
            if not len(known):
                return
            if self.regions.by_window:
                # what is asked for may lie beyond anything a grid can count
                at = int(np.clip(low, known.min(), self.clock.highest[numbers].max()))
                below = numbers[horizon > min(low, self.regions.reach(at))]
            else:
                # a change above a horizon may reach the window before it, which lies below
                below = numbers[horizon != NEVER]
            top = np.minimum(self.clock.highest[below], high)
            self.load(pl.DataFrame({"_g": below, "_lo": np.minimum(low, top), "_hi": top}))

    def load(self, spans: pl.DataFrame) -> None:
        """Bring into memory all that a change of `_lo`.._hi` in partitions `_g` may reach."""
        self.horizon.reserve(len(self.ingest.groups))
        for step in self._steps:
            regions = self._lacking(spans)
            if not regions.height:
                return
            self._read(regions, step)

    def _lacking(self, spans: pl.DataFrame) -> pl.DataFrame:
        """The regions of those *spans* that reach below their horizon."""
        known = pl.concat([self.store.heads, self.store.pending, self.store.done])
        mask = np.zeros(len(self.ingest.groups), np.bool_)
        mask[spans.get_column("_g").to_numpy()] = True
        found = self.regions.find(
            spans.select("_g", "_lo", "_hi"),
            known.filter(pl.Series(mask[known.get_column("_g").to_numpy()])),
        )
        start = np.minimum(
            found.get_column("_from").to_numpy(),
            found.get_column("_lo").to_numpy() - self.regions.tolerance,
        )
        horizon = self.horizon.values[found.get_column("_g").to_numpy()]
        return found.filter(pl.Series((start < horizon) & (horizon != NEVER)))

    def _read(self, regions: pl.DataFrame, reach: int | None) -> None:
        """Read the partitions of *regions* again from *reach* ticks before the change (None: from
        the beginning) up to the horizon.
        """
        time = self.ingest.time
        numbers = regions.get_column("_g").to_numpy()
        horizon = self.horizon.values[numbers]
        low = NEVER
        if self.regions.by_window:
            low = int(regions.get_column("_from").to_numpy().min())
        elif reach is not None:
            # what changes may lie far above the horizon, and its region begin below
            least = min(
                int(regions.get_column("_lo").to_numpy().min()) - self.regions.tolerance,
                int(horizon.min()),
            )
            low = max(least - reach, NEVER)
        fresh = self.stored.fetch(low, int(horizon.max()) - 1, self.ingest.names_of(numbers))
        wanted = regions.select("_g", pl.Series("_horizon", horizon))
        back = self.extras.join(wanted, on="_g").filter(
            pl.col(time) < pl.col("_horizon"), pl.col(time) >= low
        )
        self.extras = self.extras.join(back.select("_seq"), on="_seq", how="anti")
        if fresh is not None:
            fresh = fresh.join(wanted, on="_g").filter(pl.col(time) < pl.col("_horizon"))
            if self._unique and back.height:
                fresh = fresh.join(
                    back.select(self.ingest.identity),
                    on=self.ingest.identity,
                    how="anti",
                    nulls_equal=True,
                )
            back = pl.concat([back.select(self.ingest.columns), fresh.select(self.ingest.columns)])
        self._add(back.select(self.ingest.columns), numbers, low)

    def _add(self, rows: pl.DataFrame, numbers: Numbers, low: int) -> None:
        """Rows read again and their windows. The first window of a partition may begin before
        *low*: it stays below the horizon.
        """
        both = rows
        horizon = self.horizon.values
        if self.regions.by_window:
            # windows that overlap hold rows on both sides of where memory began, or on the near
            # side only
            edge = pl.DataFrame(
                {
                    "_g": numbers,
                    "_from": horizon[numbers],
                    "_to": self.regions.last_tick(horizon[numbers] - 1),
                }
            )
            both = pl.concat([rows, self.store.within(edge).select(rows.columns)])
        windows = self._remembered(both.sort(*self.ingest.order))
        bounds = np.full(len(self.ingest.groups), low, np.int64)
        number = windows.get_column("_g").to_numpy()
        start = windows.get_column("_wstart").to_numpy()
        if self.regions.by_window:
            windows = windows.filter(pl.Series(start < horizon[number]), pl.col("_wstart") >= low)
        elif low != NEVER and windows.height:
            first = windows.sort("_g", "_wstart", "_sseq").unique(
                "_g", keep="first", maintain_order=True
            )
            bounds[first.get_column("_g").to_numpy()] = first.get_column("_stop").to_numpy() + 1
            windows = windows.filter(pl.Series(start >= bounds[number]))
            rows = self._leave_below(rows, bounds)
        # never above rows in memory: they would be read again beside themselves
        self.horizon.put(numbers, np.minimum(bounds[numbers], horizon[numbers]))
        self.store.add(rows)
        taken = self.store.take(numbers)
        kept = pl.concat([windows.select(taken.columns), taken], rechunk=True)
        # a window of the grid is known by its start; rows read again have new arrival numbers
        same = ["_g", "_wstart"] if self.regions.by_window else ["_g", "_wstart", "_stop", "_sseq"]
        self.store.put(kept.unique(same, keep="last", maintain_order=True), self.clock.all_t())

    def _leave_below(self, rows: pl.DataFrame, bounds: Ticks) -> pl.DataFrame:
        """Return *rows* without those below their partition's bound. Of these, keep what storage
        does not have.
        """
        times = rows.get_column(self.ingest.time).to_numpy()
        reached = pl.Series(times >= bounds[rows.get_column("_g").to_numpy()])
        left = rows.filter(~reached).join(self.unstored, on="_seq", how="semi")
        self.extras = pl.concat([self.extras, left.select(self.extras.columns)], rechunk=True)
        return rows.filter(reached)

    # ---------------------------------------------------------------- state

    def delta(self, full: bool) -> dict[str, pl.DataFrame]:
        """Horizons moved and rows dropped since the last call; rows storage lacks; where the stream
        began.
        """
        schema = {"first": pl.Int64(), "limit": pl.Int64(), "trimmed": pl.Boolean()}
        about = pl.DataFrame(
            [(self.stored.first, self.bound.limit, self.bound.trimmed)], schema=schema, orient="row"
        )
        frames = {"horizon": self.horizon.delta(full), "dropped": self.stored.delta(full)}
        return {
            **{n: f for n, f in frames.items() if f.height},
            "extras": self.extras,
            "unstored": self.unstored,
            "evictor": about,
        }

    def restore(self, frames: dict[str, pl.DataFrame]) -> None:
        """Apply what `delta` gave."""
        if "horizon" in frames:
            self.horizon.put(
                frames["horizon"].get_column("n").to_numpy(),
                frames["horizon"].get_column("value").to_numpy(),
            )
        first, self.bound.limit, self.bound.trimmed = frames["evictor"].row(0)
        self.stored.restore(frames.get("dropped"), first)
        self.extras = self.ingest.as_now(frames["extras"])
        self.unstored = frames["unstored"] if "unstored" in frames else self._restore_unstored()
