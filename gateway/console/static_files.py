"""The console's files in memory: what they are, how they are sent, and one digest of them all.

A request names a file of this list or gets nothing: no path of a request reaches the file system.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
#: the folders that are given out
FOLDERS = ("app", "vendor")
#: stands in the page for the folder of this version's files
_VERSION_MARK = b"VERSION"
_DIGEST_LENGTH = 16


@dataclass(frozen=True)
class StaticFile:
    """One file, as it is sent."""

    body: bytes
    content_type: str

    @cached_property
    def compressed(self) -> bytes:
        # without a time inside, every gateway sends the same bytes
        return gzip.compress(self.body, mtime=0)

    @cached_property
    def etag(self) -> str:
        return _digest([self.body])


class StaticFiles:
    """All files of the console, read once."""

    def __init__(self, found: Mapping[str, bytes]) -> None:
        """
        Args:
            found: contents by path, such as `app/main.js`; `app/index.html` is the page.
        """
        parts = [part for name in sorted(found) for part in (name.encode(), found[name])]
        #: changes with every file, so a path with it may be cached for good
        self.version = _digest(parts)
        self._files = {name: StaticFile(body, TYPES[_suffix(name)]) for name, body in found.items()}
        page = found["app/index.html"].replace(_VERSION_MARK, self.version.encode())
        self.page = StaticFile(page, TYPES[".html"])

    def find(self, name: str) -> StaticFile | None:
        return self._files.get(name)

    @property
    def names(self) -> list[str]:
        return sorted(self._files)


def packaged() -> StaticFiles:
    """Return the files of this installation."""
    root = files("gateway.console")
    found: dict[str, bytes] = {}
    for folder in FOLDERS:
        found.update(_read(root.joinpath(folder), folder))
    return StaticFiles(found)


def _read(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _read(entry, name)
        elif _suffix(entry.name) in TYPES:
            yield name, entry.read_bytes()


def _suffix(name: str) -> str:
    return "." + name.rpartition(".")[2]


def _digest(parts: list[bytes]) -> str:
    made = hashlib.sha256()
    for part in parts:
        made.update(len(part).to_bytes(8, "big"))
        made.update(part)
    return made.hexdigest()[:_DIGEST_LENGTH]
