"""Definitions that the driver has read, for the workers that the daemon forks.

A worker lives as long as a task, and each reads the whole catalog. The driver writes the entries of
which there may be thousands to a file, and the daemon builds what is new in it just before it
forks, so a worker inherits them. It still believes the log alone: what it inherits stands for a
record that says the same. Without the file, as on a cluster's other machines, it builds its own.

The file: 16 random bytes, then Avro records of the catalog, a length of four bytes before each. No
users and no external systems; and only its owner may read it.
"""

from __future__ import annotations

import gc
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from penstock.catalog import entries
from penstock.catalog.apply import Changed
from penstock.catalog.built import BuiltEntries
from penstock.catalog.model import Database, Entry, StreamEntry, Table
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.errors import SchemaError
from penstock.runtime import log

#: what a worker inherits
BUILT = BuiltEntries()
_LENGTH = struct.Struct(">I")
_MARK_BYTES = 16
#: a file that is so much larger than its entries were is written anew
_SLACK_BYTES = 1 << 20
_log = log.get(__name__)


class EntryFile:
    """Written by one driver: all entries, and then each change."""

    def __init__(self, path: Path, catalog: CatalogReader) -> None:
        self._path = path
        self._reader = catalog
        self._size = self._most = 0

    def begin(self) -> None:
        """Write all there is now, and follow the catalog.

        Who cannot write does without: workers take longer to start.
        """
        try:
            self._write_all(self._reader.catalog)
        except OSError as error:
            _log.warning("workers read definitions by themselves", error=str(error))
            return
        self._reader.listen(self._add)

    def _write_all(self, catalog: Catalog) -> None:
        whole = os.urandom(_MARK_BYTES) + _packed(
            [*catalog.databases(), *catalog.tables(), *catalog.streams()]
        )
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with open(fresh, "xb", opener=_for_the_owner) as file:
            file.write(whole)
        fresh.replace(self._path)
        self._size = len(whole)
        self._most = 2 * len(whole) + _SLACK_BYTES

    def _add(self, changes: list[Changed]) -> None:
        packed = _packed([c.new for c in changes if c.new is not None])
        if not packed:
            return
        try:
            if self._size + len(packed) > self._most:
                self._write_all(self._reader.catalog)
                return
            with open(self._path, "ab") as file:
                file.write(packed)
            self._size += len(packed)
        except OSError as error:
            # half a record may be there: the next change begins a new file
            self._most = 0
            _log.warning("workers read definitions by themselves", error=str(error))


class EntryFileReader:
    """Builds what is in the file, again and again, in the process that forks."""

    def __init__(self, path: str, built: BuiltEntries) -> None:
        self._path = path
        self._built = built
        self._seen: tuple[int, int] | None = None
        self._mark = b""
        self._at = 0

    def catch_up(self) -> None:
        """Build what is new since the last time. A file that cannot be read is left out."""
        try:
            about = os.stat(self._path)
            if (about.st_size, about.st_mtime_ns) == self._seen:
                return
            with open(self._path, "rb") as file:
                mark = file.read(_MARK_BYTES)
                if mark != self._mark:
                    self._mark, self._at = mark, _MARK_BYTES
                    # of what is not in this file nobody will ask
                    self._built.clear()
                file.seek(self._at)
                self._build(file.read())
        except (OSError, SchemaError):
            return
        self._seen = about.st_size, about.st_mtime_ns
        # else a collection in a worker would write to all it inherits, and so unshare the pages
        gc.freeze()

    def _build(self, data: bytes) -> None:
        """Build from whole records; what is half written is there the next time."""
        at = 0
        while at + _LENGTH.size <= len(data):
            begin = at + _LENGTH.size
            end = begin + _LENGTH.unpack_from(data, at)[0]
            if end > len(data):
                break
            self._built.build(entries.read(data[begin:end]))
            self._at += end - at
            at = end


def _packed(found: Iterable[Entry]) -> bytes:
    values = [
        entries.to_value(e, 0) for e in found if isinstance(e, Database | Table | StreamEntry)
    ]
    return b"".join(_LENGTH.pack(len(v)) + v for v in values)


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
