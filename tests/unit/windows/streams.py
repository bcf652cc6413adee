"""Random streams and what happens to them, as conformance cases."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.conformance.case import Case
from tests.unit.windows.oracle import Setting

BASE = 1_700_006_400_000
TABLES = (
    "CREATE STABLE met (ts TIMESTAMP, a INT, b INT, c INT, d INT) TAGS (ta INT)",
    *(f"CREATE TABLE d{i} USING met TAGS ({i})" for i in range(3)),
)
_CLAUSE = {
    "interval": "INTERVAL({0}a) SLIDING({1}a)",
    "session": "SESSION(ts, {0}a)",
    "state": "STATE_WINDOW(b)",
    "event": "EVENT_WINDOW START WITH b = 1 END WITH d >= 7",
    "count": "COUNT_WINDOW({0}, {1})",
}

windows = st.sampled_from(
    [
        ("interval", 100, 100),
        ("interval", 100, 50),
        ("session", 30),
        ("state",),
        ("event",),
        ("count", 3, 3),
        ("count", 4, 2),
    ]
)


@st.composite
def settings(draw: st.DrawFn) -> Setting:
    window = draw(windows)
    count = window[0] == "count"
    return Setting(
        window=window,
        closing=draw(st.booleans()),
        watermark=draw(st.sampled_from([40, 200] if count else [0, 40, 200])),
        ignore_expired=count or draw(st.booleans()),
        ignore_update=draw(st.booleans()),
        by=draw(st.sampled_from(["", "tbname", "c"]))
        if window[0] in ("interval", "session")
        else "tbname",
        where=draw(st.booleans()),
    )


def statement(setting: Setting, extra: str = "", trigger: str = "", notify: str = "") -> str:
    """The CREATE STREAM of a setting."""
    kind, *numbers = setting.window
    key = {"": "", "tbname": ", tbname k", "c": ", c k"}[setting.by]
    by = {"": "", "tbname": " PARTITION BY tbname", "c": " PARTITION BY c"}[setting.by]
    return (
        f"CREATE STREAM s1 TRIGGER {trigger or ('WINDOW_CLOSE' if setting.closing else 'AT_ONCE')} WATERMARK {setting.watermark}a"
        f" IGNORE EXPIRED {int(setting.ignore_expired)} IGNORE UPDATE {int(setting.ignore_update)} {extra} INTO out1 AS"
        f" SELECT _wstart ws, _wend we, count(*) n, sum(a) s, min(a) lo, max(a) hi{key} FROM met"
        f"{' WHERE d > 2' if setting.where else ''}{by} {_CLAUSE[kind].format(*numbers)} {notify}"
    )


times = st.integers(0, 400).map(lambda t: BASE + t)
rows = st.fixed_dictionaries(
    {
        "ts": times,
        "a": st.none() | st.integers(-9, 9),
        "b": st.none() | st.integers(0, 2),
        "c": st.integers(0, 1),
        "d": st.integers(0, 9),
    }
)
tables = st.sampled_from(["d0", "d1", "d2"])


@st.composite
def events(draw: st.DrawFn, controls: bool = False) -> list[list[Any]]:
    """Writes that mostly go forward in time, and deletes; with *controls* also the clock, pauses
    and snapshots.
    """
    made: list[list[Any]] = []
    now = 0
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.integers(0, 11))
        if kind == 0:
            low = draw(times)
            made.append(
                [
                    "DELETE",
                    draw(st.sampled_from(["d0", "d1", "met"])),
                    low,
                    low + draw(st.integers(0, 80)),
                ]
            )
        elif kind == 1 and controls:
            made.append(
                draw(
                    st.sampled_from(
                        [
                            ["ADVANCE", 3000],
                            ["ADVANCE", 700_000],
                            ["PAUSE"],
                            ["RESUME"],
                            ["SNAPSHOT"],
                        ]
                    )
                )
            )
        else:
            written = []
            for _ in range(draw(st.integers(1, 5))):
                row = dict(draw(rows))
                if draw(st.integers(0, 3)):
                    now += draw(st.integers(0, 25))
                    row["ts"] = BASE + now
                written.append([draw(tables), row])
            made.append(["BATCH", written])
    return made


def case(text: str, happened: list[list[Any]]) -> Case:
    """A conformance case without expectations."""
    return Case.read({"id": "random", "tables": list(TABLES), "stream": text, "events": happened})
