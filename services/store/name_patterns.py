"""Patterns of names in Flight SQL's lists: `%`, `_`, and a backslash before either."""

from __future__ import annotations

#: any text, any one character
_ANY = "%"
_ONE = "_"
#: what stands for a wildcard that is meant as it is written
_ESCAPES = "\\"


class NamePattern:
    """Fits names in any case of letters. Takes at most as many steps as the pattern and the name
    have characters, multiplied: patterns come from anybody.
    """

    def __init__(self, text: str) -> None:
        #: (character, whether it is a wildcard)
        self._parts: list[tuple[str, bool]] = []
        escaped = False
        for character in text.lower():
            if character == _ESCAPES and not escaped:
                escaped = True
                continue
            self._parts.append((character, not escaped and character in (_ANY, _ONE)))
            escaped = False
        if escaped:
            self._parts.append((_ESCAPES, False))

    def fits(self, name: str) -> bool:
        """Tell whether *name* is like the pattern."""
        text = name.lower()
        at = place = 0
        # where the last % stands, and up to where of the name it reaches
        star = reach = -1
        while place < len(text):
            if at < len(self._parts) and self._parts[at] == (_ANY, True):
                star = at
                reach = place
                at += 1
            elif at < len(self._parts) and self._takes(at, text[place]):
                at += 1
                place += 1
            elif star >= 0:
                reach += 1
                place = reach
                at = star + 1
            else:
                return False
        return all(part == (_ANY, True) for part in self._parts[at:])

    def _takes(self, at: int, character: str) -> bool:
        wanted, wild = self._parts[at]
        return wild or wanted == character
