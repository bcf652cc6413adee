"""Passwords and tokens in statements, hidden from whatever shows a statement again: error snippets,
logs, the audit trail, SHOW CREATE. Of a WebSocket address, and of a web address in a statement
about streams, the scheme, the host and short words of its path are shown; of kafka://, a topic.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_STRING = r"""(?:'(?:[^'\\]|\\.|'')*+(?:'|\Z)|"(?:[^"\\]|\\.|"")*+(?:"|\Z))"""
#: PASS 'x', password = "x"; and any string behind CREATE USER or ALTER USER, wherever a mistake has
#: put it
_VALUE = re.compile(
    rf"""((?<!['"\w])(?:PASS|PASSWORD|TOKEN|SECRET)\w*`?(?:\s*=\s*|\s+))({_STRING})""",
    re.IGNORECASE | re.DOTALL,
)
_USER = re.compile(r"\b(?:CREATE|ALTER)\s+USER\b", re.IGNORECASE)
_ANY = re.compile(_STRING, re.DOTALL)
_NOTIFY = re.compile(rf"\bNOTIFY\s*+\(\s*+(?:{_STRING}\s*+,?+\s*+)*+", re.IGNORECASE | re.DOTALL)
_SOCKET = re.compile(r"\s*+wss?+:", re.IGNORECASE)
#: strings of rows may be such addresses, and are nobody's secret
_WEB = re.compile(r"\s*+(?:(?:ws|http)s?+|kafka):", re.IGNORECASE)
_ABOUT_STREAMS = re.compile(r"\b(?:STREAM|NOTIFY)\b", re.IGNORECASE)
_ADDRESS = re.compile(
    r"((?:ws|http)s?://)((?:.*@)?)([\w.:\[\]-]*+)([^?#]*+)(.*)\Z", re.IGNORECASE | re.DOTALL
)
#: a topic's name is nobody's secret; whatever else stands behind kafka:// may be one
_TOPIC = re.compile(r"kafka://[A-Za-z0-9._-]{1,249}\Z", re.IGNORECASE)
#: longest word of a path that is no token for sure
_WORD = 11
HIDDEN = "'***'"


def mask(text: str) -> str:
    """Replace every secret by asterisks of the same length, so that positions still fit."""
    return _replace(text, lambda secret: "*" * len(secret), lambda secret: "*" * len(secret))


def hide(text: str) -> str:
    """Replace every secret by '***': for logs, which should not tell lengths either."""
    return _replace(text, lambda _: HIDDEN, lambda secret: "***" if secret else "")


def _replace(text: str, whole: Callable[[str], str], part: Callable[[str], str]) -> str:
    """Replace secrets: by *whole* a string literal, by *part* a part of the content of one."""
    text = _VALUE.sub(lambda found: found[1] + whole(found[2]), text)
    address = _WEB if _ABOUT_STREAMS.search(text) else _SOCKET
    text = _ANY.sub(
        lambda found: _address(found[0], part) if address.match(found[0], 1) else found[0], text
    )
    text = _NOTIFY.sub(lambda found: _ANY.sub(lambda url: _address(url[0], part), found[0]), text)
    start = _USER.search(text)
    if start is None:
        return text
    return text[: start.end()] + _ANY.sub(lambda found: whole(found[0]), text[start.end() :])


def _address(literal: str, part: Callable[[str], str]) -> str:
    """The literal of an address without what may be a password or a token."""
    closed = len(literal) > 1 and literal[-1] == literal[0]
    content = literal[1:-1] if closed else literal[1:]
    quote = literal[-1] if closed else ""
    if _TOPIC.match(content):
        return literal
    found = _ADDRESS.match(content)
    if found is None:
        return literal[0] + part(content) + quote
    scheme, user, host, path, query = found.groups()
    if path and not path.startswith("/"):  # of no address that we know
        query = path + query
        path = ""
    user = part(user[:-1]) + "@" if user else ""
    words = "/".join(part(word) if _may_be_token(word) else word for word in path.split("/"))
    return literal[0] + scheme + user + host + words + part(query) + quote


def _may_be_token(word: str) -> bool:
    mixed = any(c.isdigit() for c in word) and any(c.isalpha() for c in word)
    odd = bool(re.sub(r"[\w.-]", "", word))
    return len(word) > _WORD or (mixed and len(word) > 4) or odd
