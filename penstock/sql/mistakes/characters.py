"""Characters that look like others: from word processors, web pages and other languages' keys."""

from __future__ import annotations

import unicodedata

from penstock.errors import SqlSyntaxError
from penstock.sql.mistakes.place import Place

_SINGLE = "‘’‚‛′´＇"
_DOUBLE = "“”„‟«»″＂"
_DASHES = "‐‑‒–—―−－"
#: full-width forms of the signs of SQL
_WIDE = {
    "，": ",",
    "；": ";",
    "（": "(",
    "）": ")",
    "＝": "=",
    "＜": "<",
    "＞": ">",
    "＊": "*",
    "．": ".",
    "＋": "+",
    "！": "!",
    "％": "%",
    "、": ",",
}
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_INSTEAD = {
    **dict.fromkeys(_SINGLE, "'"),
    **dict.fromkeys(_DOUBLE, '"'),
    **dict.fromkeys(_DASHES, "-"),
    **_WIDE,
    **dict.fromkeys(_INVISIBLE, ""),
}


def _foreign_sign(place: Place) -> SqlSyntaxError | None:
    """A character that is no sign of SQL, in the token of the error or the one before."""
    for n in (-1, 0):
        token = place.token(n)
        begin = place.offset(n)
        text = place.source.text[begin : begin + token.end + 1 - token.start] if token.text else ""
        if text[:1] in ("'", '"', "`"):
            continue
        for at, character in enumerate(text):
            if character in _INSTEAD:
                return _error(place, begin + at, character)
    return None


def _error(place: Place, at: int, character: str) -> SqlSyntaxError:
    name = unicodedata.name(character, "").lower()
    code = f"U+{ord(character):04X}"
    instead = _INSTEAD[character]
    return place.source.syntax_error(
        f"{name or 'this character'} ({code}) is no sign of SQL",
        at,
        hint=f"write {instead} instead" if instead else "delete it: it cannot be seen",
    )


CHARACTERS = (_foreign_sign,)
