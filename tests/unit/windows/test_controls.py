"""Controls of the general kernels: flush, idle time-out, recalculation, open windows, late rows,
children and exchange flags.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from penstock.sql import parse_one
from penstock.sql.plan import OPEN_SPAN, Duration, StreamPlan
from penstock.sql.planner import plan_stream
from penstock.sql.statements import CreateStream
from penstock.windows import Control, Emission, Kernel, make_kernel
from tests.conformance.memory import MemoryHistory
from tests.conformance.schema import Schema

T0 = 1_700_006_400_000


def planned(text: str, **changes: Any) -> StreamPlan:
    schema = Schema()
    for ddl in (
        "CREATE STABLE met (ts TIMESTAMP, a INT, b INT) TAGS (ta INT)",
        "CREATE TABLE d1 USING met TAGS (1)",
    ):
        schema.execute(ddl)
    statement = parse_one(text)
    assert isinstance(statement, CreateStream)
    plan = plan_stream(statement, schema, database=schema.database, stream_id=1, target_id=2).plan
    return plan if not changes else type(plan)(**{**plan.__dict__, **changes})


def frame(*rows: tuple[Any, ...], now: int = 0, **more: Any) -> pl.DataFrame:
    """Rows (table, ts, a), each a write of its own."""
    data = {
        "_step": range(len(rows)),
        "_offset": range(len(rows)),
        "_now": [T0 + now] * len(rows),
        "_op": [0] * len(rows),
        "tbname": [r[0] for r in rows],
        "ts": [T0 + r[1] for r in rows],
        "a": [r[2] for r in rows],
        "b": [0] * len(rows),
        "ta": [1] * len(rows),
    }
    schema = {
        "_step": pl.UInt32,
        "_offset": pl.Int64,
        "_now": pl.Int64,
        "_op": pl.Int8,
        "tbname": pl.String,
        "ts": pl.Int64,
        "a": pl.Int32,
        "b": pl.Int32,
        "ta": pl.Int32,
    }
    return pl.DataFrame(data, schema=schema).with_columns(
        **{k: pl.Series(v) for k, v in more.items()}
    )


def shown(emission: Emission) -> list[tuple[int, int, Any]]:
    """(op, start, count) of the rows."""
    if emission.rows is None:
        return []
    return [
        (op, start - T0, n) for op, start, n in emission.rows.select("_op", "ws", "n").iter_rows()
    ]


SESSION = "CREATE STREAM s INTO o AS SELECT _wstart ws, count(*) n FROM met PARTITION BY tbname SESSION(ts, 10a)"


def kernel(text: str = SESSION, **changes: Any) -> Kernel:
    return make_kernel(planned(text, **changes), MemoryHistory("ts"))


def test_flush_closes_and_a_row_behind_opens_again() -> None:
    k = kernel()
    assert shown(k.apply(frame(("d1", 0, 1), ("d1", 5, 1)))) == []
    assert shown(k.control(Control("flush"))) == [(0, 0, 2)]
    assert shown(k.apply(frame(("d1", 12, 1)))) == [(1, 0, None)]
    assert shown(k.apply(frame(("d1", 40, 1)))) == [(0, 0, 3)]


def test_idle_timeout_closes_the_last_window_once() -> None:
    k = kernel(idle_timeout=Duration(2, "s"))
    k.control(Control("tick", time=T0))
    k.apply(frame(("d1", 0, 1), now=0))
    assert shown(k.control(Control("tick", time=T0 + 1_000))) == []
    assert shown(k.control(Control("tick", time=T0 + 2_000))) == [(0, 0, 1)]
    assert shown(k.control(Control("tick", time=T0 + 9_000))) == []


def test_open_windows_are_those_not_closed() -> None:
    k = kernel()
    k.apply(frame(("d1", 0, 1), ("d1", 50, 1), ("d2", 7, 1)))
    open_now = k.open_windows()
    assert [(s - T0, n) for s, n in open_now.select("ws", "n").iter_rows()] == [(50, 1), (7, 1)]
    spans = open_now.select(pl.col(OPEN_SPAN) - T0).rows()
    assert [(start, t) for start, _, t in spans] == [(50, 50), (7, 7)]


def test_recalculate_takes_what_is_stored() -> None:
    history = MemoryHistory("ts")
    k = make_kernel(planned(SESSION), history)
    rows = frame(("d1", 0, 1), ("d1", 50, 1), ("d1", 4, 1))
    emission = k.apply(rows)
    assert shown(emission) == [(0, 0, 1)]
    assert emission.late is not None and emission.late.get_column("ts").to_list() == [T0 + 4]
    history.add(rows)
    assert shown(k.control(Control("recalculate", low=T0, high=T0 + 20))) == [(0, 0, 2)]


@pytest.mark.parametrize(
    "window",
    [
        "SESSION(ts, 10a)",
        "STATE_WINDOW(a)",
        "EVENT_WINDOW START WITH a = 0 END WITH a = 2",
        "COUNT_WINDOW(2)",
    ],
)
def test_memory_is_bounded_by_the_room_for_rows(window: str) -> None:
    text = f"CREATE STREAM s WATERMARK 1s INTO o AS SELECT _wstart ws, count(*) n FROM met PARTITION BY tbname {window}"
    history = MemoryHistory("ts")
    small = make_kernel(planned(text), history, room=100)
    large = make_kernel(planned(text), history)
    kept: list[int] = []
    for first in range(0, 1_500, 50):
        rows = frame(*(("d1", 20 * n, n % 3) for n in range(first, first + 50)))
        assert shown(small.apply(rows)) == shown(large.apply(rows))
        history.add(rows)
        kept.append(sum(f.height for f in small.delta(True).frames.values()))
    assert max(kept[15:]) <= max(kept[:15]), "it grows no more"
    assert max(kept) < sum(f.height for f in large.delta(True).frames.values()) / 4


def test_late_flag_of_the_exchange_wins_over_the_own_order() -> None:
    text = "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n FROM met SESSION(ts, 10a)"
    k = kernel(text)
    k.apply(frame(("d1", 0, 1), ("d1", 100, 1), _late=[False, False]))
    assert k.apply(frame(("d2", 20, 1), _late=[True])).late is not None
    assert shown(k.apply(frame(("d2", 30, 1), _late=[False]))) == [(0, 30, 1)]


def test_a_child_takes_only_its_own_rows() -> None:
    text = "CREATE STREAM s INTO o AS SELECT _wstart ws, count(*) n FROM d1 STATE_WINDOW(a)"
    k = kernel(text)
    assert shown(
        k.apply(frame(("d2", 0, 1), ("d1", 1, 1), ("d2", 2, 9), ("D1", 3, 2), ("d1", 2, 2)))
    ) == [(0, 1, 1)]


def test_results_of_a_stream_replace_and_never_expire() -> None:
    plan = planned(SESSION)
    derived = planned(SESSION, source=type(plan.source)(**{**plan.source.__dict__, "result_of": 7}))
    k = make_kernel(derived, MemoryHistory("ts"))
    assert shown(k.apply(frame(("d1", 0, 1), ("d1", 50, 1), ("d1", 0, 2), ("d1", 3, 2)))) == [
        (0, 0, 2)
    ]


def test_delta_holds_what_changed_only() -> None:
    k = kernel()
    k.apply(frame(*((f"d{i}", i, 1) for i in range(500))))
    k.delta(full=True)
    k.apply(frame(("d7", 30, 1)))
    delta = k.delta()
    assert {name: delta.frames[name].height for name in ("rows", "windows", "t.groups")} == {
        "rows": 1,
        "windows": 2,
        "t.groups": 1,
    }


def test_forced_windows_are_made_up_after_a_pause_and_filled_from_then_on() -> None:
    k = kernel(
        "CREATE STREAM s TRIGGER FORCE_WINDOW_CLOSE INTO o AS SELECT _wstart ws, count(*) n FROM met PARTITION BY tbname"
        " INTERVAL(5s) FILL(PREV)"
    )
    k.control(Control("tick", time=T0))
    k.apply(frame(("d1", 1_000, 1), ("d1", 2_000, 1)))
    k.control(Control("pause"))
    assert shown(k.control(Control("tick", time=T0 + 6_000))) == []
    k.apply(frame(("d1", 6_000, 1)))
    k.control(Control("tick", time=T0 + 11_000))
    assert shown(k.control(Control("resume"))) == [(0, 0, 2), (0, 5_000, 1)]
    assert shown(k.control(Control("tick", time=T0 + 21_000))) == [(0, 10_000, 1), (0, 15_000, 1)]
    late = k.apply(frame(("d1", 7_000, 1))).late
    assert late is not None and late.height == 1


_PREV = (
    "CREATE STREAM s TRIGGER FORCE_WINDOW_CLOSE INTO o AS SELECT _wstart ws, count(*) n, max(a) top, min(b) low FROM met"
    " PARTITION BY tbname INTERVAL(5s) FILL(PREV)"
)


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("ticks", [[5, 10, 15, 20, 30], [5, 30], [30], [15, 30]])
def test_what_is_filled_by_the_clock_comes_from_the_nearest_value_that_is_not_null(
    saved: bool, ticks: list[int]
) -> None:
    plan = planned(_PREV)
    k = make_kernel(plan, None)
    k.control(Control("tick", time=T0))
    k.apply(frame(("d1", 1_000, 7), ("d2", 1_000, 1), b=[3, 4]))
    k.apply(frame(("d1", 6_000, None), ("d2", 6_000, 2), b=[5, None]))
    found: dict[tuple[str, int], tuple[Any, ...]] = {}
    for seconds in ticks:
        emission = k.control(Control("tick", time=T0 + seconds * 1_000))
        if saved:
            delta = k.delta(True)
            k = make_kernel(plan, None)
            k.restore([delta])
        if emission.rows is not None:
            found |= {
                (child, ws - T0): values
                for child, ws, *values in emission.rows.select(
                    "tbname", "ws", "n", "top", "low"
                ).iter_rows()
            }
    by_start: dict[int, set[tuple[Any, ...]]] = {}
    for (_, start), values in found.items():
        by_start.setdefault(start, set()).add(tuple(values))
    assert by_start == {
        0: {(1, 7, 3), (1, 1, 4)},
        5_000: {(1, None, 5), (1, 2, None)},
        **{start: {(1, 7, 5), (1, 2, 4)} for start in range(10_000, 30_000, 5_000)},
    }


def test_a_composite_key_value_that_changes_takes_the_old_row_away() -> None:
    text = (
        "CREATE STREAM s TRIGGER AT_ONCE IGNORE UPDATE 0 IGNORE EXPIRED 0 INTO o(ts, k COMPOSITE KEY, n) AS"
        " SELECT _wstart ts, max(a) k, count(*) n FROM met INTERVAL(10s)"
    )
    k = kernel(text)
    k.apply(frame(("d1", 1, 1)))
    rows = k.apply(frame(("d1", 2, 5))).rows
    assert rows is not None and rows.select("_op", "k", "n").rows() == [(1, 1, None), (0, 5, 2)]


def test_an_invalidated_window_ends_where_it_was_published() -> None:
    k = kernel(SESSION + " NOTIFY ('ws://127.0.0.1:1/n') ON ('WINDOW_CLOSE')", ignore_expired=False)
    k.apply(frame(("d1", 0, 1), ("d1", 5, 1), ("d1", 23, 1)))
    events = k.apply(frame(("d1", 14, 1))).events
    assert [(e["eventType"], e["windowStart"], e["windowEnd"]) for e in events] == [
        ("WINDOW_INVALIDATION", T0, T0 + 5)
    ]  # type: ignore[index]


class Past(MemoryHistory):
    """One that can be asked as it was at a mark."""

    def __init__(self) -> None:
        super().__init__("ts")
        self._held: list[tuple[pl.DataFrame | None, pl.DataFrame | None]] = []
        self._now: list[tuple[pl.DataFrame | None, pl.DataFrame | None]] = []

    def mark(self) -> str:
        self._held.append((self._rows, self._versions))
        return str(len(self._held) - 1)

    def at(self, mark: str) -> None:
        if self._now:
            self._rows, self._versions = self._now.pop()
        if mark:
            self._now.append((self._rows, self._versions))
            self._rows, self._versions = self._held[int(mark)]


@pytest.mark.parametrize(("begin", "end"), [("pause", "resume"), ("fill", "filled")])
@pytest.mark.parametrize("saved", [False, True])
def test_a_delete_that_waited_finds_the_rows_it_took(begin: str, end: str, saved: bool) -> None:
    made = planned(
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n FROM met PARTITION BY tbname INTERVAL(10a)"
    )
    history = Past()
    k = make_kernel(made, history)
    first = frame(("d1", 0, 1), ("d1", 1, 1), ("d1", 11, 1))
    second = frame(("d1", 12, 1), ("d1", 2, 1), ("d1", 21, 1))
    k.apply(first)
    history.add(first)
    assert shown(k.control(Control(begin))) == []
    low = T0 + 1
    high = T0 + 11
    assert shown(k.control(Control("delete", low=low, high=high))) == []
    history.delete(None, low, high)
    assert shown(k.apply(second)) == []
    history.add(second)
    if saved:
        delta = k.delta(True)
        k = make_kernel(made, history)
        k.restore([delta])
    found = {start: (op, n) for op, start, n in shown(k.control(Control(end)))}
    assert found == {0: (0, 1), 10: (0, 1), 20: (0, 1)}


def test_a_pause_while_history_is_filled_goes_on_behind_it() -> None:
    k = kernel(
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n FROM met PARTITION BY tbname SESSION(ts, 10a)"
    )
    k.control(Control("fill"))
    k.apply(frame(("d1", 0, 1)))
    k.control(Control("pause"))
    k.apply(frame(("d1", 5, 1)))
    assert shown(k.control(Control("filled"))) == []
    k.apply(frame(("d1", 6, 1)))
    assert shown(k.control(Control("resume_skip"))) == [(0, 0, 1)]


def test_events_carry_the_keys_of_their_partition() -> None:
    notify = "NOTIFY ('ws://localhost:1/n') ON ('WINDOW_OPEN', 'WINDOW_CLOSE')"
    for window in ("SESSION(ts, 10a)", "INTERVAL(10a)", "STATE_WINDOW(a)"):
        text = f"CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n FROM met PARTITION BY {{}} {window} {notify}"
        emission = kernel(text.format("tbname, ta AS site")).apply(
            frame(("d1", 0, 1), ("d2", 100, 1))
        )
        tags = [(e["eventType"], e["tags"]) for e in emission.events]
        assert ("WINDOW_OPEN", {"tbname": "d1", "site": 1}) in tags and (
            "WINDOW_CLOSE",
            {"tbname": "d2", "site": 1},
        ) in tags, window
    unkeyed = (
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n FROM d1 SESSION(ts, 10a) "
        + notify
    )
    assert {str(e["tags"]) for e in kernel(unkeyed).apply(frame(("d1", 0, 1))).events} == {"{}"}
