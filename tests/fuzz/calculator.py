"""What a stream must publish, worked out from the documented rules alone: all rows in a list, every
window cut anew, no state kept.

It shares no code with the kernels. It takes the events of a conformance case and knows every window
kind, expiry for each window, updates as replacements and as copies, deletes, history, pauses, and
the triggers whose last state is a function of the rows: AT_ONCE, WINDOW_CLOSE, MAX_DELAY and
CONTINUOUS_WINDOW_CLOSE after their last tick; FORCE_WINDOW_CLOSE by the clock. Of sketches it knows
the exact value, and what they may say instead. Refuses notifications and numbers of many digits.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

Values = dict[str, Any]
#: of apercentile
PERCENT = 30
#: values that a digest keeps as they are; beyond, the rank may be so many percent off
_EXACT = 400
_OFF = 2
_LONG_AGO = -(10**18)
_NEVER = 10**18


@dataclass(frozen=True)
class Plan:
    """A stream. `window`: ("interval", size, sliding), ("session", gap), ("state",), ("event",),
    ("count", n, step) or ("rows",).
    """

    window: tuple[Any, ...]
    trigger: str
    watermark: int
    ignore_expired: bool
    ignore_update: bool
    by: str
    where: bool
    history: bool
    fill: bool
    #: hyperloglog and apercentile are selected, too
    sketch: bool = False

    @property
    def forced(self) -> bool:
        return self.trigger == "FORCE_WINDOW_CLOSE"

    @property
    def replaces(self) -> bool:
        return not self.ignore_update or self.trigger == "CONTINUOUS_WINDOW_CLOSE"

    @property
    def expires(self) -> bool:
        return (
            self.ignore_expired
            and self.trigger != "CONTINUOUS_WINDOW_CLOSE"
            and self.window[0] != "rows"
        )

    @property
    def closes(self) -> bool:
        return self.trigger in ("WINDOW_CLOSE", "CONTINUOUS_WINDOW_CLOSE")


@dataclass(frozen=True)
class Copy:
    """A row that counts, in windows whose last tick is from `since` to before `until`."""

    table: str
    ts: int
    values: Values
    arrival: int
    since: int = _LONG_AGO
    until: int = _NEVER


@dataclass(frozen=True)
class Window:
    start: int
    end: int
    last: int
    rows: tuple[Copy, ...]


class Calculator:
    """Feed it events, then ask for `published`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.copies: list[Copy] = []
        self.stored: dict[tuple[str, int], Values] = {}
        self.top: dict[Any, int] = {}
        self.tables: dict[str, int] = {}
        self.arrivals = 0
        self.runs = False
        #: what came while the stream was paused; None: it is not
        self.held: list[list[Any]] | None = None
        self.clock = 0
        # of FORCE_WINDOW_CLOSE: the rows it has seen, the next window to close, the first with rows
        # of each group, what is published
        self.seen: dict[tuple[str, int], Values] = {}
        self.next = 0
        self.began: dict[Any, int] = {}
        self.closed: list[Values] = []

    def play(self, events: list[list[Any]], clock: int) -> None:
        """All *events* of a case that begins at *clock*."""
        self.clock = clock
        if not any(e[0] == "CREATE_STREAM" for e in events):
            self._create()
        for event in events:
            kind = event[0]
            if kind == "ADVANCE":
                self.clock += event[1]
                self._tick()
            elif kind == "CREATE_STREAM":
                self._create()
            elif kind == "PAUSE":
                if self.runs and self.held is None:
                    self.held = []
            elif kind == "RESUME":
                self._resume(untreated=len(event) > 1)
            elif self.held is not None:
                self.held.append(event)
            else:
                self._happen(event)

    def _happen(self, event: list[Any]) -> None:
        if event[0] == "BATCH":
            self._write([(table, row) for table, row in event[1]])
        elif event[0] == "DELETE":
            self._delete(*event[1:])

    def _resume(self, *, untreated: bool) -> None:
        """*untreated*: rows that came meanwhile are in the source table and nothing to the stream;
        deletes are.
        """
        held = self.held or []
        self.held = None
        for event in held:
            runs = self.runs
            self.runs = self.runs and not untreated
            self._happen(event)
            self.runs = runs
        self._tick()

    def _create(self) -> None:
        self.runs = True
        if self.plan.forced:
            self.seen = dict(self.stored)
            self.next = self.clock // self.plan.window[1]
        if not self.plan.history:
            return
        for (table, ts), values in self.stored.items():
            self.arrivals += 1
            row = Copy(table, ts, values, self.arrivals)
            if self._passes(row):
                self.copies.append(row)
                self._raise(row)

    def _write(self, rows: list[tuple[str, Values]]) -> None:
        t = {group: self._t(group) for group in self.top}
        tables = dict(self.tables)
        came: list[Copy] = []
        for table, given in rows:
            # a partial write leaves the other columns as they are; as a row of its own it has NULL
            # there
            blank = dict.fromkeys(("a", "b", "c", "d"))
            whole = blank | self.stored.get((table, given["ts"]), {}) | given
            self.stored[table, given["ts"]] = whole
            if not self.runs:
                continue
            if self.plan.forced:
                self.seen[table, given["ts"]] = whole
                continue
            self.arrivals += 1
            values = whole if self.plan.replaces or self.plan.window[0] == "rows" else blank | given
            row = Copy(table, given["ts"], values, self.arrivals)
            if self._passes(row):
                came.append(row)
            late = self.plan.expires and row.ts < tables.get(table, _LONG_AGO)
            self._take(row, t.get(self._group(row), _LONG_AGO) if late else _LONG_AGO)
        for row in came:
            self._raise(row)

    def _take(self, row: Copy, over: int) -> None:
        """*over*: windows whose last tick is before it are over for the row."""
        first, last = self._last_ticks(row.ts)
        if last < over:
            return
        since = over if first < over else _LONG_AGO
        if self.plan.replaces:
            same = [c for c in self.copies if (c.table, c.ts) == (row.table, row.ts)]
            kept = [replace(c, until=min(c.until, since)) for c in same]
            self.copies = [c for c in self.copies if c not in same] + [
                c for c in kept if c.since < c.until
            ]
        if self._passes(row):
            self.copies.append(replace(row, since=since))

    def _last_ticks(self, ts: int) -> tuple[int, int]:
        """The last tick of a row's first and last window."""
        if self.plan.window[0] != "interval":
            return ts, ts
        _, size, sliding = self.plan.window
        start = ts // sliding * sliding
        earliest = start
        while earliest - sliding > ts - size:
            earliest -= sliding
        return earliest + size - 1, start + size - 1

    def _delete(self, table: str, low: int, high: int) -> None:
        def hit(name: str, ts: int) -> bool:
            return table in ("met", name) and low <= ts <= high

        self.stored = {key: v for key, v in self.stored.items() if not hit(*key)}
        self.seen = {key: v for key, v in self.seen.items() if not hit(*key)}
        self.copies = [c for c in self.copies if not hit(c.table, c.ts)]

    def _raise(self, row: Copy) -> None:
        group = self._group(row)
        self.top[group] = max(self.top.get(group, row.ts), row.ts)
        self.tables[row.table] = max(self.tables.get(row.table, row.ts), row.ts)

    def _t(self, group: Any) -> int:
        return self.top[group] - self.plan.watermark if group in self.top else _LONG_AGO

    def _group(self, row: Copy) -> Any:
        return {
            "": None,
            "tbname": row.table,
            "c": row.values["c"],
            "tbname, c": (row.table, row.values["c"]),
        }[self.plan.by]

    def _passes(self, row: Copy) -> bool:
        return not self.plan.where or (row.values["d"] is not None and row.values["d"] > 2)

    # ---------------------------------------------------------------- the clock

    def _tick(self) -> None:
        """Close what is over by the clock, once and for good."""
        if not self.runs or not self.plan.forced or self.held is not None:
            return
        size = self.plan.window[1]
        first = self.next
        self.next = max(first, (self.clock - self.plan.watermark) // size)
        windows: dict[Any, dict[int, list[Copy]]] = defaultdict(lambda: defaultdict(list))
        for (table, ts), values in self.seen.items():
            row = Copy(table, ts, values, 0)
            if first <= ts // size < self.next and self._passes(row):
                windows[self._group(row)][ts // size].append(row)
        for group in {**self.began, **windows}:
            there = windows.get(group, {})
            self.began.setdefault(group, min(there, default=0))
            for i in range(max(first, self.began[group]), self.next):
                window = Window(
                    i * size, (i + 1) * size, (i + 1) * size - 1, tuple(there.get(i, ()))
                )
                if window.rows:
                    self.closed.append(self._result(group, window))
                elif self.plan.fill:
                    self.closed.append(self._blank(group, window))

    # ---------------------------------------------------------------- results

    def published(self) -> list[Values]:
        """The rows of the result as they are now; `_p`: between what `p` may be."""
        if self.plan.forced:
            return self.closed
        if self.plan.window[0] == "rows":
            latest = {
                (self._group(c), c.ts): c for c in sorted(self.copies, key=lambda c: c.arrival)
            }
            return [
                {"ws": c.ts, "s": c.values["a"]} | self._keys(group)
                for (group, _), c in latest.items()
            ]
        groups: dict[Any, list[Copy]] = defaultdict(list)
        for copy in self.copies:
            groups[self._group(copy)].append(copy)
        made: list[Values] = []
        for group, copies in groups.items():
            ordered = sorted(copies, key=lambda c: (c.ts, c.arrival))
            shown = [
                w
                for w in getattr(self, f"_{self.plan.window[0]}")(ordered)
                if not self.plan.closes or w.last < self._t(group)
            ]
            made += [self._result(group, w) for w in shown]
            if self.plan.fill:
                made += [self._blank(group, w) for w in self._gaps(shown)]
        return made

    def _blank(self, group: Any, window: Window) -> Values:
        """What FILL(NULL) gives for a window without rows."""
        filled = dict.fromkeys(
            ("n", "s", "lo", "hi", *(("h", "p", "_p") if self.plan.sketch else ()))
        )
        return {"ws": window.start, "we": window.end} | filled | self._keys(group)

    def _gaps(self, shown: list[Window]) -> list[Window]:
        _, size, sliding = self.plan.window
        starts = {w.start for w in shown}
        between = range(min(starts), max(starts), sliding) if starts else ()
        return [Window(s, s + size, s + size - 1, ()) for s in between if s not in starts]

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
        if self.plan.sketch:
            row |= {"h": len(set(a)), "p": _percentile(a, PERCENT), "_p": _near(a, PERCENT)}
        return row | self._keys(group)

    def _keys(self, group: Any) -> Values:
        """The columns that tell whose a result is."""
        if self.plan.by == "tbname, c":
            return {"k": group[0], "c": group[1]}
        return {"k": group} if self.plan.by else {}

    def _interval(self, rows: list[Copy]) -> list[Window]:
        _, size, sliding = self.plan.window
        windows: dict[int, list[Copy]] = defaultdict(list)
        for row in rows:
            start = row.ts // sliding * sliding
            while start > row.ts - size:
                if row.since <= start + size - 1 < row.until:
                    windows[start].append(row)
                start -= sliding
        return [Window(s, s + size, s + size - 1, tuple(r)) for s, r in windows.items()]

    def _session(self, rows: list[Copy]) -> list[Window]:
        gap = self.plan.window[1]
        runs: list[list[Copy]] = []
        for row in rows:
            if runs and row.ts - runs[-1][-1].ts <= gap:
                runs[-1].append(row)
            else:
                runs.append([row])
        return [Window(r[0].ts, r[-1].ts + gap, r[-1].ts, tuple(r)) for r in runs]

    def _state(self, rows: list[Copy]) -> list[Window]:
        runs: list[list[Copy]] = []
        for row in rows:
            if row.values["b"] is None:
                continue
            if runs and runs[-1][-1].values["b"] == row.values["b"]:
                runs[-1].append(row)
            else:
                runs.append([row])
        return [Window(r[0].ts, r[-1].ts, r[-1].ts, tuple(r)) for r in runs]

    def _event(self, rows: list[Copy]) -> list[Window]:
        made: list[Window] = []
        inside: list[Copy] = []
        for row in rows:
            if inside or row.values["b"] == 1:
                inside.append(row)
            if inside and row.values["d"] is not None and row.values["d"] >= 7:
                made.append(Window(inside[0].ts, row.ts, row.ts, tuple(inside)))
                inside = []
        return made

    def _count(self, rows: list[Copy]) -> list[Window]:
        _, size, step = self.plan.window
        cut = [rows[i : i + size] for i in range(0, len(rows), step)]
        return [Window(r[0].ts, r[-1].ts, r[-1].ts, tuple(r)) for r in cut]


def _percentile(values: list[int], percent: float) -> float | None:
    """The exact one, between neighbours in proportion."""
    if not values:
        return None
    ordered = sorted(values)
    place = percent * (len(ordered) - 1) / 100
    below = int(place)
    return ordered[below] + (ordered[min(below + 1, len(ordered) - 1)] - ordered[below]) * (
        place - below
    )


def _near(values: list[int], percent: float) -> tuple[float, float] | None:
    """Between what apercentile may be; None: it has to be exact."""
    if len(values) <= _EXACT:
        return None
    low = _percentile(values, percent - _OFF)
    high = _percentile(values, percent + _OFF)
    assert low is not None and high is not None
    return low, high
