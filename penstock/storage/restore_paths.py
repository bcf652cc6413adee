"""Names in a backup are somebody else's text: which of them may become files, and a way to write
them that follows no link.

Pure checks first, before anything is removed or written; then each directory on the way is opened
by its own name, so that a symbolic link that stands there, or appears meanwhile, is an error and
not a way out.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from penstock.errors import StateError

_LONGEST = 255
#: names that are devices on some system, with any extension
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.[^.]*)?")
#: backslashes and colons separate directories and drives elsewhere; control characters have no
#: place in a name
_FORBIDDEN = re.compile(r"[\\:\x00-\x1f\x7f]")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def path_fault(path: str) -> str:
    """Say why *path* is no relative path of a plain file; empty when it is one."""
    if path.startswith("/"):
        return f"absolute path {path!r}"
    for name in path.split("/"):
        if name in ("", ".", ".."):
            return f"path {path!r} leaves its directory"
        if _FORBIDDEN.search(name) or not name.isprintable():
            return f"path {path!r} has a character that names of files do not have"
        if _DEVICES.fullmatch(name):
            return f"path {path!r} names a device"
        if len(name.encode(errors="surrogatepass")) > _LONGEST:
            return f"path {path[:60]!r}… is too long"
    return ""


def path_faults(items: Iterable[tuple[str, int]]) -> list[str]:
    """List what is wrong with the paths of a backup: (path, part) of each item, in order.

    Besides each path alone: parts follow each other from 0, no file comes twice, and no file is the
    directory of another.
    """
    found: list[str] = []
    parts: dict[str, int] = {}
    for path, part in items:
        fault = "" if path in parts else path_fault(path)
        if fault:
            found.append(fault)
        elif part != parts.get(path, -1) + 1:
            found.append(f"path {path!r} comes twice, or a part of it is missing")
        parts[path] = part
    directories = {
        "/".join(names[:n]) for names in (p.split("/") for p in parts) for n in range(1, len(names))
    }
    found += [f"path {path!r} is a file and a directory" for path in parts.keys() & directories]
    return found


def _names_below(root: Path, target: Path) -> tuple[str, ...]:
    """Split the way from *root* to *target*. Raises StateError when it leads out of *root*."""
    names = target.relative_to(root).parts if target.is_relative_to(root) else ()
    if not names or ".." in names:
        raise StateError(
            f"{target} is outside of {root}", hint="the backup is not restored: make another one"
        )
    return names


def _require_plain(file: int, target: Path) -> None:
    """Close *file* and raise StateError unless it is a plain file with no other name."""
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(file)
        raise StateError(
            f"{target} is not a plain file of its own",
            hint="remove it, or restore into a new directory",
        )


def open_below(root: Path, target: Path, *, append: bool) -> IO[bytes]:
    """Open *target* for writing; directories between *root* and it are made. *root* itself may be a
    link of the operator's.

    Raises:
        StateError: *target* is not below *root*, there is a symbolic link on the way, or it is no
            plain file.
    """
    names = _names_below(root, target)
    root.mkdir(parents=True, exist_ok=True)
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            directory = _step(directory, name)
        flags = (
            os.O_WRONLY
            | os.O_CREAT
            | os.O_NOFOLLOW
            | os.O_NONBLOCK
            | os.O_CLOEXEC
            | (os.O_APPEND if append else 0)
        )
        file = os.open(names[-1], flags, 0o666, dir_fd=directory)
        _require_plain(file, target)
        if not append:
            os.ftruncate(file, 0)
        return os.fdopen(file, "ab" if append else "wb")
    except OSError as wrong:
        raise StateError(
            f"{target} cannot be written",
            detail=str(wrong.strerror),
            hint="links are not followed: restore into a new directory",
        ) from None
    finally:
        os.close(directory)


def _step(directory: int, name: str) -> int:
    """Open *name* in *directory*, made where it is missing; closes *directory* then."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=directory)
    below = os.open(name, _DIRECTORY, dir_fd=directory)
    os.close(directory)
    return below
