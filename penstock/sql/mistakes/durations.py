"""Lengths of time as other databases write them: `INTERVAL '5 minutes'`, `5 min`, `5ms`."""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import TokenType

from penstock.errors import SqlSyntaxError
from penstock.sql.mistakes.place import Place
from penstock.sql.nodes import UNITS

_NAMES = {
    "b": "nanosecond nanoseconds nsec ns",
    "u": "microsecond microseconds usec us µs",
    "a": "millisecond milliseconds msec millis ms",
    "s": "second seconds sec secs",
    "m": "minute minutes min mins",
    "h": "hour hours hr hrs",
    "d": "day days",
    "w": "week weeks wk",
    "n": "month months mon mons",
    "y": "year years yr yrs",
}
_UNITS = {name: unit for unit, names in _NAMES.items() for name in names.split()}
_UNITS |= {unit: unit for unit in UNITS}
_TEXT = re.compile(r"\s*([0-9]{1,18})\s*([A-Za-zµ]+)\s*")


def _other_length(place: Place) -> SqlSyntaxError | None:
    """A length of time in other words, at the error or behind the word INTERVAL there."""
    if place.says("the statement should") and place.kind(-1) is TokenType.NUMBER:
        # one letter may be a name: a = 1 b = 2
        length = _length(place, -1) if len(place.word()) > 1 else None
        if length is not None:
            return place.mistake("a length of time is one word", f"write {length}", -1)
    n = 1 if place.word() == "INTERVAL" and place.kind(1) is not TokenType.L_PAREN else 0
    if not (n or place.says("expected a length of time", 'expected "("', "the statement should")):
        return None
    length = _length(place, n)
    if length is None:
        return None
    if n and place.kind(-1) in (TokenType.PLUS, TokenType.DASH):
        return place.mistake("a length of time is written without INTERVAL", f"write {length}")
    if place.word(n - 1) == "INTERVAL":
        return place.mistake(
            "a window's length stands in parentheses", f"write INTERVAL({length})", n
        )
    if not place.says("expected a length of time"):
        return None
    return place.hinted(f"write {length}: a whole number and one of {' '.join(UNITS)}, no blank")


def _length(place: Place, n: int) -> str | None:
    """Return the length at token *n* as the dialect writes it."""
    if place.kind(n) is TokenType.STRING:
        text = place.token(n).text
        if text.isdigit():  # INTERVAL '5' MINUTE
            text = f"{text} {place.word(n + 1)}"
    elif place.kind(n) is TokenType.NUMBER:
        text = f"{place.token(n).text} {place.word(n + 1)}"
    else:
        return None
    match = _TEXT.fullmatch(text[:60])
    unit = _UNITS.get(match.group(2).lower()) if match else None
    return f"{match.group(1)}{unit}" if match and unit else None


DURATIONS = (_other_length,)
