"""The text of a query, cut into its literals and what stands between them.

This is no parser: what it takes for a literal is only one if the statement's tree has one at the
same place. Such a literal may be exchanged for another of its kind: a text is read from left to
right, and both end where their own characters say so. So all around them is read as before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: kinds of literals: text without escapes, whole number, number with a point; names in quotes,
#: comments and texts with escapes are never exchanged
TEXT = "t"
WHOLE = "w"
REAL = "r"
_OTHER = "-"

_PART = re.compile(
    r"""( '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+" | `[^`]*+` | --[^\n]*+ | /\*.*?\*/
    | (?<![\w.$`'"\\])[0-9]{1,15}+(?:\.[0-9]{1,15}+)?(?![\w.]) )""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN_TEXT = re.compile(r"'[^'\\\x00-\x1f\x7f\ud800-\udfff]*'")


@dataclass(frozen=True)
class QueryText:
    """`between` is what stands around the `literals`, whose `kinds` are letters, in their order."""

    between: tuple[str, ...]
    literals: tuple[str, ...]
    kinds: str

    def spans(self) -> list[tuple[int, int]]:
        """Return [start, end) of each literal."""
        made = []
        at = 0
        for before, literal in zip(self.between, self.literals, strict=False):
            start = at + len(before)
            at = start + len(literal)
            made.append((start, at))
        return made


def cut_text(text: str) -> QueryText:
    """Cut a text into literals and what is between."""
    parts = _PART.split(text)
    literals = tuple(parts[1::2])
    return QueryText(tuple(parts[::2]), literals, "".join(map(_kind, literals)))


def _kind(literal: str) -> str:
    if literal[0].isdigit():
        return REAL if "." in literal else WHOLE
    return TEXT if _PLAIN_TEXT.fullmatch(literal) else _OTHER
