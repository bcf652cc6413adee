"""InfluxDB line protocol: text to points.

Owns the grammar, escapes included, and the types of field values. A bad line is refused with its
number and the reason; what tables the points become is `gateway/wires/point_writer.py`'s business.
"""

from __future__ import annotations

import math
import re
from typing import Any

from gateway.wires.points import LineError, Point, Unsigned

_MEASUREMENT_END = re.compile(r"(?<!\\)[ ,]")
_ESCAPE = re.compile(r"\\([,= \\\"])")
_PAIR = re.compile(r"\\.")
_STRING_ESCAPE = re.compile(r'\\(["\\])')
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_TRUE = frozenset(("t", "T", "true", "True", "TRUE"))
_FALSE = frozenset(("f", "F", "false", "False", "FALSE"))
#: an element is a run of anything but the delimiter, or an escaped character
_KEY = re.compile(r"((?:\\.|[^\\,= ])+)=")
_TAG_VALUE = re.compile(r"(?:\\.|[^\\,= ])+")
_STRING = re.compile(r'"((?:\\.|[^"\\])*)"', re.DOTALL)
_TIME = re.compile(r"-?[0-9]{1,19}")
_PLAIN = re.compile(r"[^, \"]+")
_INT64 = range(-(2**63), 2**63)
_UINT64 = range(2**64)


def parse(text: str) -> tuple[list[Point], list[LineError]]:
    """Return the points of a body, and its bad lines. A bad line costs only itself."""
    points = []
    refused = []
    number = 0
    for record in _records(text):
        start = number + 1
        number += record.count("\n") + 1
        stripped = record.strip()
        if stripped and not stripped.startswith("#"):
            try:
                points.append(_point(stripped, start))
            except LineError as bad:
                refused.append(bad)
    return points, refused


def _records(text: str) -> list[str]:
    """Lines; a newline inside a quoted value does not end one. A value without an end does not take
    the lines behind it along.
    """
    lines = text.split("\n")
    if '"' not in text:
        return lines
    joined: list[str] = []
    held: list[str] = []
    quotes = 0
    for line in lines:
        held.append(line)
        quotes += _count_quotes(line)
        if quotes % 2 == 0 or held[0].lstrip().startswith("#"):
            joined.append("\n".join(held))
            held = []
            quotes = 0
    # the first of these has the quote without an end: every line behind it is whole, or it would
    # have ended there
    return joined + held


def _count_quotes(text: str) -> int:
    # an escaped backslash in front of a quote does not escape it
    return (_PAIR.sub("", text) if "\\" in text else text).count('"')


def _plain(text: str) -> str:
    return _ESCAPE.sub(r"\1", text) if "\\" in text else text


def _point(line: str, number: int) -> Point:
    end = _MEASUREMENT_END.search(line)
    if end is None or end.start() == 0:
        raise LineError("a measurement and at least one field are needed", number)
    tags, at = _tags(line, end.start(), number)
    if line[at] != " ":
        raise LineError(f"unexpected {line[at]!r} in column {at + 1}", number)
    fields, at = _fields(line, _skip(line, at), number)
    rest = line[at:].strip()
    if rest and not _TIME.fullmatch(rest):
        raise LineError(f"{rest[:32]!r} is not a timestamp", number)
    return Point(
        _plain(line[: end.start()]),
        tuple(sorted(tags.items())),
        fields,
        int(rest) if rest else None,
        number,
    )


def _tags(line: str, at: int, number: int) -> tuple[dict[str, str], int]:
    """Return the tags that begin at *at*, each behind a comma, and where they end: within the
    line.
    """
    tags: dict[str, str] = {}
    while line[at] == ",":
        key = _KEY.match(line, at + 1)
        value = key and _TAG_VALUE.match(line, key.end())
        if not key or not value:
            raise LineError(f"a tag is not key=value near column {at + 2}", number)
        text = _plain(value[0])
        if tags.setdefault(_plain(key[1]), text) != text:
            raise LineError(f'tag "{_plain(key[1])}" is given twice', number)
        at = value.end()
        if at >= len(line):
            raise LineError("there are no fields", number)
    return tags, at


def _fields(line: str, at: int, number: int) -> tuple[dict[str, Any], int]:
    """Return the fields that begin at *at*, and where they end."""
    fields: dict[str, Any] = {}
    while True:
        key = _KEY.match(line, at)
        if not key:
            raise LineError(f"a field is not key=value near column {at + 1}", number)
        name = _plain(key[1])
        fields[name], at = _value(line, key.end(), number, name)
        if at >= len(line) or line[at] != ",":
            return fields, at
        at += 1


def _skip(line: str, at: int) -> int:
    while at < len(line) and line[at] == " ":
        at += 1
    return at


def _value(line: str, at: int, number: int, name: str) -> tuple[Any, int]:
    prefixed = line[at : at + 2] in ('L"', 'l"')
    if prefixed or line[at : at + 1] == '"':
        quoted = _STRING.match(line, at + prefixed)
        if not quoted:
            raise LineError(f'the text of field "{name}" has no end', number)
        return _STRING_ESCAPE.sub(r"\1", quoted[1]), quoted.end()
    match = _PLAIN.match(line, at)
    if not match:
        raise LineError(f'field "{name}" has no value', number)
    value = _read_unquoted(match[0])
    if value is None:
        raise LineError(
            f'value {match[0][:64]!r} of field "{name}" is not a number, boolean or quoted text',
            number,
        )
    return value, match.end()


def _read_unquoted(text: str) -> bool | int | float | Unsigned | None:
    """Return the value of a field that has no quotes; None if *text* is none."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    try:
        if text[-1] == "i":
            integer = int(text[:-1])
            return integer if integer in _INT64 else None
        if text[-1] == "u":
            integer = int(text[:-1])
            return Unsigned(integer) if integer in _UINT64 else None
    except ValueError:
        return None
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None
