"""Random streams and what happens to them: a plan, its statement and the events of a conformance
case, all from one seed.
"""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.calculator import PERCENT, Plan

BASE = 1_700_006_400_000
TABLES = (
    "CREATE STABLE met (ts TIMESTAMP, a INT, b INT, c INT, d INT) TAGS (ta INT)",
    *(f"CREATE TABLE d{i} USING met TAGS ({i})" for i in range(3)),
)
_WINDOWS = (
    ("interval", 100, 100),
    ("interval", 100, 50),
    ("interval", 90, 30),
    ("session", 30),
    ("session", 90),
    ("state",),
    ("event",),
    ("count", 3, 3),
    ("count", 4, 2),
    ("rows",),
)
_CLAUSE = {
    "interval": "INTERVAL({0}a) SLIDING({1}a)",
    "session": "SESSION(ts, {0}a)",
    "state": "STATE_WINDOW(b)",
    "event": "EVENT_WINDOW START WITH b = 1 END WITH d >= 7",
    "count": "COUNT_WINDOW({0}, {1})",
    "rows": "",
}
_BY = {
    "interval": ["", "tbname", "c", "tbname, c"],
    "session": ["", "tbname", "c"],
    "rows": ["tbname", "tbname, c"],
}
#: longer than every delay; by the clock, longer than all rows
_LATER = ["ADVANCE", 7_200_000]
_LATER_FORCED = ["ADVANCE", 12_000]
#: one window for all rows of `_many`
_WIDE = ("interval", 600, 600)


def plan(chance: random.Random) -> Plan:
    """A stream that the planner takes."""
    window = chance.choice(_WINDOWS)
    kind = window[0]
    triggers = ["AT_ONCE", "AT_ONCE", "WINDOW_CLOSE", "WINDOW_CLOSE", "MAX_DELAY 5s"]
    if kind == "interval":
        triggers.append("CONTINUOUS_WINDOW_CLOSE")
    trigger = "AT_ONCE" if kind == "rows" else chance.choice(triggers)
    if kind == "interval" and chance.random() < 0.3:
        return _forced(chance)
    sketch = kind != "rows" and chance.random() < 0.25
    if sketch and kind == "interval" and chance.random() < 0.3:
        window = _WIDE
    return Plan(
        window=window,
        trigger=trigger,
        watermark=chance.choice([40, 200] if kind == "count" else [0, 0, 40, 200]),
        ignore_expired=kind == "count" or chance.random() < 0.5,
        ignore_update=chance.random() < 0.5,
        by=chance.choice(_BY.get(kind, ["tbname"])),
        where=chance.random() < 0.3,
        history=trigger == "AT_ONCE" and chance.random() < 0.3,
        fill=kind == "interval" and chance.random() < 0.25,
        sketch=sketch,
    )


def _forced(chance: random.Random) -> Plan:
    """A stream that goes by the clock: no expiry, no copies and no history, and windows that do not
    overlap.
    """
    return Plan(
        window=("interval", 100, 100),
        trigger="FORCE_WINDOW_CLOSE",
        watermark=chance.choice([0, 0, 40, 200]),
        ignore_expired=True,
        ignore_update=True,
        by=chance.choice(["tbname", "tbname, c"]),
        where=chance.random() < 0.3,
        history=False,
        fill=chance.random() < 0.25,
        sketch=chance.random() < 0.25,
    )


def statement(made: Plan, notify: bool) -> str:
    """The CREATE STREAM of a plan."""
    kind, *numbers = made.window
    key = {"": "", "tbname": ", tbname k", "c": ", c k", "tbname, c": ", tbname k, c"}[made.by]
    by = f" PARTITION BY {made.by}" if made.by else ""
    select = (
        "ts ws, a s"
        if kind == "rows"
        else "_wstart ws, _wend we, count(*) n, sum(a) s, min(a) lo, max(a) hi"
    )
    if made.sketch:
        select += f", hyperloglog(a) h, apercentile(a, {PERCENT}) p"
    options = f" WATERMARK {made.watermark}a IGNORE EXPIRED {int(made.ignore_expired)} IGNORE UPDATE {int(made.ignore_update)}"
    clause = "INTERVAL({0}a)" if made.forced else _CLAUSE[kind]
    if made.forced or made.trigger == "CONTINUOUS_WINDOW_CLOSE":
        options = f" WATERMARK {made.watermark}a"
    elif kind == "rows":
        options = f" IGNORE UPDATE {int(made.ignore_update)}"
    return (
        f"CREATE STREAM s1 TRIGGER {made.trigger}{options}{' FILL_HISTORY 1' if made.history else ''} INTO out1 AS SELECT {select}{key}"
        f" FROM met{' WHERE d > 2' if made.where else ''}{by} {clause.format(*numbers)}{' FILL(NULL)' if made.fill else ''}"
        f"{NOTIFY if notify else ''}"
    )


NOTIFY = " NOTIFY ('ws://127.0.0.1:1/n') ON ('WINDOW_CLOSE')"


def events(chance: random.Random, made: Plan) -> list[list[Any]]:
    """Writes that mostly go forward in time, late ones, repeats, deletes, and the moment at which
    the stream is created.
    """
    happened: list[list[Any]] = []
    written: list[tuple[str, int]] = []
    now = 0
    for _ in range(chance.randint(1, 16)):
        if chance.random() < 0.12:
            low = (
                chance.choice(written)[1]
                if written and chance.random() < 0.7
                else BASE + chance.randint(0, 500)
            )
            happened.append(
                [
                    "DELETE",
                    chance.choice(["d0", "d1", "met"]),
                    low,
                    low + chance.choice([0, 0, 20, 80]),
                ]
            )
            continue
        rows = []
        for _ in range(chance.randint(1, 5)):
            table = f"d{chance.randint(0, 2)}"
            ts = BASE + chance.randint(0, 500)
            if chance.random() < 0.7:
                now += chance.choice([0, 1, 7, 25, 120])
                ts = BASE + now
            elif written and chance.random() < 0.5:
                table, ts = chance.choice(written)
            written.append((table, ts))
            a = chance.choice([None, *range(-9, 10)])
            b = chance.choice([None, 0, 1, 1, 2])
            row = {"ts": ts, "a": a, "b": b, "c": chance.randint(0, 1), "d": chance.randint(0, 9)}
            if chance.random() < 0.05:
                # it names no NULL: what a kernel is given has no way to tell that from a column
                # that is not named
                row = {
                    name: value
                    for name, value in row.items()
                    if name == "ts" or (value is not None and chance.random() < 0.5)
                }
            rows.append([table, row])
        happened.append(["BATCH", rows])
        if made.forced and chance.random() < 0.5:
            happened.append(["ADVANCE", chance.choice([1, 40, 100, 250])])
    if made.window == _WIDE:
        happened += _many(chance)
    if made.window[0] in ("state", "event", "count") and made.ignore_update:
        # two rows of one time may begin two windows, and the result has one row for both: whose,
        # nobody promises
        happened = _without_repeats(happened)
    begin = 0
    if made.history or chance.random() < (0.3 if made.forced else 0.1):
        begin = chance.randint(0, len(happened))
        happened.insert(begin, ["CREATE_STREAM"])
        begin += 1
    if chance.random() < 0.25:
        happened = _paused(chance, happened, begin)
    return [*happened, _LATER_FORCED if made.forced else _LATER]


def _paused(chance: random.Random, happened: list[list[Any]], begin: int) -> list[list[Any]]:
    """The same with a pause somewhere behind *begin*."""
    first, last = sorted(chance.randint(begin, len(happened)) for _ in range(2))
    resume = ["RESUME", "IGNORE UNTREATED"] if chance.random() < 0.25 else ["RESUME"]
    return [*happened[:first], ["PAUSE"], *happened[first:last], resume, *happened[last:]]


def _many(chance: random.Random) -> list[list[Any]]:
    """More values than a digest keeps as they are, in two writes that have to be merged."""
    tables = chance.choice([["d0"], ["d0", "d1", "d2"]])
    rows = [
        [
            chance.choice(tables),
            {
                "ts": BASE + i,
                "a": chance.randint(-500, 500),
                "b": 1,
                "c": chance.choice([0, 0, 0, 1]),
                "d": 5,
            },
        ]
        for i in range(500)
    ]
    return [["BATCH", rows[:250]], ["BATCH", rows[250:]]]


def _without_repeats(happened: list[list[Any]]) -> list[list[Any]]:
    """The same with one row of each table and time."""
    seen: set[tuple[str, int]] = set()
    made: list[list[Any]] = []
    for kind, *rest in happened:
        if kind == "BATCH":
            rest = [
                [
                    (table, row)
                    for table, row in rest[0]
                    if (table, row["ts"]) not in seen and not seen.add((table, row["ts"]))
                ]
            ]  # type: ignore[func-returns-value]
        if kind != "BATCH" or rest[0]:
            made.append([kind, *rest])
    return made
