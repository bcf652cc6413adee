"""How values compare: NaN is equal to itself and larger than all numbers, NULL is compared with
nothing.
"""

from __future__ import annotations

import math
from typing import Any


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def key(value: Any) -> Any:
    """Return what sorts values of one kind, none of them NULL; equal values have equal keys."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value


def compare(left: Any, right: Any) -> int | None:
    """Return -1, 0 or 1; None where a side is NULL. Whole numbers beside reals are reals."""
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        left = key(float(left))
        right = key(float(right))
    return int(left > right) - int(left < right)


def conjunction(values: list[bool | None]) -> bool | None:
    """AND of three values."""
    if False in values:
        return False
    return None if None in values else True


def disjunction(values: list[bool | None]) -> bool | None:
    """OR of three values."""
    if True in values:
        return True
    return None if None in values else False


def negation(value: bool | None) -> bool | None:
    return None if value is None else not value


def is_in(value: Any, items: list[Any]) -> bool | None:
    """`value IN (items)`."""
    found = [compare(value, item) for item in items]
    return disjunction([None if c is None else c == 0 for c in found])
