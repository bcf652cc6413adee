"""Mean and squared deviations per slot."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.windows.accumulate.accumulators import accumulators
from penstock.windows.accumulate.moment_accumulator import Moments
from tests.nightly import drawn
from tests.unit.windows.assembly import aggregates_of, call_of

_AGGREGATES = aggregates_of(("var_pop", "v"), size="1h")


def _moments(slots: int = 2) -> Moments:
    [made] = [a for a in accumulators(_AGGREGATES) if isinstance(a, Moments)]
    made.grow(slots)
    return made


def _add(moments: Moments, lines: list[tuple[int, int, float | None]]) -> None:
    call = call_of(_AGGREGATES, lines)
    moments.add(call.keys[call.owner], call)


def _read(moments: Moments, slot: int) -> tuple[float, float, float]:
    mean, m2, low = moments.read(np.array([slot]))
    return mean.item(), m2.item(), low.item()


def test_two_calls_by_hand():
    moments = _moments()
    _add(moments, [(0, 1, 2.0), (0, 2, None), (1, 2, 10.0)])
    _add(moments, [(0, 3, 4.0), (0, 4, 9.0)])
    assert _read(moments, 0) == (5.0, 26.0, 0.0)
    assert _read(moments, 1) == (10.0, 0.0, 0.0)


def test_rows_without_a_value_change_nothing():
    moments = _moments()
    _add(moments, [(0, 1, None)])
    assert _read(moments, 0) == (0.0, 0.0, 0.0)
    _add(moments, [(0, 2, 3.0)])
    assert _read(moments, 0) == (3.0, 0.0, 0.0)


@settings(max_examples=drawn(100), deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20), st.sets(st.integers(1, 19))
)
def test_any_cut_into_calls_gives_the_same(values, cuts):
    moments = _moments()
    edges = [0, *sorted(c for c in cuts if c < len(values)), len(values)]
    for low, high in zip(edges, edges[1:], strict=False):
        _add(moments, [(0, n, values[n]) for n in range(low, high)])
    mean, m2, low_part = _read(moments, 0)
    wanted = float(np.mean(np.array(values, np.longdouble)))
    assert mean + low_part == pytest.approx(wanted, rel=1e-9, abs=1e-6)
    assert m2 == pytest.approx(float(np.var(values)) * len(values), rel=1e-9, abs=1e-4)


def test_a_saved_slot_goes_on_and_a_reset_one_begins_again():
    moments = _moments()
    _add(moments, [(0, 1, 2.0), (0, 2, 4.0)])
    saved = pl.DataFrame(moments.read(np.array([0])))
    count = _AGGREGATES.held("n", _AGGREGATES.items[0]).columns[0]
    other = _moments()
    other.put(np.array([1]), saved.with_columns(pl.Series(count, [2])))
    _add(other, [(1, 3, 9.0)])
    assert _read(other, 1) == (5.0, 26.0, 0.0)
    other.reset(np.array([1]))
    _add(other, [(1, 4, 7.0)])
    assert _read(other, 1) == (7.0, 0.0, 0.0)
