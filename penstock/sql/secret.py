"""Passwords in statements, hidden from whatever shows a statement again: error snippets, logs, the audit trail."""

from __future__ import annotations

import re

_STRING = r"""(?:'(?:[^'\\]|\\.|'')*+(?:'|\Z)|"(?:[^"\\]|\\.|"")*+(?:"|\Z))"""
#: PASS 'x', password = "x"; and any string behind CREATE USER or ALTER USER, wherever a mistake has put it
_VALUE = re.compile(rf"""((?<!['"\w])(?:PASS|PASSWORD|TOKEN|SECRET)\w*`?(?:\s*=\s*|\s+))({_STRING})""", re.IGNORECASE | re.DOTALL)
_USER = re.compile(r"\b(?:CREATE|ALTER)\s+USER\b", re.IGNORECASE)
_ANY = re.compile(_STRING, re.DOTALL)
HIDDEN = "'***'"


def masked(text: str) -> str:
    """*text* with every secret as asterisks of the same length, so that positions still fit."""
    text = _VALUE.sub(lambda found: found[1] + "*" * len(found[2]), text)
    start = _USER.search(text)
    if start is None:
        return text
    return text[: start.end()] + _ANY.sub(lambda found: "*" * len(found[0]), text[start.end() :])


def hidden(text: str) -> str:
    """*text* with every secret as '***': for logs, which should not tell lengths either."""
    text = _VALUE.sub(lambda found: found[1] + HIDDEN, text)
    start = _USER.search(text)
    return text if start is None else text[: start.end()] + _ANY.sub(HIDDEN, text[start.end() :])
