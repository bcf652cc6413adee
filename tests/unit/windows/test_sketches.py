"""Sketches: exact while small, near when large, the same in every version, and mergeable."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.windows.accumulate.sketches import (
    EXACT,
    compress_digests,
    compress_registers,
    distinct_estimate,
    quantile,
    register_codes,
)
from tests.nightly import drawn


def _digest(*values: float) -> pl.DataFrame:
    schema = {"m": pl.List(pl.Float64), "w": pl.List(pl.Float64)}
    return pl.DataFrame({"m": [list(values)], "w": [[1.0] * len(values)]}, schema=schema)


def _quantile(digests: pl.DataFrame, q: float) -> list[float | None]:
    return digests.select(quantile("m", "w", q)).to_series().to_list()


@pytest.mark.parametrize(
    ("q", "value"), [(0.0, 1.0), (0.25, 2.0), (0.5, 3.0), (0.625, 3.5), (1.0, 5.0)]
)
def test_a_small_digest_interpolates_between_its_values(q, value):
    assert _quantile(_digest(5.0, 1.0, 4.0, 2.0, 3.0), q) == [value]


def test_one_value_is_every_quantile_and_none_is_null():
    both = pl.concat([_digest(7.0), _digest()])
    assert _quantile(both, 0.3) == [7.0, None]


def test_digests_are_left_alone_up_to_their_limit():
    digest = _digest(*(float(n) for n in range(EXACT)))
    assert compress_digests(digest, "m", "w").equals(digest)
    assert compress_digests(digest.clear(), "m", "w").height == 0


def test_an_outgrown_digest_keeps_its_weight_and_ranks():
    count = 5_000
    values = [float((n * 7919) % count) for n in range(count)]  # 0…count-1, mixed
    both = pl.concat([_digest(*values), _digest(1.0, 2.0)])
    made = compress_digests(both, "m", "w")
    assert made.get_column("m").list.len().to_list()[0] <= 200
    assert made.get_column("w").list.sum().to_list() == [float(count), 2.0]
    assert made.row(1) == ([1.0, 2.0], [1.0, 1.0])
    for q, share in ((0.001, 0.002), (0.25, 0.01), (0.5, 0.01), (0.99, 0.002)):
        assert abs(_quantile(made, q)[0] / count - q) < share


def _estimate(codes: pl.Series) -> int:
    frame = pl.DataFrame({"d": [codes.drop_nulls().unique().to_list()]}, {"d": pl.List(pl.UInt32)})
    frame = compress_registers(frame, "d")
    return frame.select(distinct_estimate("d")).item()


def test_few_values_are_counted_exactly_and_none_is_zero():
    assert _estimate(register_codes(pl.Series([4, 4, 5, None, 6]))) == 3
    assert _estimate(register_codes(pl.Series([None], dtype=pl.Int64))) == 0


@pytest.mark.parametrize("count", [1_000, 20_000, 200_000])
def test_many_values_are_counted_within_five_hundredths(count):
    assert _estimate(register_codes(pl.Series(range(count)))) == pytest.approx(count, rel=0.05)


def test_saved_registers_keep_their_meaning():
    """The hashes are ours: these values stand in states that were saved long ago."""
    assert register_codes(pl.Series([0, 1, -1, None])).to_list() == [231557, 148481, 234305, None]
    assert register_codes(pl.Series([0.5, -0.0, 0.0])).to_list() == [250178, 231557, 231557]
    assert register_codes(pl.Series(["a", "ä", None])).to_list() == [48387, 59015, None]
    assert register_codes(pl.Series([b"a"])).to_list() == [48387]


def test_equal_numbers_of_other_widths_are_one_value():
    wide = register_codes(pl.Series([1, 200], dtype=pl.Int64)).to_list()
    assert register_codes(pl.Series([1, 200], dtype=pl.UInt8)).to_list() == wide
    assert register_codes(pl.Series([True])).to_list() == wide[:1]


def test_a_register_keeps_its_highest_rank():
    frame = pl.DataFrame({"d": [[64 + 3, 64 + 9, 5, 64 + 1], []]}, {"d": pl.List(pl.UInt32)})
    made = compress_registers(frame, "d")
    assert [sorted(d) for d in made.get_column("d").to_list()] == [[5, 64 + 9], []]
    assert compress_registers(frame.clear(), "d").height == 0


@settings(max_examples=drawn(50), deadline=None)
@given(st.lists(st.text(max_size=3), max_size=40), st.integers(0, 40))
def test_registers_of_pieces_merge_to_those_of_all(texts, cut):
    values = pl.Series(texts, dtype=pl.String)
    whole = {"d": [register_codes(values).to_list()]}
    parts = {"d": [register_codes(values[:cut]).to_list() + register_codes(values[cut:]).to_list()]}
    schema = {"d": pl.List(pl.UInt32)}
    made = [compress_registers(pl.DataFrame(codes, schema), "d") for codes in (whole, parts)]
    assert sorted(made[0].item().to_list()) == sorted(made[1].item().to_list())
