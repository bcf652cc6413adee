"""GET /v1/audit: the newest lines of the audit trail that this gateway writes, for who has ADMIN.

Owns reading the end of the file. What is in the trail, and that it holds no secrets, is the
business of `penstock.runtime.audit`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiohttp import web

from gateway import http
from gateway.guard import RequestGuard, user_of
from penstock.auth.access import Access

#: entries of an answer
DEFAULT = 100
MOST = 1_000
#: bytes that are read of each file
_TAIL = 1 << 20
#: keys of a line that an entry has by another name, or not at all
_HEAD = ("timestamp", "event", "level", "logger", "service", "room", "audit", "user", "remote")


class AuditRoutes:
    """The handler; `routes` mounts it."""

    def __init__(self, access: Access, path: str) -> None:
        """
        Args:
            path: of the trail's file; empty: there is none.
        """
        self._access = access
        self._path = Path(path) if path else None

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.get("/v1/audit", guard.wrap(self._tell))]

    async def _tell(self, request: web.Request) -> web.Response:
        """`?limit=` → `{"kept", "entries"}`, the newest first."""
        self._access.require(user_of(request), "ADMIN", None)
        most = http.limit_of(request, DEFAULT, MOST)
        entries: list[dict[str, Any]] = []
        if self._path is not None:
            entries = await asyncio.to_thread(newest, self._path, most)
        return http.json_response(
            {"kept": self._path is not None, "entries": entries},
            headers={"Cache-Control": "no-store"},
        )


def newest(path: Path, most: int) -> list[dict[str, Any]]:
    """Return up to *most* entries, the newest first: of the last MiB of the file, and of that of
    the file before it where these are too few. A file that is not there has none.
    """
    found: list[dict[str, Any]] = []
    for file in (path, path.with_name(f"{path.name}.1")):
        for line in _newest_lines(file):
            if len(found) == most:
                return found
            entry = _entry(line)
            if entry is not None:
                found.append(entry)
    return found


def _newest_lines(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            opened.seek(max(size - _TAIL, 0))
            lines = opened.read(_TAIL).split(b"\n")
    except FileNotFoundError:
        return
    # the first line of a part may have lost its beginning
    yield from reversed(lines[1:] if size > _TAIL else lines)


def _entry(line: bytes) -> dict[str, Any] | None:
    """Return a line as it is told; None for one that is not whole."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    if not isinstance(told, dict):
        return None
    return {
        "time": str(told.get("timestamp", "")),
        "event": str(told.get("event", "")),
        "service": str(told.get("service", "")),
        "user": str(told.get("user") or ""),
        "remote": str(told.get("remote") or ""),
        "details": {name: value for name, value in told.items() if name not in _HEAD},
    }
