"""What a kernel remembers of its stream: live rows, and the windows cut from them, by partition.

The latest window of each partition (its head) stands apart, so that rows in order touch one line
per partition; windows that T has not passed wait in `pending`, the others in `done`. A delta holds
what changed since the last one: rows added and removed, and all windows of the partitions that were
touched. Refuses to know what a window is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.windows.general.live_pieces import LivePieces

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Store:
    """Rows and windows of one kernel."""

    def __init__(self, rows: pl.DataFrame, windows: pl.DataFrame, time: str) -> None:
        """*rows* and *windows* are empty and give the layouts; *time* is the rows' time column."""
        self._live = LivePieces(rows, time)
        self.heads = windows
        self.pending = windows
        self.done = windows
        self._head_at: Numbers = np.full(64, -1, np.int64)
        self._groups = 0
        self._added: list[pl.DataFrame] = []
        self._removed: list[pl.Series] = []
        self._touched: Mask = np.zeros(64, np.bool_)

    def reserve(self, groups: int) -> None:
        """Make room for partitions numbered below *groups*."""
        self._groups = max(self._groups, groups)
        if groups > len(self._head_at):
            size = max(groups, 2 * len(self._head_at))
            heads = np.full(size, -1, np.int64)
            touched = np.zeros(size, np.bool_)
            heads[: len(self._head_at)] = self._head_at
            touched[: len(self._touched)] = self._touched
            self._head_at = heads
            self._touched = touched

    # ---------------------------------------------------------------- rows

    @property
    def rows(self) -> pl.DataFrame:
        """All live rows, unordered."""
        return self._live.all

    @property
    def count(self) -> int:
        """Number of live rows."""
        return self._live.count

    def add(self, rows: pl.DataFrame) -> None:
        """Take rows over."""
        if rows.height:
            self._live.add(rows)
            self._added.append(rows)

    def remove(self, gone: pl.DataFrame) -> None:
        """Forget rows (by their arrival number)."""
        if gone.height:
            self._live.remove(gone.get_column("_seq").to_numpy())
            self._removed.append(gone.get_column("_seq"))

    def like(self, rows: pl.DataFrame, identity: list[str]) -> pl.DataFrame:
        """Live rows that agree with one of *rows* in *identity*, the time among it."""
        near = self._live.at(rows.get_column(self._live.time).to_numpy())
        return pl.concat(
            [
                self.rows.clear(),
                *(piece.join(rows, on=identity, how="semi", nulls_equal=True) for piece in near),
            ]
        )

    def within(self, spans: pl.DataFrame) -> pl.DataFrame:
        """Live rows of partitions `_g` between their `_from` and `_to`, with what else *spans* has;
        one line per partition.
        """
        mask = self._mask(spans.get_column("_g").to_numpy())
        near = self._live.between(
            spans.get_column("_from").to_numpy(), spans.get_column("_to").to_numpy()
        )
        mine = [piece.filter(pl.Series(mask[piece.get_column("_g").to_numpy()])) for piece in near]
        found = pl.concat([self.rows.clear(), *mine]).join(spans, on="_g")
        return found.filter(pl.col(self._live.time).is_between(pl.col("_from"), pl.col("_to")))

    # ---------------------------------------------------------------- windows

    def _mask(self, groups: Numbers) -> Mask:
        mask = np.zeros(max(self._groups, 1), np.bool_)
        mask[groups] = True
        return mask

    def head_lines(self, groups: Numbers) -> Numbers:
        """Line in `heads` of each partition's head, -1 where there is none."""
        return self._head_at[groups]

    def open_windows(self, t: Numbers) -> pl.DataFrame:
        """Return the windows that T of their group has not passed, by group and start."""
        known = pl.concat([self.heads, self.pending]).sort("_g", "_wstart")
        stop = known.get_column("_stop").to_numpy()
        return known.filter(pl.Series(stop >= t[known.get_column("_g").to_numpy()]))

    def groups_with(self, state: int, count: int) -> Mask:
        """Tell which of *count* groups have an unsettled window whose `_pub` is *state*."""
        shown = np.zeros(count, np.bool_)
        for windows in (self.heads, self.pending):
            shown[windows.filter(pl.col("_pub") == state).get_column("_g").to_numpy()] = True
        return shown

    def take(self, groups: Numbers, since: Numbers | None = None) -> pl.DataFrame:
        """Remove and return all windows of some partitions; *since*: of those that are done, only
        what a change from then on may reach.

        Args:
            groups: numbers of partitions.
            since: a time for each partition there is. A window that is done before it and waits for
                nothing stays where it is.
        """
        mask = self._mask(groups)
        self._touched[groups] = True
        taken = []
        for name in ("heads", "pending", "done"):
            frame: pl.DataFrame = getattr(self, name)
            if frame.height:
                numbers = frame.get_column("_g").to_numpy()
                chosen = mask[numbers]
                if since is not None and name == "done":
                    chosen &= (
                        frame.get_column("_stop").to_numpy() >= since[numbers]
                    ) | frame.get_column("_dirty").to_numpy()
                    if not chosen.any():
                        continue
                mine = pl.Series(chosen)
                taken.append(frame.filter(mine))
                setattr(self, name, frame.filter(~mine))
        self._index()
        return pl.concat(taken, rechunk=True) if taken else self.heads.clear()

    def put(self, windows: pl.DataFrame, t: Numbers) -> None:
        """Take windows over; *t* is T by partition. What was there of these partitions, but for
        what is done, was taken before.
        """
        if not windows.height:
            return
        ordered = windows.select(self.heads.columns).sort("_g", "_wstart", "_sseq")
        numbers = ordered.get_column("_g").to_numpy()
        last = np.append(numbers[1:] != numbers[:-1], True)
        self.heads = pl.concat([self.heads, ordered.filter(pl.Series(last))], rechunk=True)
        self._keep(ordered.filter(pl.Series(~last)), t)
        self._index()

    def advance(
        self, groups: Numbers, heads: pl.DataFrame, behind: pl.DataFrame, t: Numbers
    ) -> None:
        """Put new *heads* in the place of those of *groups*; windows *behind* them are kept as
        pending or done.
        """
        self._touched[groups] = True
        lines = self._head_at[groups]
        keep = np.ones(self.heads.height, np.bool_)
        keep[lines[lines >= 0]] = False
        self.heads = pl.concat(
            [self.heads.filter(pl.Series(keep)), heads.select(self.heads.columns)], rechunk=True
        )
        self._keep(behind.select(self.heads.columns), t)
        self._index()

    def overdue(self, groups: Numbers, t: Numbers) -> pl.DataFrame:
        """Remove and return the pending windows that T has passed."""
        if not self.pending.height:
            return self.pending
        passed = (
            self.pending.get_column("_stop").to_numpy()
            < t[self.pending.get_column("_g").to_numpy()]
        )
        if not passed.any():
            return self.pending.clear()
        self._touched[groups] = True
        over = self.pending.filter(pl.Series(passed))
        self.pending = self.pending.filter(pl.Series(~passed))
        return over

    def forget(self, horizon: Numbers) -> None:
        """Drop done windows below their partition's *horizon*; one of overlapping windows that
        reaches past it holds rows that stay.
        """
        if self.done.height:
            numbers = self.done.get_column("_g").to_numpy()
            kept = (
                self.done.get_column("_stop").to_numpy() >= horizon[numbers]
            ) | self.done.get_column("_dirty").to_numpy()
            self._touched[numbers[~kept]] = True
            self.done = self.done.filter(pl.Series(kept)).rechunk()

    def _keep(self, windows: pl.DataFrame, t: Numbers) -> None:
        if not windows.height:
            return
        over = pl.Series(
            windows.get_column("_stop").to_numpy() < t[windows.get_column("_g").to_numpy()]
        )
        self.pending = pl.concat([self.pending, windows.filter(~over)], rechunk=True)
        self.done = pl.concat(
            [self.done, windows.filter(over).rechunk()], rechunk=self.done.n_chunks() > 32
        )

    def _index(self) -> None:
        self._head_at.fill(-1)
        self._head_at[self.heads.get_column("_g").to_numpy()] = np.arange(self.heads.height)

    # ---------------------------------------------------------------- state

    def delta(self, full: bool) -> dict[str, pl.DataFrame]:
        """Frames of what changed since the last call."""
        everything = pl.concat([self.heads, self.pending, self.done])
        if full:
            frames = {"rows": self.rows, "windows": everything}
        else:
            touched = np.flatnonzero(self._touched[: self._groups]).astype(np.int64)
            mine = pl.Series(self._touched[everything.get_column("_g").to_numpy()])
            frames = {
                "windows": everything.filter(mine),
                "windows.gone": pl.DataFrame({"_g": touched}),
            }
            if self._removed:
                frames["rows.gone"] = pl.concat(self._removed).to_frame()
            if self._added:
                added = pl.concat(self._added)
                frames["rows"] = (
                    added.join(frames["rows.gone"], on="_seq", how="anti")
                    if self._removed
                    else added
                )
        self._added = []
        self._removed = []
        self._touched[:] = False
        return {name: frame for name, frame in frames.items() if frame.height}

    def restore(self, frames: dict[str, pl.DataFrame], t: Numbers) -> None:
        """Apply what `delta` gave; *t* is T by partition as of then."""
        if "rows.gone" in frames:
            self.remove(frames["rows.gone"])
        if "rows" in frames:
            self.add(frames["rows"])
        if "windows.gone" in frames:
            self.take(frames["windows.gone"].get_column("_g").to_numpy())
        if "windows" in frames:
            self.put(frames["windows"].cast(dict(self.heads.schema)), t)  # type: ignore[arg-type]
        self._added = []
        self._removed = []
        self._touched[:] = False
