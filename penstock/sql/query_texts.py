"""The text of a query, cut into its literals and what stands between them.

This is no parser: what it takes for a literal is only one if the statement's tree has one at the
same place. Such a literal may be exchanged for another of its kind: a text is read from left to
right, and both end where their own characters say so. So all around them is read as before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

#: kinds of literals: text without escapes, whole number, number with a point; names in quotes,
#: comments and texts with escapes are never exchanged
TEXT = "t"
WHOLE = "w"
REAL = "r"
OTHER = "-"
#: a time among parameters, which no text has
MOMENT = "m"

PART = r"""
    '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+" | `[^`]*+` | --[^\n]*+ | /\*.*?\*/
    | (?<![\w.$`'"\\])[0-9]{1,15}+(?:\.[0-9]{1,15}+)?(?![\w.])
    """
_PART = re.compile(PART, re.VERBOSE | re.DOTALL)
_PLAIN_TEXT = re.compile(r"'[^'\\\x00-\x1f\x7f\ud800-\udfff]*'")


@dataclass(frozen=True)
class QueryText:
    """A text in pieces.

    Args:
        between: what stands around the literals.
        literals: as they are written.
        kinds: a letter for each literal.
        spans: [start, end) of each in the text.
        holders: places, among the literals, of values that stand for placeholders.
    """

    between: tuple[str, ...]
    literals: tuple[str, ...]
    kinds: str
    spans: tuple[tuple[int, int], ...]
    holders: tuple[int, ...] = ()

    def without(self, places: Iterable[int]) -> tuple[str | None, ...]:
        """Return the literals, with None for those of *places*."""
        kept: list[str | None] = list(self.literals)
        for place in places:
            kept[place] = None
        return tuple(kept)


def cut_text(text: str) -> QueryText:
    """Cut a text into literals and what is between."""
    between = []
    spans = []
    at = 0
    for match in _PART.finditer(text):
        between.append(text[at : match.start()])
        spans.append(match.span())
        at = match.end()
    literals = tuple(text[start:end] for start, end in spans)
    kinds = "".join(map(kind_of, literals))
    return QueryText((*between, text[at:]), literals, kinds, tuple(spans))


def kind_of(literal: str) -> str:
    """Return the letter of what is written."""
    if literal[0].isdigit():
        return REAL if "." in literal else WHOLE
    return TEXT if _PLAIN_TEXT.fullmatch(literal) else OTHER
