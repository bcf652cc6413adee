"""A service called `attic` whose catalog and presence are made here, and note what is done to
them.
"""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, cast

from penstock.config.settings import Settings
from penstock.service import Service


class AtticSettings(Settings):
    service: ClassVar[str] = "attic"


def settings(tmp_path: Path, **more: Any) -> AtticSettings:
    return AtticSettings(data_dir=tmp_path, **more)


def terminate() -> None:
    """Send SIGTERM to this process."""
    os.kill(os.getpid(), signal.SIGTERM)


def readiness(port: int) -> dict[str, Any]:
    """Return the body of /readyz. Raises URLError when nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return dict(json.loads(answer.read()))
    except urllib.error.HTTPError as answer:
        return dict(json.loads(answer.read()))


class Parts:
    """Makes the catalog's reader and the presence; `events` is what happened, in order.

    `on` maps an event to what else happens then.
    """

    def __init__(self, on: dict[str, Callable[[], object]] | None = None) -> None:
        self.events: list[str] = []
        self.options: dict[str, Any] = {}
        self._on = on or {}

    def service(self, tmp_path: Path, **more: Any) -> Service:
        return Service(
            settings(tmp_path, **more),
            waits_for=("catalog", "socket"),
            make_reader=cast(Any, self._reader),
            make_presence=cast(Any, lambda *_: _Part(self, "presence")),
        )

    def note(self, event: str) -> None:
        self.events.append(event)
        self._on.get(event, lambda: None)()

    def _reader(self, bootstrap: str, **options: Any) -> _Part:
        self.options = {"bootstrap": bootstrap, **options}
        return _Part(self, "catalog")


class _Part:
    def __init__(self, parts: Parts, name: str) -> None:
        self._parts = parts
        self._name = name

    def start(self) -> None:
        self._parts.note(f"{self._name} starts")

    def close(self) -> None:
        self._parts.note(f"{self._name} closes")
