"""Partials that merge give what one pass over all rows gives, and that is what plain Python
gives.
"""

from __future__ import annotations

import math
import statistics

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.rows.scope import Scope
from tests.conformance.case import Case
from tests.conformance.kernel_backend import KernelBackend
from tests.nightly import drawn
from tests.unit.windows.plans import aggregate, frame, window_plan

ALL = (
    aggregate(0, "count", None),
    aggregate(1, "count"),
    aggregate(2, "sum"),
    aggregate(3, "sum", "i"),
    aggregate(4, "avg", "i"),
    aggregate(5, "min"),
    aggregate(6, "companion", "s", of="_a5"),
    aggregate(7, "max", "i"),
    aggregate(8, "first", "s"),
    aggregate(9, "last"),
    aggregate(10, "last_row"),
    aggregate(11, "spread"),
    aggregate(12, "stddev"),
    aggregate(13, "var_pop"),
    aggregate(14, "max", "s"),
    aggregate(15, "companion", "ts", of="_a9"),
)


def make(*aggregates):
    return Aggregates(Scope(window_plan(aggregates=aggregates or ALL)))


def expected(rows: list[tuple[int, float | None]]) -> tuple[object, ...]:
    """By (ts, value) in arrival order."""
    ordered = sorted(rows, key=lambda r: r[0])
    given_ = [(ts, v) for ts, v in ordered if v is not None]
    values = [v for _, v in given_]
    if not values:
        return (len(rows), 0, *[None] * 14)
    ints = [int(v) for v in values]
    low = next(v for v in values if v == min(values))
    return (
        len(rows),
        len(values),
        sum(values),
        sum(ints),
        sum(ints) / len(ints),
        low,
        f"s{low}",
        max(ints),
        f"s{values[0]}",
        values[-1],
        ordered[-1][1],
        max(values) - min(values),
        statistics.pstdev(values),
        statistics.pvariance(values),
        max(f"s{v}" for v in values),
        given_[-1][0],
    )


def close(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return a == b


rows = st.lists(
    st.tuples(st.integers(0, 50), st.none() | st.integers(-40, 40).map(lambda n: n / 4)),
    min_size=1,
    max_size=30,
)


@settings(max_examples=drawn(60), deadline=None)
@given(rows, st.lists(st.integers(0, 30), max_size=4))
def test_partials_merge_to_the_whole(rows, cuts):
    made = make()
    data = frame([[("d1", ts, v)] for ts, v in rows])
    whole = made.compute(data, ["tbname"], ordered=False).row(0)[1:]
    assert all(close(a, b) for a, b in zip(whole, expected(rows), strict=True)), (
        whole,
        expected(rows),
    )
    edges = sorted({0, len(rows), *(min(c, len(rows)) for c in cuts)})
    pieces = [
        data[a:b].with_columns(made.arguments.expressions)
        for a, b in zip(edges, edges[1:], strict=False)
    ]
    merged = None
    for piece in pieces:
        part = made.partial(piece, ["tbname"])
        merged = part if merged is None else made.merge(pl.concat([merged, part]), ["tbname"])
    final = made.finalise(merged, ["tbname"]).row(0)[1:]
    assert all(close(a, b) for a, b in zip(final, whole, strict=True)), (final, whole)
    assert made.finalise(merged, []).equals(merged.select(made._finals.expressions)), (
        "without a query it is another value"
    )


def test_last_takes_null_for_last_row_only():
    made = make(aggregate(0, "last"), aggregate(1, "last_row"), aggregate(2, "first"))
    row = made.compute(frame([[("d1", 1, None), ("d1", 2, 5.0), ("d1", 3, None)]]), ["tbname"]).row(
        0
    )
    assert row == ("d1", 5.0, None, 5.0)


def test_no_value_gives_null_and_nan_counts_as_no_value():
    made = make(
        aggregate(0, "sum"),
        aggregate(1, "avg"),
        aggregate(2, "min"),
        aggregate(3, "stddev"),
        aggregate(4, "apercentile", params=(50,)),
        aggregate(5, "hyperloglog"),
        aggregate(6, "count"),
        aggregate(7, "first"),
    )
    row = made.compute(frame([[("d1", 1, None), ("d1", 2, None)]]), ["tbname"]).row(0)
    assert row == ("d1", None, None, None, None, None, 0, 0, None)
    nan = frame([[("d1", 1, 2.0), ("d1", 2, 4.0)]]).with_columns(v=pl.Series([2.0, math.nan]))
    assert make(aggregate(0, "sum"), aggregate(1, "count")).compute(nan, ["tbname"]).row(0) == (
        "d1",
        2.0,
        1,
    )


def test_variance_survives_large_offsets():
    made = make(aggregate(0, "stddev"))
    data = frame([[("d1", n, 1e9 + n % 3)] for n in range(3000)]).with_columns(
        made.arguments.expressions
    )
    merged = made.partial(data[:1], ["tbname"])
    for start in range(1, 3000, 500):
        merged = made.merge(
            pl.concat([merged, made.partial(data[start : start + 500], ["tbname"])]), ["tbname"]
        )
    assert math.isclose(made.finalise(merged, ["tbname"])["_a0"][0], math.sqrt(2 / 3), rel_tol=1e-4)


@pytest.mark.parametrize("p", [0, 1, 25, 50, 90, 99, 100])
def test_percentiles_of_merged_pieces_stay_within_one_percent_of_rank(p):
    rng = np.random.default_rng(p)
    values = rng.lognormal(size=20_000)
    made = make(aggregate(0, "apercentile", params=(p,)))
    data = frame([[("d1", n, float(v))] for n, v in enumerate(values)]).with_columns(
        made.arguments.expressions
    )
    merged = None
    for start in range(0, 20_000, 700):
        part = made.partial(data[start : start + 700], ["tbname"])
        merged = part if merged is None else made.merge(pl.concat([merged, part]), ["tbname"])
    found = made.finalise(merged, ["tbname"])["_a0"][0]
    rank = np.searchsorted(np.sort(values), found) / len(values)
    assert abs(rank - p / 100) < 0.01
    assert merged["_p0.m"].list.len()[0] <= 400


def test_percentiles_of_few_values_are_exact():
    made = make(
        aggregate(0, "apercentile", params=(50,)), aggregate(1, "apercentile", params=(25,))
    )
    row = made.compute(
        frame([[("d1", n, float(v))] for n, v in enumerate([4, 1, 3, 2])]),
        ["tbname"],
        ordered=False,
    ).row(0)
    assert row[1:] == (2.5, 1.75)


@pytest.mark.parametrize("distinct", [1, 100, 3000, 50_000])
@pytest.mark.parametrize("column", ["v", "s"])
def test_distinct_counts_are_near(distinct, column):
    made = make(aggregate(0, "hyperloglog", column))
    n = min(distinct * 2, 60_000)
    data = pl.DataFrame(
        {
            "tbname": ["d1"] * n,
            "ts": np.arange(n),
            "v": (np.arange(n) % distinct) * 1.0,
            "i": [0] * n,
            "s": [f"k{k}" for k in np.arange(n) % distinct],
            "loc": ["a"] * n,
        }
    ).with_columns(made.arguments.expressions)
    halves = [made.partial(data[: n // 2], ["tbname"]), made.partial(data[n // 2 :], ["tbname"])]
    found = made.finalise(made.merge(pl.concat(halves), ["tbname"]), ["tbname"])["_a0"][0]
    assert abs(found - distinct) <= max(distinct * 0.06, 0)


def test_equal_arguments_share_their_parts():
    made = make(
        aggregate(0, "count"),
        aggregate(1, "avg"),
        aggregate(2, "sum"),
        aggregate(3, "spread"),
        aggregate(4, "max"),
    )
    assert sorted(p.kind for p in made.parts) == ["max", "min", "n", "sum"]
    assert made.elementwise


_BASE = 1_700_006_400_000
_LEAST = -(1 << 63)
_MOST = (1 << 63) - 1
#: sums of these leave 64 bits, and come back
_large = st.none() | st.sampled_from(
    [_MOST, _MOST - 1, _LEAST, _LEAST + 1, 1 << 62, -(1 << 62), 1 << 57, 1, 0, -1]
)


def _fitting(total: int, least: int, most: int) -> int | None:
    return total if least <= total <= most else None


@pytest.mark.parametrize(
    "demand",
    ["TRIGGER AT_ONCE", "TRIGGER WINDOW_CLOSE IGNORE UPDATE 0", "TRIGGER AT_ONCE IGNORE EXPIRED 0"],
)
@pytest.mark.parametrize("kind", ["BIGINT", "BIGINT UNSIGNED"])
@settings(max_examples=drawn(40), deadline=None)
@given(
    st.lists(st.tuples(_large, st.booleans()), min_size=1, max_size=24),
    st.none() | st.integers(0, 99),
)
def test_a_sum_of_large_integers_is_exact_or_null(
    demand: str, kind: str, values: list[tuple[int | None, bool]], split: int | None
) -> None:
    signed = kind == "BIGINT"
    given_ = [v if v is None or signed else v & ((1 << 64) - 1) for v, _ in values]
    events: list[list[object]] = []
    for n, (value, (_, together)) in enumerate(zip(given_, values, strict=True)):
        row = ["d1", {"ts": _BASE + n, "c": value}]
        if together and events:
            events[-1][1].append(row)  # type: ignore[attr-defined]
        else:
            events.append(["BATCH", [row]])
    events.append(["BATCH", [["d1", {"ts": _BASE + 20_000, "c": None}]]])
    outcome = KernelBackend(split).run(
        Case.read(
            {
                "id": "sums",
                "tables": [f"CREATE TABLE d1 (ts TIMESTAMP, c {kind})"],
                "stream": f"CREATE STREAM s1 {demand} INTO out1 AS SELECT _wstart, sum(c) s, avg(c) m FROM d1 INTERVAL(10s)",
                "events": events,
            }
        )
    )
    assert outcome.crash is None and outcome.error is None, (outcome.crash, outcome.error)
    there = [v for v in given_ if v is not None]
    total = (
        _fitting(sum(there), *((_LEAST, _MOST) if signed else (0, (1 << 64) - 1)))
        if there
        else None
    )
    assert outcome.rows[0]["s"] == total
    assert outcome.rows[0]["m"] == (
        pytest.approx(sum(there) / len(there), rel=1e-9, abs=1) if there else None
    )


_DEMANDS = (
    "TRIGGER AT_ONCE IGNORE UPDATE 0",
    "TRIGGER AT_ONCE IGNORE EXPIRED 0",
    "TRIGGER MAX_DELAY 5s",
    "TRIGGER CONTINUOUS_WINDOW_CLOSE",
    "TRIGGER WINDOW_CLOSE IGNORE EXPIRED 0 FILL_HISTORY 1",
)


@pytest.mark.parametrize("demand", _DEMANDS)
@pytest.mark.parametrize("fill", ["", "FILL(PREV)", "FILL(LINEAR)"])
@pytest.mark.parametrize("notify", ["", "NOTIFY ('ws://127.0.0.1:1/n') ON ('WINDOW_CLOSE')"])
def test_sketches_in_windows_that_are_merged_write_by_write(
    demand: str, fill: str, notify: str
) -> None:
    select = (
        "SELECT _wstart, count(*) n, hyperloglog(a) h, apercentile(a, 50) p FROM d1 INTERVAL(10s)"
    )
    many = [["d1", {"ts": _BASE + 10 + k, "a": k}] for k in range(450)]
    events = [
        *(["d1", {"ts": _BASE + k, "a": k % 3}] for k in range(6)),
        ["BATCH", many],
        ["d1", {"ts": _BASE + 5000, "a": 1}],
        ["d1", {"ts": _BASE + 50_000, "a": 1}],
        ["ADVANCE", 7000],
    ]
    outcome = KernelBackend().run(
        Case.read(
            {
                "id": "sketches",
                "tables": ["CREATE TABLE d1 (ts TIMESTAMP, a INT)"],
                "stream": f"CREATE STREAM s1 {demand} INTO out1 AS {select} {fill} {notify}",
                "events": events,
            }
        )
    )
    assert outcome.crash is None and outcome.error is None, (outcome.crash, outcome.error)
    first = outcome.rows[0]
    assert first["n"] == 457
    assert first["h"] == pytest.approx(450, rel=0.03)
    assert first["p"] == pytest.approx(221, abs=5)
