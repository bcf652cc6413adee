"""Arrow columns as they come from the wire, made into the newest version's: each value is checked
against its column's type, and what does not fit is noted, never raised.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sql.plan import Column

#: what did not fit: name, and which rows
Failed = list[tuple[str, npt.NDArray[np.bool_]]]
_Ints = npt.NDArray[np.int64]


def conform_column(
    array: pa.Array, column: Column, target: pa.DataType, limits: tuple[int, int], failed: Failed
) -> pa.Array:
    """Return *array* as *target*, *column*'s type; adds to *failed* what the column cannot hold.

    Args:
        limits: first and last time in ticks.
    """
    kind = column.type
    if kind.kind == "BIGINT UNSIGNED" and array.type == pa.int64():
        return array.view(pa.uint64())
    out = narrow(array, target, column.name, failed)
    if kind.kind == "TIMESTAMP":
        check_range(out, out, *limits, column.name, failed)
    elif kind.kind in ("FLOAT", "DOUBLE"):
        infinite = pc.is_inf(out)
        if pc.any(infinite).as_py():
            failed.append((column.name, infinite.fill_null(False).to_numpy(zero_copy_only=False)))
    if kind.sized:
        length = pc.binary_length(out)
        if kind.kind == "NCHAR" and (pc.max(length).as_py() or 0) > kind.length:
            length = pc.utf8_length(out)
        check_range(out, length, 0, kind.length, column.name, failed)
    return out


def narrow(array: pa.Array, target: pa.DataType, name: str, failed: Failed) -> pa.Array:
    """Return *array* as *target*; marks as failed the values that do not fit."""
    if array.type == target:
        return array
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        kind = (
            pl.Series([], dtype=pl.Int8).dtype
            if target == pa.int8()
            else pl.Series(pa.array([], target)).dtype
        )
        series = pl.Series(array)
        out = series.cast(kind, strict=False)
        failed.append((name, (out.is_null() & series.is_not_null()).to_numpy()))
        return out.to_arrow().cast(target)


def check_range(
    array: pa.Array, measure: pa.Array, low: int, high: int, name: str, failed: Failed
) -> None:
    """Mark as failed the values of *array* whose *measure* (length, or value) is not in
    low..high.
    """
    ends = pc.min_max(measure)
    if len(array) > array.null_count and (ends["min"].as_py() < low or ends["max"].as_py() > high):
        inside = pc.and_(pc.greater_equal(measure, low), pc.less_equal(measure, high))
        failed.append((name, pc.invert(inside).fill_null(False).to_numpy(zero_copy_only=False)))


def counts_of(lists: pa.ListArray) -> npt.NDArray[np.int32]:
    """Return how many items each of *lists* has."""
    offsets = lists.offsets.to_numpy()
    counts: npt.NDArray[np.int32] = offsets[1:] - offsets[:-1]
    return counts


def write_numbers(
    lists: pa.ListArray, counts: npt.NDArray[np.integer], step: int
) -> tuple[npt.NDArray[np.uint32], int, _Ints]:
    """Number client writes from *step* on: the number of each row's write, the next free number,
    and the records whose counts (*lists*) do not add up to *counts*, their numbers of rows.
    """
    sizes = counts_of(lists)
    values = lists.flatten().to_numpy()
    n = len(counts)
    if not len(values):
        return (
            np.repeat(np.arange(step, step + n, dtype=np.uint32), counts),
            step + n,
            np.empty(0, dtype=np.int64),
        )
    owner = np.repeat(np.arange(n), sizes)
    sums = np.bincount(owner, weights=np.clip(values, 0, 1 << 40), minlength=n).astype(np.int64)
    wrong = np.flatnonzero((sizes > 0) & (sums != counts))
    wrong = np.union1d(wrong, owner[values < 0])
    # a record without counts is one write; a wrong one is dropped later, but its rows still need a
    # number
    whole = np.union1d(np.flatnonzero(sizes == 0), wrong)
    kept = ~np.isin(owner, wrong)
    steps = np.concatenate([values[kept], counts[whole]])
    steps = steps[np.argsort(np.concatenate([owner[kept], whole]), kind="stable")]
    return (
        np.repeat(np.arange(step, step + len(steps), dtype=np.uint32), steps),
        step + len(steps),
        wrong,
    )
