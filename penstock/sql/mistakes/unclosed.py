"""Strings, names and comments that are never closed: where they begin."""

from __future__ import annotations

import re

from penstock.errors import SqlSyntaxError
from penstock.sql.source import Source

#: Text without anything special, or one string, name or comment, to the end if never closed.
_PART = re.compile(
    r"""[^'"`/\-]+ | '(?:[^'\\]|\\.|'')*+(?:'|\Z) | "(?:[^"\\]|\\.|"")*+(?:"|\Z)
    | `[^`]*(?:`|\Z) | --[^\n]* | /\*.*?(?:\*/|\Z) | [/\-]""",
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"\w")
_SHOWN = {
    "'": ("this string is never closed", "write ' behind the text; a ' within it is written ''"),
    '"': ("this string is never closed", 'write " behind the text; a " within it is written ""'),
    "`": ("this name is never closed", "write ` behind the name"),
    "/": ("this comment is never closed", "write */ behind the comment"),
}


def unclosed(source: Source, start: int, end: int) -> SqlSyntaxError | None:
    """Return the error of what the statement at [start, end) opens and never closes, or None."""
    at = start
    suspect = -1
    while at < end:
        match = _PART.match(source.text, at, end)
        if match is None:
            return None
        first = match.group()[0]
        if first in _SHOWN and match.group() != "/" and match.end() >= end:
            return _error(source, at, suspect, first)
        if suspect < 0 and first in "'\"" and _WORD.match(source.text, match.end(), end):
            suspect = at
        at = match.end()
    return None


def _error(source: Source, at: int, suspect: int, opened: str) -> SqlSyntaxError:
    """Return the error at *at*, or at a string before it that ends in the middle of a word: there
    the quote is missing, or one too many.
    """
    message, hint = _SHOWN[opened]
    if suspect < 0 or opened not in "'\"":
        return source.syntax_error(message, at, hint=hint)
    quote = source.text[suspect]
    return source.syntax_error(
        "a quote is missing or too many in the string that begins here",
        suspect,
        hint=f"a {quote} within a string is written {quote}{quote}",
    )
