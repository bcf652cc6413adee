"""The outside of a state file: its line of version and digest, its name, and how files chain. What
is inside belongs to spark_jobs.

`PENSTOCK STATE <version> <digest>` on a line, then an Arrow IPC file whose metadata names the file
it builds on (`base`, empty in a full one). A directory holds the files of one topic-partition,
named by the next source offset. Refused: files of a newer version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable

import pyarrow as pa

from penstock.errors import StateError

MAGIC = b"PENSTOCK STATE"
VERSION = 1
SUFFIXES = (".full", ".delta")


def seal(body: bytes) -> bytes:
    """*body* as a state file."""
    return b"%s %d %s\n" % (MAGIC, VERSION, _digest(body)) + body


def unseal(data: bytes, name: str) -> bytes | None:
    """Return what is inside a state file; None when it is damaged.

    Raises:
        StateError: it was written by a newer version.
    """
    head, _, body = data.partition(b"\n")
    parts = head.split(b" ")
    if len(parts) != 4 or not head.startswith(MAGIC) or not parts[2].isdigit():
        return None
    if int(parts[2]) > VERSION:
        raise StateError(
            f"state file {name} is of version {int(parts[2])}",
            hint="it was written by a newer Penstock: upgrade this one",
        )
    return body if _digest(body) == parts[3] else None


def file_name(next_offset: int, *, full: bool) -> str:
    return f"p{next_offset:020d}.{'full' if full else 'delta'}"


def is_state(name: str) -> bool:
    return name.startswith("p") and name.endswith(SUFFIXES)


def position_of(name: str) -> int:
    """The next source offset that a file is named by."""
    return int(name.split(".")[0][1:])


def in_order(names: Iterable[str]) -> list[str]:
    """Oldest first; a delta behind the full file of the same position."""
    return sorted(names, key=lambda n: (n.split(".")[0], n.endswith(".delta")))


def newest_chain(
    names: Iterable[str], read: Callable[[str], bytes | None]
) -> list[tuple[str, bytes]]:
    """The files, full one first, of the newest state that is whole; nothing when there is none.

    Arguments that need a word:
        read: the bytes of a file; None when it is gone.
    """
    for newest in reversed(in_order(n for n in names if is_state(n))):
        chain: list[tuple[str, bytes]] = []
        name = newest
        while name:
            data = read(name)
            body = None if data is None else unseal(data, name)
            if data is None or body is None:
                break
            chain.append((name, data))
            name = json.loads(pa.ipc.open_file(pa.BufferReader(body)).schema.metadata[b"penstock"])[
                "base"
            ]
        else:
            return chain[::-1]
    return []


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).hexdigest().encode()
