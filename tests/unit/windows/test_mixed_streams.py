"""Streams that share the way through the rows, no two alike: each publishes, and keeps, what it
would alone, to the last bit.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import tuning
from penstock.windows.assign.calls import Call
from penstock.windows.assign.exact_sums import exact_sums
from penstock.windows.assign.pane_call import PaneCall
from penstock.windows.context import KernelContext
from penstock.windows.interval.kernel import IntervalKernel
from penstock.windows.kernel import Control
from tests.nightly import drawn
from tests.unit.windows.plans import BY_TABLE, MemoryHistory, aggregate, frame, window_plan

#: fails on rows whose v is a time that no calendar has
DAY = "to_char(cast(cast(v AS BIGINT) AS TIMESTAMP), 'YYYY-MM-DD')"
BROKEN = -101.0
#: what stands for values whose whole numbers no INT holds
LARGE = {BROKEN: 1e17, -102.0: 1e16, -103.0: -1e16}
SUMS = (aggregate(0, "count", None), aggregate(1, "sum"), aggregate(2, "sum", "i"))
SPREADS = (aggregate(0, "avg", "v * 2"), aggregate(1, "min", "i"), aggregate(2, "max"))
OF_ROWS = (aggregate(0, "stddev"), aggregate(1, "last", "s"), aggregate(2, "hyperloglog", "s"))
FAILING = (aggregate(0, "count", DAY), aggregate(1, "sum"))
CONDITIONS = (None, "v > 0", "v > 2.5", "i = 1 OR s = 's0.5'", "v > 1000", f"{DAY} <> ''")

plans = st.builds(
    lambda where, window, trigger, aggregates, watermark: window_plan(
        keys=BY_TABLE,
        trigger=trigger,
        aggregates=aggregates,
        watermark=watermark,
        where=where,
        **window,
    ),
    st.sampled_from(CONDITIONS),
    st.sampled_from(
        [
            {"size": "10s"},
            {"size": "20s"},
            {"size": "7s"},
            {"size": "10s", "sliding": "5s"},
            {"size": "10s", "sliding": "4s"},
            {"size": "1m", "offset": "3s"},
            {"size": "1d"},
            {"size": "1n"},
        ]
    ),
    st.sampled_from(["at_once", "window_close"]),
    st.sampled_from([SUMS, SPREADS, OF_ROWS, FAILING]),
    st.sampled_from(["0a", "6s"]),
)
values = st.one_of(
    st.sampled_from([None, 0.0, -0.0, 0.1, 0.5, -102.0, -103.0, 1.0, 3.25, 1e-310]),
    st.floats(-9, 9),
    st.sampled_from([BROKEN, 2.0, 2.0, 2.0]),
)
#: writes of (table, ms, v), mostly in order of time
writes = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(-9_000, 3_000), values),
        min_size=1,
        max_size=6,
    ),
    max_size=12,
).map(
    lambda steps: [
        [(table, 20_000 + at * 7_000 + ms, v) for table, ms, v in step]
        for at, step in enumerate(steps)
    ]
)


@pytest.fixture(autouse=True)
def always_shared(monkeypatch):
    monkeypatch.setattr(tuning, "STREAMS_SHARING_PANES", 2)
    monkeypatch.setattr(tuning, "ROWS_LAID_OUT_IN_PANES", 1)
    monkeypatch.setattr(tuning, "ROWS_PER_FINER_PANE", 2)


@pytest.fixture(autouse=True, scope="module")
def paned():
    """How many calls were put together from panes: some have to be."""
    made = []
    kept = PaneCall.__init__
    PaneCall.__init__ = lambda self, *given_: made.append(self) or kept(self, *given_)
    yield made
    PaneCall.__init__ = kept
    assert made


@settings(max_examples=drawn(60))
@given(
    st.lists(plans, min_size=2, max_size=4),
    writes,
    st.lists(st.integers(0, 11), max_size=4),
    st.integers(0, 6),
)
def test_streams_together_publish_what_each_would_alone(given_plans, all_writes, cuts, restart):
    pieces = cut(all_writes, cuts)
    together = run(given_plans, pieces, restart, shared=True)
    for number, plan in enumerate(given_plans):
        alone = run([plan], pieces, restart=-1, shared=False)
        assert together[number] == alone[0]


def run(given_plans, pieces, restart, *, shared):
    """What each plan's kernel publishes and keeps; *restart*: before which piece all die."""
    histories = [MemoryHistory() for _ in given_plans]
    context = KernelContext()
    kernels = made(given_plans, histories, context)
    said = [[] for _ in given_plans]
    for at, piece in enumerate(pieces):
        if at == restart:
            saved = [kernel.delta(True) for kernel in kernels]
            context = KernelContext()
            kernels = made(given_plans, histories, context)
            for kernel, delta in zip(kernels, saved, strict=True):
                kernel.restore([delta])
        scope = context.answers.among(piece, len(kernels)) if shared else nullcontext()
        with scope:
            for kernel, into in zip(kernels, said, strict=True):
                into.append(plain(kernel.apply(piece)))
        for history in histories:
            history.add(piece)
    for kernel, into in zip(kernels, said, strict=True):
        frames = kernel.delta(True).frames
        into.append({name: sorted(bits(f)[1]) for name, f in sorted(frames.items())})
        into.append(plain(kernel.control(Control("recalculate", 0, None, 0, 60_000))))
        into.append(plain(kernel.control(Control("flush"))))
    return said


def made(given_plans, histories, context):
    return [
        IntervalKernel(replace(plan, stream_id=n), history, context)
        for n, (plan, history) in enumerate(zip(given_plans, histories, strict=True))
    ]


def plain(emission):
    return [bits(f) for f in (emission.rows, emission.late, emission.failed)]


def bits(rows):
    """Lines of *rows*, floats as what they are to the last bit."""
    return None if rows is None else (rows.columns, [tuple(map(repr, r)) for r in rows.rows()])


def cut(all_writes, cuts):
    """The writes in pieces, each a call."""
    borders = sorted({0, len(all_writes), *(c for c in cuts if c < len(all_writes))})
    return [
        frame(all_writes[low:high], low).with_columns(pl.col("v").replace(LARGE))
        for low, high in zip(borders[:-1], borders[1:], strict=True)
    ]


def chunk(tables: int, times: int):
    """Rows of many tables, every one in turn, a second apart."""
    return frame(
        [[(f"d{t}", n * 1000, float(n + t % 3)) for t in range(tables)] for n in range(times)]
    )


def test_a_condition_is_asked_once_whatever_windows_and_aggregates_it_is_for(monkeypatch):
    from penstock.windows.rows.shared_rows import SharedRows

    asked = []
    kept = SharedRows._filter_rows
    monkeypatch.setattr(
        SharedRows, "_filter_rows", lambda self, rows: asked.append(self) or kept(self, rows)
    )
    context = KernelContext()
    kernels = [
        IntervalKernel(
            window_plan(size=f"{n}s", where=where, trigger="window_close"), None, context
        )
        for n in range(10, 20)
        for where in ("v > 0", "v > 1")
    ]
    rows = chunk(3, 30)
    with context.answers.among(rows, len(kernels)):
        for kernel in kernels:
            kernel.apply(rows)
    assert len(asked) == 2


def test_no_rows_are_picked_for_streams_of_counts_and_sums(monkeypatch):
    monkeypatch.setattr(Call, "_pair", lambda *_: pytest.fail("a call of rows was made"))
    context = KernelContext()
    kernels = [
        IntervalKernel(
            window_plan(size=size, where=f"v > {n}", trigger="window_close"), None, context
        )
        for n, size in enumerate(("10s", "20s", "30s", "7s"))
    ]
    emissions = []
    for start in range(3):
        rows = frame([[("d1", start * 30_000 + n * 1000, float(n))] for n in range(30)], start * 30)
        with context.answers.among(rows, len(kernels)):
            emissions += [kernel.apply(rows) for kernel in kernels]
    assert sum(e.rows.height for e in emissions if e.rows is not None) == 8 + 4 + 2 + 12


@given(
    st.lists(
        st.one_of(st.floats(-1e6, 1e6, width=32), values.map(lambda v: LARGE.get(v, v) or 0.0))
    )
)
def test_sums_that_are_called_exact_are_so_in_any_order(numbers):
    given_ = np.array(numbers, np.float64)
    known = exact_sums(given_)
    if known is None or not known.are_exact(np.zeros(1), np.array([len(given_)])):
        return
    forward = 0.0
    for number in numbers:
        forward += number
    backward = 0.0
    for number in reversed(numbers):
        backward += number
    assert forward == backward == np.add.reduce(given_)


def test_floats_of_24_bits_and_steps_of_an_eighth_have_exact_sums():
    of_32_bits = np.array([230.1, 229.7, 0.3, 5.5] * 100, np.float32).astype(np.float64)
    assert exact_sums(of_32_bits).are_exact(np.array([1000.125]), np.array([400]))
    assert exact_sums(np.array([0.125, 7.0, 511.875])).unit == 0.125
    assert exact_sums(np.array([0.1, 10.3])) is None or not exact_sums(
        np.array([0.1, 10.3])
    ).are_exact(np.zeros(1), np.array([100]))
    assert exact_sums(np.array([1.0, np.inf])) is None
    assert not exact_sums(np.array([0.5])).are_exact(np.array([0.1]), np.array([1]))
