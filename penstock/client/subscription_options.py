"""What a subscription to a stream table is of, and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Target:
    """What is subscribed to, and from where.

    Args:
        table: `database.name`.
        group: that keeps the table.
        action: name of the subscription among those of the table.
        offset: a row, 0 for the first, -1 now, -2 behind what was processed, -3 the earliest there
            is.
        node: where to begin; empty: at the leader.
    """

    table: str
    group: int
    action: str
    offset: int
    node: str = ""


@dataclass(frozen=True)
class SubscriptionOptions:
    """How a handler is called, and what becomes of a subscription when a node or program is lost.

    Args:
        msg_as_table: messages are tables (`Message`), else lists of columns.
        batch_size: call when this many rows have come, or more; 0: with every block that comes.
        throttle: seconds after which fewer rows than *batch_size* are handed over.
        hash: subscriptions of the same hash (modulo threads) are called by one thread; -1: by its
            own.
        reconnect: go to the new leader when the connection or the leader is lost. A subscription
            without it ends there.
        filter: a condition in SQL, a list of values, a pair of bounds, or `("hash", buckets,
            index)`.
        persist_offset: the group keeps how far rows are processed.
        time_trigger: call every *throttle* seconds, rows or not.
        handler_need_msg_id: the handler gets the id of the last row as well.
        raft_group: an id or alias. Programs that subscribe with the same group, table and action
            stand in for each other: one of them gets the rows, and when it is gone the next one,
            from the row behind what was processed. Implies *reconnect* and *persist_offset*.
    """

    msg_as_table: bool = False
    batch_size: int = 0
    throttle: float = 1.0
    hash: int = -1
    reconnect: bool = False
    filter: Any = None
    persist_offset: bool = False
    time_trigger: bool = False
    handler_need_msg_id: bool = False
    raft_group: int | str | None = None


def filter_of(given: Any) -> Mapping[str, Any] | None:
    """Return a filter, given in any of its forms, as the node takes it: a condition, values, a pair
    of bounds, or (buckets, index or range) as a tuple.

    Args:
        given: `"qty > 10"`; `["A", "B"]`; `range(…)` or `("A", "M")` for [from, to); `("hash", 4,
            0)` or `("hash", 4, 0, 2)`; or a dict.
    """
    if given is None or isinstance(given, Mapping):
        return given
    if isinstance(given, str):
        return {"sql": given}
    if isinstance(given, range):
        return {"range": [given.start, given.stop]}
    if isinstance(given, tuple):
        return _filter_of_tuple(given)
    if isinstance(given, Sequence):
        return {"values": list(given)}
    raise TypeError("a filter is a condition, a list of values, a pair of bounds, a hash or a dict")


def _filter_of_tuple(given: tuple[Any, ...]) -> Mapping[str, Any]:
    if given and given[0] == "hash":
        return {"hash": list(given[1:])}
    return {"range" if len(given) == 2 else "values": list(given)}
