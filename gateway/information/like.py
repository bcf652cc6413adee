"""The pattern of SHOW … LIKE."""

from __future__ import annotations


def matches(pattern: str, text: str) -> bool:
    """Tell whether *text* is LIKE *pattern*, in any case of letters: each part between `%` is
    taken where it first fits.
    """
    first, *rest = pattern.lower().split("%")
    text = text.lower()
    if not rest:
        return len(first) == len(text) and _fits(first, text, 0)
    *middle, last = rest
    at = len(first)
    end = len(text) - len(last)
    if end < at or not _fits(first, text, 0) or not _fits(last, text, end):
        return False
    for part in filter(None, middle):
        while at + len(part) <= end and not _fits(part, text, at):
            at += 1
        at += len(part)
        if at > end:
            return False
    return True


def _fits(part: str, text: str, at: int) -> bool:
    """Tell whether *text* has *part* at a position; `_` is any character."""
    return all(p in ("_", c) for p, c in zip(part, text[at : at + len(part)], strict=True))
