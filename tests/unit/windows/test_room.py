"""What a kernel keeps in memory is nobody's business: results are the same whatever room it has."""

from __future__ import annotations

import random

import polars as pl
import pytest

from penstock.windows import make_kernel
from tests.conformance.memory import MemoryHistory
from tests.fuzz import draw
from tests.fuzz.__main__ import Trial
from tests.nightly import drawn
from tests.unit.windows.test_controls import planned

_BASE = 1_700_006_400_000


@pytest.mark.parametrize("number", range(drawn(40)))
def test_results_do_not_depend_on_room(number: int) -> None:
    chance = random.Random(f"room {number}")
    plan = draw.plan(chance)
    happened = draw.events(chance, plan)
    for room in (1, chance.randint(2, 50)):
        assert Trial("room", plan, draw.statement(plan, False), happened, number, room).fault() is None


def test_a_long_history_is_counted_once() -> None:
    select = "SELECT _wstart ws, count(*) n FROM met PARTITION BY tbname SESSION(ts, 30m)"
    text = f"CREATE STREAM s TRIGGER AT_ONCE FILL_HISTORY 1 INTO o AS {select}"
    made = planned(text)
    count = 300_000
    layout = {c.name: c.type.polars() for c in (*made.source.columns, *made.source.tags)}
    filled = {name: pl.lit(None, dtype=kind).alias(name) for name, kind in layout.items() if name != made.source.time_column}
    rows = pl.select(
        pl.int_range(count, dtype=pl.UInt32).alias("_step"), pl.int_range(count, dtype=pl.Int64).alias("_offset"),
        pl.lit(0, dtype=pl.Int64).alias("_now"), pl.lit(0, dtype=pl.Int8).alias("_op"), pl.lit("d1").alias("tbname"),
        # a minute apart, and now and then two hours
        (pl.int_range(count, dtype=pl.Int64) * 60_000 + pl.int_range(count, dtype=pl.Int64) // 1000 * 7_200_000 + _BASE).alias(
            made.source.time_column
        ),
        *filled.values(),
    )  # fmt: skip
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
