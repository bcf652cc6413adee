"""What a processor of a topic's next generation takes over from the one it comes from: the state of
the tables that are its own. Pure.

Each new partition comes from one old one, so state is only ever split. It is split by child table:
a stream's group in a scan belongs to one table, and what is kept of it is found by the group's
number. Numbers and names of groups stay as they were; of those that went to other partitions
nothing but the name is left. How far tables have come is kept of all: of those that are elsewhere
nobody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.errors import StateError
from penstock.rows.partition import partition, partition_of
from penstock.sql.plan import StreamPlan
from penstock.windows.kernel import Delta
from spark_jobs.processor.pending import CLOSED, ENDED
from spark_jobs.processor.stats import FRAME
from spark_jobs.state import Snapshot

#: frames whose column `n` is the number of a group
_BY_NUMBER = ("t.groups", "t.floors", "t.heard", "horizon")
#: frames that a kernel expects though they are empty
_ALWAYS = ("extras", "ghosts")

Mask = npt.NDArray[np.bool_]


def inherit(
    parent: Snapshot,
    plan: Callable[[str], StreamPlan],
    number: int,
    partitions: int,
    begin: int,
    *,
    counts: bool,
) -> Snapshot:
    """The state in which partition *number* of *partitions* begins, at offset *begin*.

    Args:
        parent: the state in which the old partition ended.
        counts: whether it goes on with the parent's counters (one of its children does).

    Raises:
        StateError: the parent's state is not of its end.
    """
    if parent.waiting.get(ENDED) != [str(begin - 1)]:
        raise StateError(
            f"the state to take over does not end at {begin - 1}",
            detail=str(parent.waiting.get(ENDED)),
        )
    deltas = {}
    for stream_id, chain in parent.deltas.items():
        stored = parent.streams.get(stream_id)
        if stored is not None:
            deltas[stream_id] = _split(plan(stored[0]), chain, number, partitions, counts)
    waiting = {k: v for k, v in parent.waiting.items() if k not in (CLOSED, ENDED)}
    return Snapshot(
        begin,
        parent.time,
        dict(parent.ends),
        dict(parent.seen),
        [],
        dict(parent.streams),
        deltas,
        waiting,
    )


def _split(
    plan: StreamPlan, chain: Sequence[Delta], number: int, partitions: int, counts: bool
) -> list[Delta]:
    belongs = _belongs(plan, chain, number, partitions) if plan.path == "scan" else None
    made = []
    for delta in chain:
        frames = {}
        for name, frame in delta.frames.items():
            if name == FRAME and not counts:
                continue
            own = frame if belongs is None else _own(name, frame, belongs)
            if own.height or not frame.height or name in _ALWAYS:
                frames[name] = own
        made.append(Delta(frames, delta.full))
    return made


def _own(name: str, frame: pl.DataFrame, belongs: Mask) -> pl.DataFrame:
    if "_g" in frame.columns:
        column = "_g"
    elif name in _BY_NUMBER:
        column = "n"
    else:
        return frame
    numbers = frame.get_column(column).to_numpy()
    return frame.filter(pl.Series(belongs[numbers], dtype=pl.Boolean))


def _belongs(plan: StreamPlan, chain: Sequence[Delta], number: int, partitions: int) -> Mask:
    """By number of a group, whether its table belongs to the partition."""
    frames = [d.frames["groups"] for d in chain if "groups" in d.frames]
    keys = pl.concat(frames) if frames else pl.DataFrame()
    texts = [k.sql.strip('`" ').lower() for k in plan.keys]
    if "tbname" in texts:
        if not keys.height:
            return np.zeros(0, np.bool_)
        names = keys.get_column(f"_k{texts.index('tbname')}")
        return (partition_of(names, partitions) == number).to_numpy()
    only = plan.source.child or plan.source.table
    return np.full(max(keys.height, 1), partition(only, partitions) == number)
