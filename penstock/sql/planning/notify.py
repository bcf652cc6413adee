"""NOTIFY: addresses that can be reached, events that exist."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from penstock.sql.plan import Notify
from penstock.sql.planning.refusals import refuse
from penstock.sql.statements import CreateStream

EVENTS = ("WINDOW_OPEN", "WINDOW_CLOSE")
MAX_URL_BYTES = 127
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f-\x9f]")


def plan_notify(statement: CreateStream, windowed: bool) -> Notify | None:
    """The NOTIFY clause, checked."""
    clause = statement.notify
    if clause is None:
        return None
    if not windowed:
        refuse(statement, "E_NOTIFY_WINDOW", statement.positions.get("notify"))
    for i, url in enumerate(clause.urls):
        problem = _problem(url)
        if problem:
            refuse(
                statement,
                "E_NOTIFY_URL",
                clause.url_offsets[i] if i < len(clause.url_offsets) else None,
                what=problem,
            )
    for i, event in enumerate(clause.on):
        if event not in EVENTS:
            refuse(
                statement,
                "E_NOTIFY_EVENT",
                clause.on_offsets[i] if i < len(clause.on_offsets) else None,
                event=event,
            )
    return Notify(
        tuple(dict.fromkeys(clause.urls)),
        tuple(dict.fromkeys(clause.on)),
        bool(clause.history),
        clause.on_failure or "pause",
    )


def _problem(url: str) -> str | None:
    """Return what is wrong with *url*, or None for an address that we can connect to."""
    if len(url.encode()) > MAX_URL_BYTES:
        return f"the address has {len(url.encode())} bytes, the limit is {MAX_URL_BYTES}"
    if _UNPRINTABLE.search(url):
        return "the address has blanks or control characters in it"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # the parser's words may hold a password
        return "the address cannot be read"
    if parts.scheme.lower() not in ("ws", "wss"):
        return (
            f"'{parts.scheme}' is no WebSocket scheme"
            if parts.scheme
            else "the address has no scheme"
        )
    if not parts.hostname:
        return "the address has no host"
    if not port:
        return "the address has no port"
    if parts.fragment:
        return "the address has a fragment (#…)"
    return None
