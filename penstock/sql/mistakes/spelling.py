"""Keywords with letters missing, doubled or in another order: FORM, WHER, GROPU."""

from __future__ import annotations

import difflib

from penstock.errors import SqlSyntaxError
from penstock.sql.mistakes.place import Place
from penstock.sql.words import RESERVED

#: reserved words that are too short, or too near to names, to be guessed
_UNLIKELY = frozenset("ALL BY NOW IS IN ON OR AS TODAY TRUE FALSE CAST CASE END ELSE SET".split())
_WORDS = sorted(
    RESERVED - _UNLIKELY
    | {"STREAM", "TABLE", "STABLE", "DATABASE", "UNION", "EXISTS", "WATERMARK", "TRIGGER"}
)
_LONGEST = max(map(len, _WORDS)) + 3


def _misspelt(place: Place) -> SqlSyntaxError | None:
    """A word near a keyword: at the error, or before it, where it was taken for a name."""
    if place.says("this is no statement") or "did you mean" in place.error.hint:
        return None
    meant = _near(place.word())
    if meant:
        hint = place.error.hint
        return place.hinted(f"did you mean {meant}?" + (f" {hint}" if hint else ""))
    if not place.says("the statement should end", 'expected "," or ")"'):
        return None
    meant = _near(place.word(-1))
    if not meant:
        return None
    return place.mistake(f"{place.shown(-1)} is no keyword", f"did you mean {meant}?", -1)


def _near(word: str) -> str:
    """Return the keyword that *word* is near to, or nothing."""
    if not 3 <= len(word) <= _LONGEST or word in RESERVED:
        return ""
    found = difflib.get_close_matches(word, _WORDS, 1, 0.7)
    return found[0] if found and found[0] != word else ""


SPELLING = (_misspelt,)
