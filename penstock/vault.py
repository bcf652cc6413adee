"""Backups: whole or not there at all, every byte under a digest, in a directory, behind rsync, or
in an object store that fsspec knows.

A vault holds subjects (a query of the stream jobs, a deployment). A subject has `objects/`, files
named by the digest of what they hold and shared by all its backups, and one sealed list of files
per backup, `<time>-<number>.backup`, which is written last: that publishes it.
    vault/<subject>/objects/3f/3fa9…         vault/<subject>/00001764000000000-000000017.backup
A list carries an HMAC made with the key of the mesh, because whoever can write to the place can
also make digests. Refused: publishing what was not read back with the right digest, restoring what
fails its digest, lists of a newer version, lists without the HMAC of this key, and paths that leave
the directory of the restore.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit, urlunsplit

import fsspec

from penstock import log, rsync
from penstock.errors import StateError
from penstock.restore_paths import open_below, path_faults

#: since version 2 a list carries an HMAC
VERSION = 2
_MAGIC = b"PENSTOCK BACKUP"
_SUFFIX = ".backup"
_CHUNK = 4 << 20
#: stands in place of the HMAC in a list that was made without a key
_UNSIGNED = "-"
#: a file larger than this is kept in parts
PART = 16 << 20
#: an object that no list names may belong to a backup that is being made: it is left alone this
#: long, seconds
_GRACE = 3600.0

_log = log.get(__name__)


@dataclass(frozen=True)
class Item:
    """A file of a backup, or part of a large one: where it goes (relative), what it holds, and how
    much.
    """

    path: str
    digest: str
    size: int
    part: int = 0


@dataclass(frozen=True)
class Backup:
    """One backup of *subject*; `time` in ms; `facts` are its maker's (numbers and texts)."""

    subject: str
    time: int
    number: int
    items: tuple[Item, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    version: int = VERSION
    #: whether the list carries the HMAC of the vault's key
    signed: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        return f"{self.time:017d}-{self.number:09d}"

    @property
    def size(self) -> int:
        return sum(i.size for i in self.items)


class Vault:
    """The backups below one directory or URL.

    Args:
        url: of the directory.
        key: signs what is published, and what is restored must carry its signature; None: nothing
            is signed and no signature is asked for.
        unsigned: restore backups without a signature, or with that of another key, too.
    """

    def __init__(self, url: str, key: bytes | None = None, *, unsigned: bool = False) -> None:
        self.url = url
        self._key = key
        self._ask_signature = key is not None and not unsigned
        self._fs: Any
        self._root: str
        try:
            self._fs, self._root = rsync.opened(url) or fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise StateError(
                f"no backups can be kept in {masked(url)}",
                detail=str(error),
                hint="a directory, host:path or rsync://… for rsync, or a URL of fsspec",
            ) from None
        self._local = "file" in (
            self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,)
        )

    # ---------------------------------------------------------------- writing

    def put(self, subject: str, path: str, data: bytes) -> Item:
        """Keep *data*; an object that is there already is kept as it is."""
        item = Item(path, hashlib.blake2b(data, digest_size=16).hexdigest(), len(data))
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
        content = {**asdict(backup), "facts": dict(backup.facts)}
        del content["signed"]
        body = json.dumps(content, separators=(",", ":")).encode()
        sealed = (
            f"{_UNSIGNED if self._key is None else _signature(self._key, body)}\n".encode() + body
        )
        data = (
            b"%s %d %s\n"
            % (_MAGIC, backup.version, hashlib.blake2b(sealed, digest_size=16).hexdigest().encode())
            + sealed
        )
        self._write(self._list(backup.subject, backup.name), lambda out: out.write(data))

    def remove(self, backup: Backup) -> None:
        self._rm(self._list(backup.subject, backup.name))

    def sweep(self, subject: str, now: float) -> int:
        """Remove objects that no backup of *subject* names, when they are old enough; how many.
        *now*: wall time, seconds.
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
        """Published backups of *subject*, the newest first; a damaged list is reported and left
        out.

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
                    digest, _ = _digest_of(file)
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
        """The content of one file.

        Raises:
            StateError: it is missing or damaged.
        """
        try:
            data: bytes = self._fs.cat_file(self._object(backup.subject, item.digest))
        except OSError as error:
            raise StateError(
                f"{item.path} of backup {backup.name} is missing", detail=str(error)
            ) from None
        if (
            len(data) != item.size
            or hashlib.blake2b(data, digest_size=16).hexdigest() != item.digest
        ):
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
            below: the directory that must hold it, without symbolic links on the way; default: that
                of the file.

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
            digest, _ = _digest_of(file)
        if digest != item.digest:
            self._rm(path)
            raise StateError(
                f"{item.path} changed while it was copied, or was not written as it is",
                detail=masked(path),
            )

    def _open(self, path: str) -> Backup | None:
        try:
            head, _, body = bytes(self._fs.cat_file(path)).partition(b"\n")
        except FileNotFoundError:
            return None  # removed meanwhile
        except OSError as down:
            raise StateError(
                "a list of a backup cannot be read", detail=f"{masked(path)}: {down}"[:300]
            ) from None
        parts = head.split(b" ")
        if (
            len(parts) == 4
            and head.startswith(_MAGIC)
            and parts[2].isdigit()
            and int(parts[2]) > VERSION
        ):
            raise StateError(
                f"backup {path} is of version {int(parts[2])}",
                hint="it was written by a newer Penstock: upgrade this one",
            )
        intact = len(parts) == 4 and head.startswith(_MAGIC) and parts[2].isdigit()
        backup = self._parsed(body, int(parts[2]), parts[3]) if intact else None
        # a list that was moved from another subject, or that wears another's name, is none
        if (
            backup is None
            or "/" in backup.subject
            or not path.endswith(f"/{backup.subject}/{backup.name}{_SUFFIX}")
        ):
            _log.warning("a list of a backup is damaged and does not count", path=masked(path))
            return None
        return backup

    def _parsed(self, sealed: bytes, version: int, digest: bytes) -> Backup | None:
        """Read a list; None when it is damaged."""
        if not hmac.compare_digest(
            hashlib.blake2b(sealed, digest_size=16).hexdigest().encode(), digest
        ):
            return None
        signature, body = (
            (b"", sealed)
            if version < 2
            else (sealed.partition(b"\n")[0], sealed.partition(b"\n")[2])
        )
        signed = self._key is not None and hmac.compare_digest(
            signature, _signature(self._key, body).encode()
        )
        try:
            raw = json.loads(body)
            items = tuple(
                Item(str(i["path"]), str(i["digest"]), int(i["size"]), int(i.get("part", 0)))
                for i in raw["items"]
            )
            facts = dict(raw["facts"])
            return Backup(
                str(raw["subject"]),
                int(raw["time"]),
                int(raw["number"]),
                items,
                facts,
                int(raw["version"]),
                signed,
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

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


def masked(url: str) -> str:
    """*url* without user and password."""
    parts = urlsplit(url)
    return (
        urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        if "@" in parts.netloc
        else url
    )


def _signature(key: bytes, body: bytes) -> str:
    return hmac.new(key, b"penstock backup list\n" + body, hashlib.sha256).hexdigest()


def _digest_of(file: IO[bytes]) -> tuple[str, int]:
    hashed = hashlib.blake2b(digest_size=16)
    size = 0
    while chunk := file.read(_CHUNK):
        hashed.update(chunk)
        size += len(chunk)
    return hashed.hexdigest(), size
