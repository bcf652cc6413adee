"""What an expression is worth, in plain Python."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz_select.kinds import REAL
from tests.fuzz_select.ordering import is_in, is_nan, key
from tests.fuzz_select.tree import (
    Aggregate,
    Apply,
    Column,
    Exists,
    Expression,
    InQuery,
    Select,
    Value,
    WindowColumn,
)

#: `relation.column` → value
Row = Mapping[str, Any]
#: the rows of a subquery's answer, around which there is a row
Ask = Callable[[Select, Row], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Place:
    """Where an expression is computed: a row, and the group that it stands for."""

    row: Row
    zone: str
    ask: Ask
    group: Sequence[Row] = ()
    #: the values of `_wstart` and the like
    window: Mapping[str, int] = field(default_factory=dict)

    def at(self, row: Row) -> Place:
        """Return the place of one row of the group."""
        return Place(row, self.zone, self.ask)


def evaluate(node: Expression, place: Place) -> Any:
    """Return the value of *node*; NULL is None."""
    if isinstance(node, Value):
        return node.value
    if isinstance(node, Column):
        return place.row[node.place]
    if isinstance(node, Apply):
        return node.operation.compute([evaluate(o, place) for o in node.operands], place.zone)
    if isinstance(node, WindowColumn):
        return place.window[node.name]
    if isinstance(node, Aggregate):
        return _aggregate(node, place)
    answer = place.ask(node.select, place.row)
    if isinstance(node, Exists):
        return bool(answer)
    assert isinstance(node, InQuery)
    return is_in(evaluate(node.of, place), [row[0] for row in answer])


def _aggregate(node: Aggregate, place: Place) -> Any:
    """Compute an aggregate over the group, whose rows are in order of time."""
    if node.of is None:
        return len(place.group)
    values = [evaluate(node.of, place.at(row)) for row in place.group]
    if node.name == "last_row":
        latest = values[-1] if values else None
        return None if is_nan(latest) else latest
    known = [v for v in values if v is not None and not is_nan(v)]
    if node.distinct:
        known = list({key(v): v for v in known}.values())
    if node.name == "count":
        return len(known)
    if not known:
        return None
    if node.name == "percentile":
        assert node.share is not None
        return _rank(known, node.share / 100)
    return _finite(_AGGREGATES[node.name](known, node.of.kind))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _sum(values: list[Any], kind: str) -> Any:
    if kind in REAL:
        return math.fsum(values)
    total = sum(map(int, values))
    low, high = (0, 2**64) if "UNSIGNED" in kind else (-(2**63), 2**63)
    return total if low <= total < high else None


def _mean(values: list[Any], _: str) -> float:
    return math.fsum(values) / len(values)


def _spread(values: list[Any], _: str) -> float:
    return float(max(values)) - float(min(values))


def _deviation(values: list[Any], _: str) -> float:
    return statistics.pstdev(map(float, values))


def _sample_deviation(values: list[Any], _: str) -> float | None:
    return statistics.stdev(map(float, values)) if len(values) > 1 else None


def _rank(values: list[Any], share: float) -> float:
    """Between two values in proportion."""
    ordered = sorted(map(float, values))
    place = share * (len(ordered) - 1)
    low = ordered[math.floor(place)]
    high = ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


_AGGREGATES: dict[str, Callable[[list[Any], str], Any]] = {
    "sum": _sum,
    "avg": _mean,
    "min": lambda values, _: min(values, key=key),
    "max": lambda values, _: max(values, key=key),
    "first": lambda values, _: values[0],
    "last": lambda values, _: values[-1],
    "spread": _spread,
    "stddev": _deviation,
    "var_pop": lambda values, kind: _deviation(values, kind) ** 2,
    "stddev_samp": _sample_deviation,
}
