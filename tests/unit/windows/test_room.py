"""What a kernel keeps in memory is nobody's business: results are the same whatever room it has."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from penstock.sql.plan import StreamPlan
from penstock.windows import History, Kernel, make_kernel
from tests.conformance.case import Case
from tests.conformance.kernel_backend import KernelBackend
from tests.conformance.memory import MemoryHistory
from tests.fuzz import draw
from tests.fuzz.__main__ import Trial
from tests.fuzz.calculator import Plan
from tests.nightly import drawn
from tests.unit.windows.test_controls import planned

_BASE = 1_700_006_400_000


@pytest.mark.parametrize("number", range(drawn(40)))
def test_results_do_not_depend_on_room(number: int) -> None:
    chance = random.Random(f"room {number}")
    plan = draw.plan(chance)
    happened = draw.events(chance, plan)
    for room in (1, chance.randint(2, 50)):
        assert (
            Trial("room", plan, draw.statement(plan, False), happened, number, room).fault() is None
        )


_FILLS = ("NULL", "PREV", "NEXT", "LINEAR", "VALUE, 1, 2, 3, 4")
_CONTROLS: tuple[list[Any], ...] = (
    ["ADVANCE", 150],
    ["ADVANCE", 6_000],
    ["PAUSE"],
    ["RESUME"],
    ["SNAPSHOT"],
)


def _forced(chance: random.Random, plan: Plan) -> Plan:
    """The plan with windows that the clock closes."""
    return replace(
        plan,
        window=("interval", 100, 100),
        trigger="FORCE_WINDOW_CLOSE",
        ignore_expired=True,
        ignore_update=True,
        by="tbname",
        history=False,
        fill=chance.random() < 0.6,
    )


def _composite(case: dict[str, Any]) -> None:
    """Make the case's source one with a composite key."""
    case["tables"] = [
        t.replace(
            "ts TIMESTAMP, a INT, b INT, c INT,", "ts TIMESTAMP, c INT COMPOSITE KEY, a INT, b INT,"
        )
        for t in draw.TABLES
    ]
    assert case["tables"] != list(draw.TABLES)
    keyed = [
        [kind, [r for r in rest[0] if "c" in r[1]]] if kind == "BATCH" else [kind, *rest]
        for kind, *rest in case["events"]
    ]
    case["events"] = [e for e in keyed if e[0] != "BATCH" or e[1]]


def _stretched(case: dict[str, Any]) -> None:
    """Make minutes of the case's milliseconds: what is let go is read again in stretches, the first
    of ten minutes.
    """

    def later(time: int) -> int:
        return _BASE + (time - _BASE) * 60_000

    case["stream"] = re.sub(r"(\d)a\b", r"\1m", case["stream"])
    for event in case["events"]:
        if event[0] == "BATCH":
            event[1] = [[table, row | {"ts": later(row["ts"])}] for table, row in event[1]]
        elif event[0] == "DELETE":
            event[2:] = map(later, event[2:])


def _derived(plan: StreamPlan, history: History | None, room: int) -> Kernel:
    """A kernel over what is another stream's result."""
    return make_kernel(replace(plan, source=replace(plan.source, result_of=7)), history, room)


@pytest.mark.parametrize("number", range(drawn(2)))
@pytest.mark.parametrize("room", range(1, 51))
def test_no_plan_of_any_kind_depends_on_room(room: int, number: int) -> None:
    chance = random.Random(f"any {room} {number}")
    plan = draw.plan(chance)
    if chance.random() < 0.15:
        plan = _forced(chance, plan)
    forced = plan.trigger == "FORCE_WINDOW_CLOSE"
    stream = draw.statement(plan, plan.window[0] != "rows" and chance.random() < 0.3)
    stream = stream.replace(
        "FILL(NULL)", f"FILL({chance.choice(_FILLS[:2] if forced else _FILLS)})"
    )
    happened = draw.events(chance, plan)[:-1]
    for _ in range(chance.randint(0, 6 if forced else 3)):
        happened.insert(
            chance.randint(0, len(happened)),
            chance.choice(_CONTROLS[:1] if forced and chance.random() < 0.7 else _CONTROLS),
        )
    happened += [["RESUME"], ["ADVANCE", 9_000 if forced else 7_200_000]]
    raw = {
        "id": "any",
        "tables": list(draw.TABLES),
        "stream": stream,
        "events": happened,
        "clock_start": _BASE,
    }
    if plan.window[0] in ("interval", "session") and chance.random() < 0.2:
        _composite(raw)
    if not forced and chance.random() < 0.5:
        _stretched(raw)
    make = (
        _derived
        if plan.window[0] != "rows" and not forced and chance.random() < 0.15
        else make_kernel
    )
    case = Case.read(raw)
    large = KernelBackend(make=make).run(case)
    small = KernelBackend(chance.choice([None, number]), room=room, make=make).run(case)
    assert large.error is None and large.crash is None, (large.error, large.crash)
    assert small.crash is None, small.crash
    assert (small.rows, small.snapshots, small.notify) == (
        large.rows,
        large.snapshots,
        large.notify,
    )


def test_a_long_history_is_counted_once() -> None:
    select = "SELECT _wstart ws, count(*) n FROM met PARTITION BY tbname SESSION(ts, 30m)"
    text = f"CREATE STREAM s TRIGGER AT_ONCE FILL_HISTORY 1 INTO o AS {select}"
    made = planned(text)
    count = 300_000
    layout = {c.name: c.type.polars() for c in (*made.source.columns, *made.source.tags)}
    filled = {
        name: pl.lit(None, dtype=kind).alias(name)
        for name, kind in layout.items()
        if name != made.source.time_column
    }
    rows = pl.select(
        pl.int_range(count, dtype=pl.UInt32).alias("_step"),
        pl.int_range(count, dtype=pl.Int64).alias("_offset"),
        pl.lit(0, dtype=pl.Int64).alias("_now"),
        pl.lit(0, dtype=pl.Int8).alias("_op"),
        pl.lit("d1").alias("tbname"),
        # a minute apart, and now and then two hours
        (
            pl.int_range(count, dtype=pl.Int64) * 60_000
            + pl.int_range(count, dtype=pl.Int64) // 1000 * 7_200_000
            + _BASE
        ).alias(made.source.time_column),
        *filled.values(),
    )
    history = MemoryHistory(made.source.time_column)
    history._rows = rows
    kernel = make_kernel(made, history)
    shown: dict[int, int] = {}
    time = rows.get_column(made.source.time_column)
    cuts = [int(time[i]) for i in range(0, count, 60_000)] + [int(time[-1]) + 1]
    for low, high in zip(cuts, cuts[1:], strict=False):
        emission = kernel.load_history(low, high - 1)
        assert emission.rows is not None
        for row in emission.rows.iter_rows(named=True):
            if row["_op"] == 0:
                shown[row["ws"]] = row["n"]
            else:
                shown.pop(row["ws"], None)
    assert sum(shown.values()) == count
