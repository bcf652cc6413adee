"""Mean and squared deviations: against exact fractions, and merged from any pieces."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.windows.accumulate.moments import of_partials, of_rows
from tests.nightly import drawn

_NAMES = ("mean", "m2", "low")
_values = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=30)


def _rows(values: list[float | None]) -> pl.DataFrame:
    x = pl.col("x")
    frame = pl.DataFrame({"x": values}, schema={"x": pl.Float64})
    return frame.select(*of_rows(_NAMES, x, x.count()), x.count().cast(pl.Int64).alias("n"))


def _exact(values: list[float]) -> tuple[Fraction, Fraction]:
    exact = [Fraction(v) for v in values]
    mean = sum(exact, Fraction(0)) / len(exact)
    return mean, sum(((v - mean) ** 2 for v in exact), Fraction(0))


def test_small_numbers_by_hand():
    made = _rows([2.0, None, 4.0, 9.0])
    assert made.row(0, named=True) == {"mean": 5.0, "m2": 26.0, "low": 0.0, "n": 3}


def test_without_values_everything_is_zero():
    assert _rows([None, None]).row(0) == (0.0, 0.0, 0.0, 0)


@settings(max_examples=drawn(100), deadline=None)
@given(_values)
def test_the_two_doubles_of_the_mean_are_closer_than_one(values):
    made = _rows(list(values))
    mean, m2 = _exact(values)
    found = Fraction(made["mean"][0]) + Fraction(made["low"][0])
    assert abs(found - mean) <= abs(Fraction(1, 10**12)) * max(1, max(abs(v) for v in values))
    assert made["m2"][0] == pytest.approx(float(m2), rel=1e-9, abs=1e-6)


def test_a_large_level_does_not_swallow_small_deviations():
    level = 1e15
    made = _rows([level, level + 1, level + 2])
    assert made["mean"][0] == level + 1
    assert made["m2"][0] == pytest.approx(2.0)


@settings(max_examples=drawn(100), deadline=None)
@given(_values, st.integers(0, 30), st.integers(0, 30))
def test_pieces_merge_to_the_moments_of_all(values, first, second):
    low, high = sorted((first, second))
    pieces = [values[:low], values[low:high], values[high:]]
    partials = pl.concat([_rows(list(piece)) for piece in pieces])
    merged = partials.select(of_partials(_NAMES, pl.col("n")))
    mean, m2 = _exact(values)
    assert merged["mean"][0] + merged["low"][0] == pytest.approx(float(mean), rel=1e-9, abs=1e-6)
    assert merged["m2"][0] == pytest.approx(float(m2), rel=1e-9, abs=1e-5)


def test_pieces_without_values_merge_to_zero():
    partials = pl.concat([_rows([None]), _rows([None])])
    assert partials.select(of_partials(_NAMES, pl.col("n"))).row(0) == (0.0, 0.0, 0.0)
