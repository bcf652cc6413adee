"""WHERE of InfluxQL as a tree: names compared with values, and `time` with moments."""

from __future__ import annotations

from typing import Final

from gateway.wires.influxql.lexer import length_of
from gateway.wires.influxql.reading import Reader
from gateway.wires.influxql.times import nanoseconds
from gateway.wires.influxql.tree import (
    Both,
    Comparison,
    Condition,
    Either,
    Operator,
    Pattern,
    TimeBound,
    Value,
)

_OPERATORS: Final[dict[str, Operator]] = {
    "=": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "=~": "=~",
    "!~": "!~",
}
#: brackets in brackets
_DEEPEST = 50
_TRUTHS = {"TRUE": True, "FALSE": False}


def condition(reader: Reader, now: int) -> Condition:
    """Read what stands behind WHERE; *now* is what now() means, in nanoseconds."""
    return _either(reader, now, 0)


def _either(reader: Reader, now: int, depth: int) -> Condition:
    left = _both(reader, now, depth)
    while reader.take_word("OR"):
        left = Either(left, _both(reader, now, depth))
    return left


def _both(reader: Reader, now: int, depth: int) -> Condition:
    left = _single(reader, now, depth)
    while reader.take_word("AND"):
        left = Both(left, _single(reader, now, depth))
    return left


def _single(reader: Reader, now: int, depth: int) -> Condition:
    if reader.take_sign("("):
        if depth >= _DEEPEST:
            raise reader.wrong("fewer brackets")
        inside = _either(reader, now, depth + 1)
        reader.want_sign(")")
        return inside
    name = reader.identifier()
    found = _OPERATORS.get(reader.here.text) if reader.here.kind == "sign" else None
    if found is None:
        raise reader.wrong("a comparison")
    reader.step()
    if name.lower() == "time":
        return TimeBound(found, _moment(reader, now))
    return Comparison(name, found, _value(reader))


def _value(reader: Reader) -> Value:
    token = reader.here
    if token.kind == "pattern":
        reader.step()
        return Pattern(token.text)
    if token.kind == "text":
        reader.step()
        return token.text
    if token.kind == "word" and token.text.upper() in _TRUTHS:
        reader.step()
        return _TRUTHS[token.text.upper()]
    return reader.number()


def _moment(reader: Reader, now: int) -> int:
    """Read a time, and durations that are added to it or taken from it."""
    moment = _first_moment(reader, now)
    while reader.is_sign("+", "-"):
        sign = 1 if reader.here.text == "+" else -1
        reader.step()
        moment += sign * _length(reader)
    return moment


def _first_moment(reader: Reader, now: int) -> int:
    token = reader.here
    if reader.take_word("NOW"):
        reader.want_sign("(")
        reader.want_sign(")")
        return now
    if token.kind == "text":
        found = nanoseconds(token.text)
        if found is None:
            raise reader.wrong("a time such as '2024-01-31T12:00:00Z'")
        reader.step()
        return found
    if token.kind == "duration":
        return _length(reader)
    return int(reader.number())


def _length(reader: Reader) -> int:
    token = reader.here
    if token.kind != "duration":
        raise reader.wrong("duration")
    reader.step()
    return length_of(token.text)
