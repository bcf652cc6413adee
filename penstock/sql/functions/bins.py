"""The bins of histogram(), from their description."""

from __future__ import annotations

import json
import math
from typing import Any

#: most bins that a description may count
_MOST = 1000
_LINEAR = {"start", "width", "count", "infinity"}
_LOG = {"start", "factor", "count", "infinity"}
_FORMS = {
    "user_input": "'[1, 3, 5, 7]'",
    "linear_bin": '\'{"start": 0, "width": 5, "count": 5, "infinity": true}\'',
    "log_bin": '\'{"start": 1, "factor": 2, "count": 5, "infinity": true}\'',
}


def bin_edges(kind: object, text: object) -> list[float]:
    """Return the edges of the bins in rising order; a bin is between two of them, and has the upper
    one.

    Args:
        kind: user_input, linear_bin or log_bin.
        text: the description, as JSON.

    Raises:
        ValueError: the description is none of this kind.
    """
    name = str(kind).lower()
    if name not in _FORMS:
        raise ValueError("the bins are 'user_input', 'linear_bin' or 'log_bin'")
    try:
        described = json.loads(str(text))
    except (ValueError, RecursionError):
        described = None
    edges = _read(described) if name == "user_input" else _count(name, described)
    if edges is None:
        raise ValueError(f"the bins of {name} are written as {_FORMS[name]}")
    if len(edges) < 2 or sorted(set(edges)) != edges or any(map(math.isnan, edges)):
        raise ValueError("at least two edges are needed, each above the one before")
    return edges


def _read(described: Any) -> list[float] | None:
    if not isinstance(described, list) or not all(map(_is_number, described)):
        return None
    if len(described) > _MOST + 1:
        raise ValueError(f"there are more than {_MOST} bins")
    return [float(edge) for edge in described]


def _count(name: str, described: Any) -> list[float] | None:
    keys = _LINEAR if name == "linear_bin" else _LOG
    if not isinstance(described, dict) or described.keys() != keys:
        return None
    infinity = described.pop("infinity")
    if not isinstance(infinity, bool) or not all(map(_is_number, described.values())):
        return None
    places = _places(described["count"])
    start = float(described["start"])
    if name == "linear_bin":
        edges = [start + place * described["width"] for place in places]
    else:
        edges = _powers(start, float(described["factor"]), places)
    if not all(map(math.isfinite, edges)):
        raise ValueError("an edge is too large")
    edges.sort()
    return [-math.inf, *edges, math.inf] if infinity else edges


def _places(count: float) -> range:
    """Return the numbers of the edges of so many bins."""
    if count != int(count) or not 1 <= count <= _MOST:
        raise ValueError(f"count is a whole number from 1 to {_MOST}")
    return range(int(count) + 1)


def _powers(start: float, factor: float, places: range) -> list[float]:
    if start == 0 or factor <= 0 or factor == 1:
        raise ValueError("start must not be 0, and factor must be above 0 and not 1")
    try:
        return [start * factor**place for place in places]
    except OverflowError:
        return [math.inf]


def _is_number(value: object) -> bool:
    """Tell if *value* is a finite number that a DOUBLE holds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
