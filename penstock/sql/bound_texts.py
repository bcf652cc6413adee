"""The text of a query with parameters, cut as if their values were written in it: texts that differ
in values alone are one, whether the values are in the text or beside it.

What is taken for a placeholder is only one if the statement has one at the same place.
"""

from __future__ import annotations

import re

from penstock.errors import SqlError
from penstock.rows.parameters import Parameters
from penstock.sql import statements as st
from penstock.sql.parameters import values_of
from penstock.sql.query_texts import MOMENT, OTHER, PART, QueryText, kind_of
from penstock.sql.source import Source

_PART = re.compile(rf"{PART} | (?P<holder> \? | :[^\W\d]\w*+ )", re.VERBOSE | re.DOTALL)
_REAL = re.compile(r"[0-9]{1,15}\.[0-9]{1,15}")
#: a whole number as long as one that is cut out of a text
_MOST = 10**15


def cut_bound_text(text: str, parameters: Parameters, timezone: str) -> QueryText | None:
    """Cut a text into literals, values of placeholders and what is between.

    Args:
        timezone: of times among *parameters* that have none.

    Returns:
        None when *parameters* do not fit, which is for who reads the text to say.
    """
    matches = [*_PART.finditer(text)]
    holders = tuple(st.Placeholder(m[0][1:], *m.span()) for m in matches if m["holder"])
    if not holders:
        return None
    asked = st.Statement(source=Source(text), placeholders=holders)
    try:
        values = values_of(asked, parameters, timezone)
    except SqlError:
        return None
    written = [_write(values[m.start()]) if m["holder"] else _read(m[0]) for m in matches]
    return QueryText(
        _between(text, matches),
        tuple(literal for literal, _ in written),
        "".join(kind for _, kind in written),
        tuple(match.span() for match in matches),
        tuple(place for place, match in enumerate(matches) if match["holder"]),
    )


def _between(text: str, matches: list[re.Match[str]]) -> tuple[str, ...]:
    """Return what is between the parts of a text. A placeholder stays where it is: what is written
    may be a name in the answer.
    """
    between = []
    at = 0
    for match in matches:
        between.append(text[at : match.end() if match["holder"] else match.start()])
        at = match.end()
    return (*between, text[at:])


def has_placeholders(text: QueryText, placeholders: tuple[st.Placeholder, ...]) -> bool:
    """Tell if what was taken for placeholders in a text are those of its statement."""
    found = [text.spans[place] for place in text.holders]
    return found == [(holder.start, holder.end) for holder in placeholders]


def _read(literal: str) -> tuple[str, str]:
    return literal, kind_of(literal)


def _write(value: st.Value) -> tuple[str, str]:
    """Return a value as a literal, and its kind; values of two types are written in two ways."""
    if isinstance(value, str):
        literal = f"'{value}'"
        return literal, kind_of(literal)
    if isinstance(value, st.RelativeTime):
        return f"'{value.base}'", MOMENT
    if type(value) is int and 0 <= value < _MOST:
        return _read(str(value))
    if isinstance(value, float) and _REAL.fullmatch(repr(value)):
        return _read(repr(value))
    return f"{type(value).__name__} {value!r}", OTHER
