"""Rows of a partition that are in no segment, and whether one of them replaces another row."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import polars as pl

from penstock.storage.segments import Segment
from services.store.flush import SegmentLayout


@dataclass(frozen=True)
class TailRows:
    """`may_replace`: the rows may hold another version of a row."""

    partition: int
    rows: pl.DataFrame
    may_replace: bool


def tail_rows(
    partition: int,
    frames: Sequence[pl.DataFrame],
    found: Sequence[Segment],
    layout: SegmentLayout,
) -> TailRows:
    """Return the rows of *frames*, one or more, beside the segments of their partition."""
    # Arrow gets a batch for each chunk, which takes a tenth of a millisecond
    rows = pl.concat(frames, how="diagonal_relaxed", rechunk=True)
    return TailRows(partition, rows, _may_replace(rows, found, layout))


def _may_replace(rows: pl.DataFrame, found: Sequence[Segment], layout: SegmentLayout) -> bool:
    """Tell if there is anything but new keys. Rows above every segment's time can only collide
    among themselves.
    """
    newest = max((s.high for s in found), default=None)
    least = rows[layout.time_column].min()
    if not rows["_op"].eq(0).all() or (
        newest is not None and least is not None and least <= newest  # type: ignore[operator]
    ):
        return True
    return bool(rows.select(_key_hash(layout.keys).n_unique()).item() < rows.height)


def _key_hash(keys: Sequence[str]) -> pl.Expr:
    """Return a number for each key. Two keys that share one count as versions of a row, which is
    slower and right; to compare the keys themselves takes more than twice as long.
    """
    numbers = [pl.col(key).hash(seed) for seed, key in enumerate(keys)]
    return reduce(operator.xor, numbers)
