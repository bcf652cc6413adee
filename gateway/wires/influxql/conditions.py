"""WHERE of InfluxQL as a tree: names compared with values, and `time` with moments."""

from __future__ import annotations

from typing import Final

from gateway.wires.influxql.reading import TokenReader
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
#: of one WHERE
MOST_COMPARISONS = 200
#: brackets in brackets
_DEEPEST = 50
_TRUTHS = {"TRUE": True, "FALSE": False}


def condition(reader: TokenReader, now: int) -> Condition:
    """Read what stands behind WHERE; *now* is what now() means, in nanoseconds."""
    return _Conditions(reader, now).either(0)


class _Conditions:
    """Counts comparisons: many of them, or deep ones, would take long to answer."""

    def __init__(self, reader: TokenReader, now: int) -> None:
        self._reader = reader
        self._now = now
        self._count = 0

    def either(self, depth: int) -> Condition:
        parts = [self._both(depth)]
        while self._reader.take_word("OR"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _both(self, depth: int) -> Condition:
        parts = [self._single(depth)]
        while self._reader.take_word("AND"):
            parts.append(self._single(depth))
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _single(self, depth: int) -> Condition:
        reader = self._reader
        if reader.take_sign("("):
            if depth >= _DEEPEST:
                raise reader.wrong("fewer brackets")
            inside = self.either(depth + 1)
            reader.want_sign(")")
            return inside
        self._count += 1
        if self._count > MOST_COMPARISONS:
            raise reader.wrong(f"at most {MOST_COMPARISONS} comparisons")
        return self._comparison()

    def _comparison(self) -> Condition:
        reader = self._reader
        name = reader.identifier()
        found = _OPERATORS.get(reader.here.text) if reader.here.kind == "sign" else None
        if found is None:
            raise reader.wrong("a comparison")
        reader.step()
        if name.lower() == "time":
            return TimeBound(found, _moment(reader, self._now))
        return Comparison(name, found, _value(reader))


def _value(reader: TokenReader) -> Value:
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


def _moment(reader: TokenReader, now: int) -> int:
    """Read a time, and durations that are added to it or taken from it."""
    moment = _first_moment(reader, now)
    while reader.is_sign("+", "-"):
        sign = 1 if reader.here.text == "+" else -1
        reader.step()
        moment += sign * reader.length()
    return moment


def _first_moment(reader: TokenReader, now: int) -> int:
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
        return reader.length()
    return int(reader.number())
