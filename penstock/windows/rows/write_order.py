"""A call's rows write by write, for kernels that settle after each write."""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.windows.assign.events import Stamp


def by_write(rows: pl.DataFrame, *, whole: bool) -> list[pl.DataFrame]:
    """Return *rows* (with `_g` and `_step`) in pieces that hold no two writes of one group.

    *whole*: groups know nothing of each other, so the first write of each is worked on at once,
    then the second of each, and so on. Otherwise a piece is one write.
    """
    if not whole:
        return rows.partition_by("_step", maintain_order=True)
    return rows.with_columns(_rounds(rows)).partition_by(
        "_round", maintain_order=True, include_key=False
    )


def _rounds(rows: pl.DataFrame) -> pl.Series:
    """Return for each row how many writes its group had before in this call."""
    groups = rows.get_column("_g").to_numpy()
    steps = rows.get_column("_step").to_numpy()
    order = np.argsort(groups, kind="stable")
    group = groups[order]
    step = steps[order]
    opens = np.append(True, group[1:] != group[:-1])[: len(group)]
    nth = np.cumsum(opens | np.append(True, step[1:] != step[:-1])[: len(group)])
    rounds = np.empty(len(group), np.int64)
    rounds[order] = nth - np.maximum.accumulate(np.where(opens, nth, 0))
    return pl.Series("_round", rounds)


def stamp_of(rows: pl.DataFrame, now: int, *, each_group: bool) -> Stamp:
    """Return the writes of *rows*: the first one, or one for *each group*, at *now*."""
    step = int(rows.get_column("_step")[0])
    if not each_group:
        return Stamp(step, now)
    own = rows.group_by("_g").agg(pl.col("_step").first(), pl.col("_now").max())
    return Stamp(step, now, {g: (s, n) for g, s, n in own.iter_rows()})
