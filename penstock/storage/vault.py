"""Backups: whole or not there at all, every byte under a digest, in a directory, behind rsync, or
in an object store that fsspec knows.

A vault holds subjects (a query of the stream jobs, a deployment). A subject has `objects/`, files
named by the digest of what they hold and shared by all its backups, and one sealed list of files
per backup, `<time>-<number>.backup`, which is written last: that publishes it.
    vault/<subject>/objects/3f/3fa9…         vault/<subject>/00001764000000000-000000017.backup
Nothing is published that was not read back with the right digest, and nothing is restored that
fails its digest, is on a list without the HMAC of this key, or has a path that leaves the directory
of the restore. What is in a list is `backup_list`'s.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit, urlunsplit

import fsspec

from penstock.errors import StateError
from penstock.runtime import log
from penstock.storage import rsync
from penstock.storage.backup_list import Backup, Item, digest_of, new_digest, seal, unseal
from penstock.storage.restore_paths import open_below, path_faults

_SUFFIX = ".backup"
_CHUNK = 4 << 20
#: a file larger than this is kept in parts
PART = 16 << 20
#: an object that no list names may belong to a backup that is being made: it is left alone this
#: long, seconds
_GRACE = 3600.0

_log = log.get(__name__)


class Vault:
    """The backups below one directory or URL.

    Args:
        url: of the directory.
        key: signs what is published, and what is restored must carry its signature; without one
            nothing is signed and no signature is asked for.
        unsigned: restore backups without a signature, or with that of another key, too.
    """

    def __init__(self, url: str, key: bytes | None = None, *, unsigned: bool = False) -> None:
        self.url = url
        self._key = key
        self._ask_signature = key is not None and not unsigned
        self._fs: Any
        self._root: str
        try:
            self._fs, self._root = rsync.open_place(url) or fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise StateError(
                f"no backups can be kept in {mask_login(url)}",
                detail=str(error),
                hint="a directory, host:path or rsync://… for rsync, or a URL of fsspec",
            ) from None
        self._local = "file" in (
            self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,)
        )

    # ---------------------------------------------------------------- writing

    def put(self, subject: str, path: str, data: bytes) -> Item:
        """Keep *data*; an object that is there already is kept as it is."""
        item = Item(path, digest_of(data), len(data))
        if self._missing(subject, item):
            self._write(self._object(subject, item.digest), lambda out: out.write(data))
            self._read_back(subject, item)
        return item

    def put_file(self, subject: str, path: str, source: Path) -> list[Item]:
        """Keep the content of a file, however large: in parts, so that one that has grown is not
        kept twice.
        """
        items: list[Item] = []
        with open(source, "rb") as file:
            while (data := file.read(PART)) or not items:
                items.append(replace(self.put(subject, path, data), part=len(items)))
        return items

    def publish(self, backup: Backup, before: Callable[[], None] = lambda: None) -> None:
        """Make *backup* visible; everything it names must be in the vault.

        Raises:
            StateError: something is missing.
        """
        missing = [i.path for i in backup.items if self._missing(backup.subject, i)]
        if missing:
            raise StateError(
                f"backup {backup.name} of {backup.subject} is not whole",
                detail=", ".join(missing[:5]),
            )
        before()
        data = seal(backup, self._key)
        self._write(self._list(backup.subject, backup.name), lambda out: out.write(data))

    def remove(self, backup: Backup) -> None:
        self._rm(self._list(backup.subject, backup.name))

    def sweep(self, subject: str, now: float) -> int:
        """Remove objects that no backup of *subject* names, when they are old enough. Return how
        many.

        Args:
            now: wall time, seconds.
        """
        backups = self.backups(subject)
        if not backups:
            return 0  # or they cannot be read just now
        used = {i.digest for b in backups for i in b.items}
        gone = 0
        for path in self._files(f"{self._root}/{subject}/objects"):
            digest = path.rpartition("/")[2]
            if digest not in used and self._age(path, now) > _GRACE:
                self._rm(path)
                gone += 1
        return gone

    # ---------------------------------------------------------------- reading

    def subjects(self) -> list[str]:
        return sorted(p.rpartition("/")[2] for p in self._ls(self._root) if self._fs.isdir(p))

    def backups(self, subject: str) -> list[Backup]:
        """Return the published backups of *subject*, the newest first; a damaged list is reported
        and left out.

        Raises:
            StateError: one is of a newer version, or cannot be read just now.
        """
        found = []
        for path in self._ls(f"{self._root}/{subject}"):
            if path.endswith(_SUFFIX):
                backup = self._open(path)
                if backup is not None:
                    found.append(backup)
        return sorted(found, key=lambda b: (b.time, b.number), reverse=True)

    def faults(self, backup: Backup, seen: Callable[[Item], None] = lambda _: None) -> list[str]:
        """List what is wrong with a backup: its signature and paths, files that are gone or whose
        digest is not theirs.

        *seen* is told each file.
        """
        wrong = self._objections(backup)
        if wrong:
            return wrong
        for item in backup.items:
            try:
                with self._fs.open(self._object(backup.subject, item.digest), "rb") as file:
                    digest = _digest_of_file(file)
                if digest != item.digest:
                    wrong.append(f"{item.path}: damaged")
            except OSError:
                wrong.append(f"{item.path}: missing")
            seen(item)
        return wrong

    def require_trusted(self, backup: Backup) -> None:
        """Check the signature of a backup and the paths that it would write, before anything is
        written.

        Raises:
            StateError: the signature is missing or of another key, or a path leaves the directory
                of the restore.
        """
        wrong = self._objections(backup)
        if wrong:
            raise StateError(
                f"backup {backup.name} of {backup.subject} is not to be trusted",
                detail="; ".join(wrong[:5]),
                hint=(
                    "give the key of the mesh that made it (--key), or, when you know who wrote it,"
                    " restore it with --unsigned; unsafe paths are never restored"
                ),
            )

    def _objections(self, backup: Backup) -> list[str]:
        if self._ask_signature and not backup.signed:
            return ["it has no signature of this mesh's key"]
        return path_faults([(item.path, item.part) for item in backup.items])

    def read(self, backup: Backup, item: Item) -> bytes:
        """Return the content of one file.

        Raises:
            StateError: it is missing or damaged.
        """
        try:
            data: bytes = self._fs.cat_file(self._object(backup.subject, item.digest))
        except OSError as error:
            raise StateError(
                f"{item.path} of backup {backup.name} is missing", detail=str(error)
            ) from None
        if len(data) != item.size or digest_of(data) != item.digest:
            raise StateError(
                f"{item.path} of backup {backup.name} is damaged",
                hint="`penstock snode list` shows others",
            )
        return data

    def extract(self, backup: Backup, item: Item, target: Path, below: Path | None = None) -> None:
        """Write one item of a backup to *target*, durably; the parts of a file are to come in
        order.

        Args:
            backup: it was checked by `require_trusted`.
            item: of the backup.
            target: the file.
            below: the directory that must hold it, without symbolic links on the way; by default
                that of the file.

        Raises:
            StateError: it is missing or damaged, or *target* is not a plain file below *below*.
        """
        data = self.read(backup, item)
        with open_below(below or target.parent, target, append=item.part > 0) as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())

    # ---------------------------------------------------------------- files

    def _object(self, subject: str, digest: str) -> str:
        return f"{self._root}/{subject}/objects/{digest[:2]}/{digest}"

    def _list(self, subject: str, name: str) -> str:
        return f"{self._root}/{subject}/{name}{_SUFFIX}"

    def _missing(self, subject: str, item: Item) -> bool:
        try:
            return int(self._fs.info(self._object(subject, item.digest))["size"]) != item.size
        except OSError:
            return True

    def _write(self, path: str, fill: Callable[[IO[bytes]], Any]) -> None:
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        if not self._local:  # an object store shows an object when it is whole
            with self._fs.open(path, "wb") as out:
                fill(out)
            self._fs.invalidate_cache()
            return
        part = f"{path}.{uuid.uuid4().hex}.part"
        try:
            with open(part, "wb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise

    def _read_back(self, subject: str, item: Item) -> None:
        path = self._object(subject, item.digest)
        with self._fs.open(path, "rb") as file:
            digest = _digest_of_file(file)
        if digest != item.digest:
            self._rm(path)
            raise StateError(
                f"{item.path} changed while it was copied, or was not written as it is",
                detail=mask_login(path),
            )

    def _open(self, path: str) -> Backup | None:
        try:
            data = bytes(self._fs.cat_file(path))
        except FileNotFoundError:
            return None  # removed meanwhile
        except OSError as down:
            raise StateError(
                "a list of a backup cannot be read", detail=f"{mask_login(path)}: {down}"[:300]
            ) from None
        backup = unseal(data, self._key, path)
        # a list that was moved from another subject, or that wears another's name, is none
        if (
            backup is None
            or "/" in backup.subject
            or not path.endswith(f"/{backup.subject}/{backup.name}{_SUFFIX}")
        ):
            _log.warning("a list of a backup is damaged and does not count", path=mask_login(path))
            return None
        return backup

    def _ls(self, path: str) -> list[str]:
        self._fs.invalidate_cache()
        try:
            return sorted(str(p).rstrip("/") for p in self._fs.ls(path, detail=False))
        except OSError:
            return []

    def _files(self, path: str) -> Iterable[str]:
        try:
            return [str(p) for p in self._fs.find(path)]
        except OSError:
            return []

    def _age(self, path: str, now: float) -> float:
        try:
            return now - float(self._fs.modified(path).timestamp())
        except (OSError, NotImplementedError):
            return 0.0

    def _rm(self, path: str) -> None:
        try:
            self._fs.rm_file(path)
        except OSError:
            pass  # somebody else has removed it


def mask_login(url: str) -> str:
    """Return *url* without user and password."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _digest_of_file(file: IO[bytes]) -> str:
    digest = new_digest()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()
