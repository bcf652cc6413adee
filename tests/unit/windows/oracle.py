"""What a stream must publish, worked out the slow way: live rows in a list, windows by one pass
over them, no state kept.

Takes events of the conformance format and knows AT_ONCE and WINDOW_CLOSE, all window kinds, expiry,
updates and deletes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

Values = dict[str, Any]


@dataclass(frozen=True)
class Live:
    """A live row. It counts in windows whose last tick is not below `floor`."""

    table: str
    ts: int
    values: Values
    arrival: int
    floor: int = -(10**18)


@dataclass(frozen=True)
class Setting:
    """The stream under test. `window` is ("interval", size, sliding), ("session", tol), ("state",),
    ("event",) or ("count", n, k).
    """

    window: tuple[Any, ...]
    closing: bool
    watermark: int
    ignore_expired: bool
    ignore_update: bool
    by: str
    where: bool


@dataclass(frozen=True)
class Window:
    start: int
    end: int
    stop: int
    rows: tuple[Live, ...]


class Oracle:
    """Feed events, then ask for `published`."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.live: list[Live] = []
        self.top: dict[Any, int] = {}
        self.tables: dict[str, int] = {}
        self.arrivals = 0

    def group(self, row: Live) -> Any:
        return {"": (), "tbname": row.table, "c": row.values["c"]}[self.setting.by]

    def t(self, group: Any) -> int:
        return self.top[group] - self.setting.watermark if group in self.top else -(10**18)

    def passes(self, row: Live) -> bool:
        return not self.setting.where or row.values["d"] > 2

    def write(self, rows: list[tuple[str, Values]]) -> None:
        t = {group: self.t(group) for group in self.top}
        tables = dict(self.tables)
        for table, values in rows:
            self.arrivals += 1
            row = Live(table, values["ts"], values, self.arrivals)
            kept = self._judged(row, t.get(self.group(row), -(10**18)), tables)
            if kept is None:
                continue
            if not self.setting.ignore_update:
                self.live = [r for r in self.live if (r.table, r.ts) != (row.table, row.ts)]
            if self.passes(row):
                self.live.append(kept)
        for table, values in rows:
            row = Live(table, values["ts"], values, 0)
            if self.passes(row):
                self.top[self.group(row)] = max(self.top.get(self.group(row), row.ts), row.ts)
                self.tables[table] = max(self.tables.get(table, row.ts), row.ts)

    def _judged(self, row: Live, t: int, tables: dict[str, int]) -> Live | None:
        """None: expired."""
        if not self.setting.ignore_expired or row.ts >= tables.get(row.table, -(10**18)):
            return row
        kind, *rest = self.setting.window
        if kind != "interval":
            return None if row.ts < t else row
        size, sliding = rest
        last = row.ts // sliding * sliding
        return None if last + size - 1 < t else replace(row, floor=t)

    def delete(self, table: str, low: int, high: int) -> None:
        self.live = [
            r for r in self.live if not ((table in ("met", r.table)) and low <= r.ts <= high)
        ]

    def published(self) -> list[Values]:
        groups: dict[Any, list[Live]] = defaultdict(list)
        for row in self.live:
            groups[self.group(row)].append(row)
        made = []
        for group, rows in groups.items():
            ordered = sorted(rows, key=lambda r: (r.ts, r.arrival))
            for window in getattr(self, f"_{self.setting.window[0]}")(ordered):
                if not self.setting.closing or window.stop < self.t(group):
                    made.append(self._result(group, window))
        return made

    def _result(self, group: Any, window: Window) -> Values:
        a = [r.values["a"] for r in window.rows if r.values["a"] is not None]
        row: Values = {
            "ws": window.start,
            "we": window.end,
            "n": len(window.rows),
            "s": sum(a) if a else None,
            "lo": min(a, default=None),
            "hi": max(a, default=None),
        }
        return row | ({"k": group} if self.setting.by else {})

    def _interval(self, rows: list[Live]) -> list[Window]:
        _, size, sliding = self.setting.window
        windows: dict[int, list[Live]] = defaultdict(list)
        for row in rows:
            start = row.ts // sliding * sliding
            while start > row.ts - size:
                if start + size - 1 >= row.floor:
                    windows[start].append(row)
                start -= sliding
        return [Window(s, s + size, s + size - 1, tuple(r)) for s, r in windows.items()]

    def _session(self, rows: list[Live]) -> list[Window]:
        tolerance = self.setting.window[1]
        runs: list[list[Live]] = []
        for row in rows:
            if runs and row.ts - runs[-1][-1].ts <= tolerance:
                runs[-1].append(row)
            else:
                runs.append([row])
        return [Window(r[0].ts, r[-1].ts + tolerance, r[-1].ts, tuple(r)) for r in runs]

    def _state(self, rows: list[Live]) -> list[Window]:
        runs: list[list[Live]] = []
        for row in rows:
            if row.values["b"] is None:
                continue
            if runs and runs[-1][-1].values["b"] == row.values["b"]:
                runs[-1].append(row)
            else:
                runs.append([row])
        return [Window(r[0].ts, r[-1].ts, r[-1].ts, tuple(r)) for r in runs]

    def _event(self, rows: list[Live]) -> list[Window]:
        made: list[Window] = []
        inside: list[Live] | None = None
        for row in rows:
            if inside is None and row.values["b"] == 1:
                inside = []
            if inside is not None:
                inside.append(row)
                if row.values["d"] >= 7:
                    made.append(Window(inside[0].ts, row.ts, row.ts, tuple(inside)))
                    inside = None
        return made

    def _count(self, rows: list[Live]) -> list[Window]:
        _, size, sliding = self.setting.window
        cut = [rows[i : i + size] for i in range(0, len(rows), sliding)]
        return [Window(r[0].ts, r[-1].ts, r[-1].ts, tuple(r)) for r in cut]
