"""PAUSE STREAM around any kernel: what arrives meanwhile is kept in order and worked off by RESUME.

RESUME … IGNORE UNTREATED drops it instead (the rows stay in the source table). Of the clock's ticks only the last counts.
Refuses to look into rows.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from penstock.windows.kernel import Control, Delta, Emission, Kernel

_STATE = "pause"
_ROWS = "pause.rows"
_SCHEMA = {
    "at": pl.Int64(), "kind": pl.String(), "time": pl.Int64(), "tables": pl.List(pl.String()), "low": pl.Int64(), "high": pl.Int64(),
}  # fmt: skip


class PausableKernel:
    """Passes everything on to *inner* unless the stream is paused."""

    def __init__(self, inner: Kernel, identity: list[str]) -> None:
        self.inner = inner
        self._identity = identity
        self._paused = False
        self._kept: list[pl.DataFrame | Control] = []
        self._tick: Control | None = None
        self._changed = False

    def apply(self, rows: pl.DataFrame) -> Emission:
        if not self._paused:
            return self.inner.apply(rows)
        if rows.height:
            self._kept.append(rows)
            self._changed = True
        return Emission()

    def control(self, control: Control) -> Emission:
        if control.kind == "pause":
            self._changed = self._changed or not self._paused
            self._paused = True
            return Emission()
        if control.kind in ("resume", "resume_skip"):
            return self._resume(skip=control.kind == "resume_skip")
        if not self._paused:
            return self.inner.control(control)
        self._changed = True
        if control.kind == "tick":
            self._tick = control
        else:
            self._kept.append(control)
        return Emission()

    def _resume(self, skip: bool) -> Emission:
        kept, tick = self._kept, self._tick
        self._changed = self._changed or self._paused
        self._paused, self._kept, self._tick = False, [], None
        made: list[Emission] = []
        for item in kept:
            if isinstance(item, Control):
                # rows deleted from the source are gone from the stream too, whatever became of those written
                made.append(self.inner.control(item))
            elif not skip:
                made.append(self.inner.apply(item))
        if tick is not None:
            made.append(self.inner.control(tick))
        return self._joined(made)

    def _joined(self, made: list[Emission]) -> Emission:
        def one(frames: list[pl.DataFrame | None]) -> pl.DataFrame | None:
            given = [f for f in frames if f is not None]
            return pl.concat(given, how="diagonal") if given else None

        rows = one([m.rows for m in made])
        if rows is not None:
            rows = rows.unique(subset=self._identity, keep="last", maintain_order=True)
        events = [event for m in made for event in m.events]
        return Emission(rows=rows, events=events, late=one([m.late for m in made]), failed=one([m.failed for m in made]))

    def load_history(self) -> Emission:
        return self.inner.load_history()

    def open_windows(self) -> pl.DataFrame:
        return self.inner.open_windows()

    def delta(self, full: bool = False) -> Delta:
        inner = self.inner.delta(full)
        if not (full or self._changed):
            return inner
        self._changed = False
        frames = dict(inner.frames)
        kept = [*self._kept, *([self._tick] if self._tick else [])]
        lines = [self._line(i, k if isinstance(k, Control) else Control("")) for i, k in enumerate(kept)]
        state = self._line(-1, Control("paused" if self._paused else "running"))
        frames[_STATE] = pl.DataFrame([state, *lines], schema=_SCHEMA)
        rows = [k.with_columns(pl.lit(i).cast(pl.Int64).alias("_at")) for i, k in enumerate(self._kept) if isinstance(k, pl.DataFrame)]
        if rows:
            frames[_ROWS] = pl.concat(rows)
        return Delta(frames, inner.full)

    @staticmethod
    def _line(at: int, control: Control) -> dict[str, object]:
        return {"at": at, "kind": control.kind, "time": control.time, "tables": control.tables, "low": control.low, "high": control.high}

    def restore(self, deltas: Iterable[Delta]) -> None:
        inner = []
        for delta in deltas:
            inner.append(Delta({n: f for n, f in delta.frames.items() if n not in (_STATE, _ROWS)}, delta.full))
            if _STATE in delta.frames:
                self._take(delta.frames[_STATE], delta.frames.get(_ROWS))
        self.inner.restore(inner)
        self._changed = False

    def _take(self, state: pl.DataFrame, rows: pl.DataFrame | None) -> None:
        self._kept, self._tick = [], None
        for line in state.iter_rows(named=True):
            if line["at"] < 0:
                self._paused = line["kind"] == "paused"
            elif line["kind"]:
                tables = tuple(line["tables"]) if line["tables"] is not None else None
                control = Control(line["kind"], line["time"], tables, line["low"], line["high"])
                if control.kind == "tick":
                    self._tick = control
                else:
                    self._kept.append(control)
            elif rows is not None:
                self._kept.append(rows.filter(pl.col("_at") == line["at"]).drop("_at"))
