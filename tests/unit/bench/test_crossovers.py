"""What the bench says of crossovers is what it timed, and both ways it times do the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from bench import crossovers
from bench.crossovers import Timed, both_ways, cheaper_up_to, sizes
from penstock import tuning
from penstock.codec import Decoded


def plain(found: Any) -> object:
    """What two results can be compared by."""
    if isinstance(found, Decoded):
        return found.rows.to_dicts()
    if isinstance(found, pa.Table):
        return found.to_pylist()
    if isinstance(found, np.ndarray):
        return found.tolist()
    if isinstance(found, list) and found and isinstance(found[0], pl.Series):
        return [series.to_list() for series in found]
    return found


@pytest.mark.parametrize("name", crossovers.WORK)
def test_both_ways_do_the_same_and_leave_the_number_as_it_is(name: str) -> None:
    before = getattr(tuning, name)
    first, second = both_ways(name, 3)
    assert plain(first()) == plain(second())
    assert getattr(tuning, name) == before


def test_sizes_lie_around_the_number() -> None:
    assert sizes(512) == [64, 128, 256, 512, 1024, 2048, 4096]
    assert sizes(3) == [1, 2, 3, 6, 12, 24]


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ((1, 1, 1), (2, 2, 2), 4),
        ((1, 2, 3), (2, 2, 2), 2),
        ((1, 3, 1), (2, 2, 2), 1),
        ((3, 1, 1), (2, 2, 2), 0),
    ],
)
def test_the_crossover_is_the_last_size_before_the_second_way_wins(
    first: tuple[int, ...], second: tuple[int, ...], found: int
) -> None:
    tried = [
        Timed(size, one, other) for size, one, other in zip((1, 2, 4), first, second, strict=True)
    ]
    assert cheaper_up_to(tried) == found
