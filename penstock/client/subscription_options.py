"""Options of a subscription to a stream table, as `subscribeTable` has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SubscriptionOptions:
    """Options for handing rows over; see `subscribeTable`."""

    msg_as_table: bool = False
    batch_size: int = 0
    throttle: float = 1.0
    hash: int = -1
    reconnect: bool = False
    filter: Mapping[str, Any] | None = None
    persist_offset: bool = False
    time_trigger: bool = False
    handler_need_msg_id: bool = False
    raft_group: int | None = None


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
