"""Data points of OpenTSDB: JSON and lines of `put` to points.

Owns both grammars. A point has one value, in the column `_value`; a bad one is refused with its
number and the reason.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from gateway.wires.points import LineError, Point
from penstock.errors import SchemaError

VALUE_COLUMN = "_value"
#: of one body; each costs a turn of Python
MOST_POINTS = 500_000
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_SECONDS = re.compile(r"[0-9]{1,10}")
_MILLISECONDS = re.compile(r"[0-9]{13}")


def from_json(text: str) -> tuple[list[Point], list[LineError]]:
    """Return the points of a JSON object or array, and its bad ones; times in milliseconds. Raises
    SchemaError: it is no JSON.
    """
    try:
        sent = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise SchemaError("the body is not JSON", code="E_BODY", detail=str(wrong)[:200]) from None
    return _read(sent if isinstance(sent, list) else [sent], _of_object)


def from_lines(text: str) -> tuple[list[Point], list[LineError]]:
    """Return the points of lines `metric time value tag=value …`, with `put` in front or without,
    and the bad ones.
    """
    return _read(text.split("\n"), _of_line)


def _read(sent: list[Any], read: Any) -> tuple[list[Point], list[LineError]]:
    if len(sent) > MOST_POINTS:
        raise SchemaError(
            f"there are more than {MOST_POINTS} points in one body",
            code="E_TOO_LARGE",
            hint="send them in parts",
        )
    points: list[Point] = []
    refused: list[LineError] = []
    for number, one in enumerate(sent, 1):
        try:
            point = read(one, number)
        except LineError as bad:
            refused.append(bad)
        else:
            if point is not None:
                points.append(point)
    return points, refused


def _of_object(sent: Any, number: int) -> Point:
    if not isinstance(sent, dict):
        raise LineError("a point is an object with metric, timestamp, value and tags", number)
    metric = sent.get("metric")
    if not isinstance(metric, str) or not metric:
        raise LineError("there is no metric", number)
    tags = sent.get("tags", {})
    if not isinstance(tags, dict):
        raise LineError("tags is not an object", number)
    pairs = [(name, _tag_text(name, value, number)) for name, value in tags.items()]
    value = sent.get("value")
    return _point(metric, sent.get("timestamp"), value, pairs, number)


def _tag_text(name: str, value: Any, number: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise LineError(f"the value of tag {name[:64]!r} is no text and no number", number)


def _of_line(line: str, number: int) -> Point | None:
    words = line.split()
    if words and words[0] == "put":
        words = words[1:]
    if not words:
        return None
    if len(words) < 3:
        raise LineError("a point is: metric, time, value, tag=value …", number)
    metric, time, value, *rest = words
    pairs = []
    for word in rest:
        name, equals, text = word.partition("=")
        if not equals:
            raise LineError(f"{word[:64]!r} is not tag=value", number)
        pairs.append((name, text))
    return _point(metric, time, value, pairs, number)


def _point(
    metric: str, time: Any, value: Any, pairs: Iterable[tuple[str, str]], number: int
) -> Point:
    tags: dict[str, str] = {}
    for name, text in pairs:
        if not name or not text:
            raise LineError(f"tag {name[:64]!r} has no name or no value", number)
        if tags.setdefault(name, text) != text:
            raise LineError(f"tag {name[:64]!r} is given twice", number)
    _require_text([metric, *tags, *tags.values()], number)
    return Point(
        metric,
        tuple(sorted(tags.items())),
        {VALUE_COLUMN: _value(value, number)},
        _milliseconds(time, number),
        number,
    )


def _require_text(texts: Iterable[str], number: int) -> None:
    """JSON can say halves of characters, which no text may have."""
    for text in texts:
        if not text.isascii() and not text.encode(errors="ignore").decode() == text:
            raise LineError("a name or tag is no text", number)


def _milliseconds(time: Any, number: int) -> int:
    """Return a time; up to ten digits are seconds, thirteen are milliseconds."""
    text = str(time) if isinstance(time, int | str) and not isinstance(time, bool) else ""
    if _SECONDS.fullmatch(text):
        return int(text) * 1000
    if _MILLISECONDS.fullmatch(text):
        return int(text)
    raise LineError("the timestamp is not in seconds or milliseconds", number)


def _value(value: Any, number: int) -> float | bool:
    """Return a value: a number, which is a DOUBLE however it is written, or a boolean."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise LineError(f"value {value[:64]!r} is not a number", number)
    if isinstance(value, str | int | float):
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if math.isfinite(found):
            return found
    raise LineError("the value is not a number", number)
