"""Times in WHERE, taken out of the other conditions: a range that holds for the whole SELECT."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.wires.influxql.parser import unsupported
from gateway.wires.influxql.tree import Both, Comparison, Condition, Either, TimeBound

_ONE = {"<": -1, ">": 1}


@dataclass(frozen=True)
class NanosecondRange:
    """First and last nanosecond; None where it has no end."""

    start: int | None = None
    end: int | None = None

    def cut(self, bound: TimeBound) -> NanosecondRange:
        """Return the part of it that lies within *bound*. Raises SqlSemanticError."""
        if bound.operator not in ("=", "<", "<=", ">", ">="):
            raise unsupported(f"time {bound.operator}")
        moment = bound.moment + _ONE.get(bound.operator, 0)
        found = self
        if bound.operator in ("=", ">", ">="):
            start = moment if self.start is None else max(self.start, moment)
            found = replace(found, start=start)
        if bound.operator in ("=", "<", "<="):
            end = moment if self.end is None else min(self.end, moment)
            found = replace(found, end=end)
        return found


def split(condition: Condition | None) -> tuple[NanosecondRange, list[Condition]]:
    """Return the times of a WHERE, and its other conditions, all of which must hold. Raises
    SqlSemanticError: a time is in an OR.
    """
    times = NanosecondRange()
    others: list[Condition] = []
    waiting = [] if condition is None else [condition]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Both):
            waiting += reversed(one.parts)
        elif isinstance(one, TimeBound):
            times = times.cut(one)
        else:
            _refuse_times(one)
            others.append(one)
    return times, others


def _refuse_times(condition: Condition) -> None:
    waiting = [condition]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Both | Either):
            waiting += one.parts
        elif not isinstance(one, Comparison):
            raise unsupported("time in an OR")
