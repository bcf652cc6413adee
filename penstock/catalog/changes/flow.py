"""Where rows flow, from one table to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def leads_to(start: int, goal: int, following: Callable[[int], Iterable[int]]) -> bool:
    """Return True when table *goal* is *start* or comes after it, by steps of *following*."""
    seen = set[int]()
    todo = [start]
    while todo:
        at = todo.pop()
        if at == goal:
            return True
        if at not in seen:
            seen.add(at)
            todo += following(at)
    return False
