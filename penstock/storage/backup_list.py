"""The list of a backup: which files it has, sealed by a digest and, with the key of the mesh, by an
HMAC, because whoever can write to the place can also make digests.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.errors import StateError

#: since version 2 a list carries an HMAC
VERSION = 2
_MAGIC = b"PENSTOCK BACKUP"
#: stands in place of the HMAC in a list that was made without a key
_UNSIGNED = "-"


@dataclass(frozen=True)
class Item:
    """A file of a backup, or part of a large one: its relative path, the digest of its content, and
    its size in bytes.
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
    #: the list carries the HMAC of the vault's key
    signed: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        return f"{self.time:017d}-{self.number:09d}"

    @property
    def size(self) -> int:
        return sum(i.size for i in self.items)


def new_digest() -> hashlib.blake2b:
    """Return an empty digest of the kind that names objects."""
    return hashlib.blake2b(digest_size=16)


def digest_of(data: bytes) -> str:
    """Return the digest that names an object with this content."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def seal(backup: Backup, key: bytes | None) -> bytes:
    """Write a list: a line with its version and digest, a line with the HMAC, and the content."""
    content = {**asdict(backup), "facts": dict(backup.facts)}
    del content["signed"]
    body = json.dumps(content, separators=(",", ":")).encode()
    signature = _UNSIGNED if key is None else _signature(key, body)
    sealed = f"{signature}\n".encode() + body
    return b"%s %d %s\n" % (_MAGIC, backup.version, digest_of(sealed).encode()) + sealed


def unseal(data: bytes, key: bytes | None, path: str) -> Backup | None:
    """Read a list; None when it is damaged.

    Args:
        path: what an error calls it.

    Raises:
        StateError: it is of a newer version.
    """
    head, _, sealed = data.partition(b"\n")
    parts = head.split(b" ")
    if len(parts) != 4 or not head.startswith(_MAGIC) or not parts[2].isdigit():
        return None
    version = int(parts[2])
    if version > VERSION:
        raise StateError(
            f"backup {path} is of version {version}",
            hint="it was written by a newer Penstock: upgrade this one",
        )
    if not hmac.compare_digest(digest_of(sealed).encode(), parts[3]):
        return None
    signature = b""
    body = sealed
    if version >= 2:
        signature, _, body = sealed.partition(b"\n")
    signed = key is not None and hmac.compare_digest(signature, _signature(key, body).encode())
    return _parse(body, signed)


def _parse(body: bytes, signed: bool) -> Backup | None:
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


def _signature(key: bytes, body: bytes) -> str:
    return hmac.new(key, b"penstock backup list\n" + body, hashlib.sha256).hexdigest()
