"""PAUSE STREAM around any kernel: what arrives meanwhile is kept in order and worked off by RESUME.

RESUME … IGNORE UNTREATED has the rows skipped instead (they stay in the source table). Of the
clock's ticks only the last counts. While history is filled (`fill` to `filled`) rows wait in the
same way. What waited is worked off with the history of the time when it came, so a DELETE finds the
rows that it took. Refuses to look into rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from penstock.rows.rows import Rows
from penstock.windows.emit.few_results import FewResults, TakesFew
from penstock.windows.emit.output import joined
from penstock.windows.kernel import (
    EARLIEST,
    LATEST,
    Control,
    Delta,
    Emission,
    History,
    Kernel,
    Rewindable,
)

_STATE = "pause"
_ROWS = "pause.rows"
_SKIPPED = "skipped"
_SCHEMA = {
    "at": pl.Int64(),
    "kind": pl.String(),
    "time": pl.Int64(),
    "tables": pl.List(pl.String()),
    "low": pl.Int64(),
    "high": pl.Int64(),
    "mark": pl.String(),
    "filling": pl.Boolean(),
    "since": pl.Int64(),
    "settled": pl.Int64(),
}


@dataclass(frozen=True)
class _Skipped:
    """Rows that came while the stream was paused and are left out."""

    rows: pl.DataFrame


class PausableKernel:
    """Passes everything on to *inner* unless the stream is paused, or its history is being
    filled.
    """

    def __init__(self, inner: Kernel, identity: list[str], history: History | None = None) -> None:
        self.inner = inner
        self._take_few = inner.take_few if isinstance(inner, TakesFew) else None
        self._identity = identity
        self._history = history if isinstance(history, Rewindable) else None
        self._paused = self._filling = False
        #: how many of those kept came before the pause
        self._since = 0
        #: what waits, each with the mark of the history when it came
        self._kept: list[tuple[pl.DataFrame | _Skipped | Control, str]] = []
        self._tick: Control | None = None
        self._changed = False

    def apply(self, rows: pl.DataFrame) -> Emission:
        if not self._holds:
            return self.inner.apply(rows)
        if rows.height:
            self._keep(rows)
            self._changed = True
        return Emission()

    def take_few(self, rows: Rows) -> FewResults | None:
        """See `TakesFew`."""
        return None if self._take_few is None or self._holds else self._take_few(rows)

    @property
    def _holds(self) -> bool:
        return self._paused or self._filling

    def _keep(self, item: pl.DataFrame | Control) -> None:
        self._kept.append((item, self._history.mark() if self._history is not None else ""))

    def control(self, control: Control) -> Emission:
        if control.kind == "pause":
            if not self._paused:
                self._paused, self._since, self._changed = True, len(self._kept), True
            return Emission()
        if control.kind in ("resume", "resume_skip"):
            if self._paused and control.kind == "resume_skip":
                # rows deleted from the source are gone from the stream too, whatever became of
                # those written
                self._kept[self._since :] = [
                    (_Skipped(item) if isinstance(item, pl.DataFrame) else item, mark)
                    for item, mark in self._kept[self._since :]
                ]
            self._changed = self._changed or self._paused
            self._paused = False
            return Emission() if self._filling else self._release()
        if control.kind in ("fill", "filled"):
            self._filling = control.kind == "fill"
            self._changed = True
            return Emission() if self._holds else self._release()
        if not self._holds:
            return self.inner.control(control)
        self._changed = True
        if control.kind == "tick":
            self._tick = control
        else:
            self._keep(control)
        return Emission()

    def _release(self) -> Emission:
        """Work off what waited."""
        kept = self._kept
        tick = self._tick
        self._kept = []
        self._tick = None
        made: list[Emission] = []
        try:
            for item, mark in kept:
                if self._history is not None:
                    self._history.at(mark)
                if isinstance(item, _Skipped):
                    self.inner.skip(item.rows)
                elif isinstance(item, Control):
                    made.append(self.inner.control(item))
                else:
                    made.append(self.inner.apply(item))
        finally:
            if self._history is not None:
                self._history.at("")
        if tick is not None:
            made.append(self.inner.control(tick))
        return joined(made, self._identity)

    def skip(self, rows: pl.DataFrame) -> None:
        self.inner.skip(rows)

    def load_history(self, low: int = EARLIEST, high: int = LATEST) -> Emission:
        return self.inner.load_history(low, high)

    def open_windows(self) -> pl.DataFrame:
        return self.inner.open_windows()

    def delta(self, full: bool = False) -> Delta:
        inner = self.inner.delta(full)
        if not (full or self._changed):
            return inner
        self._changed = False
        frames = dict(inner.frames)
        kept = [*self._kept, *([(self._tick, "")] if self._tick else [])]
        lines = [
            self._line(i, _control_of(item)) | {"mark": mark} for i, (item, mark) in enumerate(kept)
        ]
        state = self._line(-1, Control("paused" if self._paused else "running")) | {
            "filling": self._filling,
            "since": self._since,
        }
        frames[_STATE] = pl.DataFrame([state, *lines], schema=_SCHEMA)
        rows = [
            (item.rows if isinstance(item, _Skipped) else item).with_columns(
                pl.lit(i).cast(pl.Int64).alias("_at")
            )
            for i, (item, _) in enumerate(self._kept)
            if not isinstance(item, Control)
        ]
        if rows:
            frames[_ROWS] = pl.concat(rows)
        return Delta(frames, inner.full)

    @staticmethod
    def _line(at: int, control: Control) -> dict[str, object]:
        return {
            "at": at,
            "kind": control.kind,
            "time": control.time,
            "tables": control.tables,
            "low": control.low,
            "high": control.high,
            "settled": control.settled,
        }

    def restore(self, deltas: Iterable[Delta]) -> None:
        inner = []
        for delta in deltas:
            inner.append(
                Delta(
                    {n: f for n, f in delta.frames.items() if n not in (_STATE, _ROWS)}, delta.full
                )
            )
            if _STATE in delta.frames:
                self._take(delta.frames[_STATE], delta.frames.get(_ROWS))
        self.inner.restore(inner)
        self._changed = False

    def _take(self, state: pl.DataFrame, rows: pl.DataFrame | None) -> None:
        self._kept = []
        self._tick = None
        for line in state.iter_rows(named=True):
            mark = line.get("mark") or ""
            if line["at"] < 0:
                self._paused = line["kind"] == "paused"
                # states of earlier versions know of no filling
                self._filling = bool(line.get("filling"))
                self._since = line.get("since") or 0
            elif line["kind"] not in ("", _SKIPPED):
                tables = tuple(line["tables"]) if line["tables"] is not None else None
                control = Control(
                    line["kind"],
                    line["time"],
                    tables,
                    line["low"],
                    line["high"],
                    line.get("settled"),
                )
                if control.kind == "tick":
                    self._tick = control
                else:
                    self._kept.append((control, mark))
            elif rows is not None:
                held = rows.filter(pl.col("_at") == line["at"]).drop("_at")
                self._kept.append((_Skipped(held) if line["kind"] else held, mark))


def _control_of(item: pl.DataFrame | _Skipped | Control) -> Control:
    """Return what stands for a kept item in the saved state."""
    if isinstance(item, Control):
        return item
    return Control(_SKIPPED if isinstance(item, _Skipped) else "")
