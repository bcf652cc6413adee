"""A directory behind rsync as a file system of fsspec:
`rsync://[user[:password]@]host[:port]/module/path`, or `[user@]host:path` over ssh.

Enough of a file system for backups: whole files are written, read, listed and removed, each by one
call of the program `rsync`, which has to be on both machines (3.2.4 or later: it makes directories
and syncs files). A file appears there under its name when it is whole. Refused: changing part of a
file, a shell between us and rsync, and places that rsync or ssh would read as options.
"""

from __future__ import annotations

import io
import re
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

from fsspec.spec import AbstractFileSystem

from penstock.errors import StateError

#: control characters, and a user or host that begins with `-`, which ssh takes for an option
_NO_PLACE = re.compile(r"[\x00-\x1f\x7f]|^(?:rsync://)?(?:-|[^/:@]*(?::[^/@]*)?@-)")
#: `host:path` as rsync and scp know it; a drive, a scheme and a plain path are none
_REMOTE = re.compile(r"(?:[\w.-]+@)?[\w.-]{2,}:(?!//)")
_SECONDS = 60
#: exit statuses: part of it was not transferred (mostly: it is not there)
_PARTIAL = (3, 23)
#: what `env` says
_NO_PROGRAM = 127
_LINE = re.compile(
    r"(?P<kind>[-dl])\S+\s+(?P<size>[\d,.]+) (?P<time>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) (?P<name>.+)"
)


def open_place(place: str) -> tuple[RsyncFileSystem, str] | None:
    """Return the file system and path of *place*; None when rsync is not meant.

    Raises:
        StateError: rsync or ssh would read part of it as an option.
    """
    if (place.startswith("rsync://") or _REMOTE.match(place)) and _NO_PLACE.search(place):
        raise StateError(
            "no place for rsync: a user or a host begins with '-', or there is a control character",
            hint="[user@]host:path, or rsync://[user[:password]@]host[:port]/module/path",
        )
    if place.startswith("rsync://"):
        parts = urlsplit(place)
        user = parts.netloc.rpartition("@")[0].partition(":")[0]
        host = parts.netloc.rpartition("@")[2]
        path = f"rsync://{user + '@' if user else ''}{host}{parts.path}"
        return RsyncFileSystem(
            password=None if parts.password is None else unquote(parts.password)
        ), path.rstrip("/")
    return (RsyncFileSystem(), place.rstrip("/")) if _REMOTE.match(place) else None


class RsyncFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Paths are what rsync is given: `rsync://user@host/module/path` or `host:path`."""

    protocol = "rsync"
    cachable = False

    def __init__(self, *, password: str | None = None) -> None:
        super().__init__()
        self._options = ["--no-motd", f"--timeout={_SECONDS}"]
        if password is not None:  # in a file, so that no list of processes shows it
            self._password = tempfile.NamedTemporaryFile("w", prefix="penstock-rsync-")
            self._password.write(password)
            self._password.flush()
            self._options.append(f"--password-file={self._password.name}")

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        """What looks like one is for rsync."""
        return path.rstrip("/")

    # ---------------------------------------------------------------- reading

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        found = self._list(path.rstrip("/") + "/")
        return found if detail else [f["name"] for f in found]

    def find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        **_: Any,
    ) -> list[str]:
        """Files below *path*, at any depth: one call of rsync."""
        return [
            f["name"]
            for f in self._list(path.rstrip("/") + "/", "--recursive")
            if f["type"] == "file"
        ]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        (found,) = self._list(path)
        return {**found, "name": path}

    def modified(self, path: str) -> datetime:
        when: datetime = self.info(path)["modified"]
        return when

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        with tempfile.TemporaryDirectory(prefix="penstock-rsync-") as directory:
            target = Path(directory, "file")
            self._rsync((), path, str(target))
            return target.read_bytes()[start:end]

    def _list(self, path: str, *options: str) -> list[dict[str, Any]]:
        directory = path.endswith("/")
        found = []
        for line in self._rsync(("--list-only", "--8-bit-output", *options), path).splitlines():
            if (entry := _LINE.fullmatch(line)) is None or entry["name"] == ".":
                continue
            name = path + entry["name"] if directory else path
            when = datetime.strptime(entry["time"], "%Y/%m/%d %H:%M:%S").replace(tzinfo=UTC)
            kind = "directory" if entry["kind"] == "d" else "file"
            found.append(
                {
                    "name": name,
                    "size": int(re.sub(r"\D", "", entry["size"])),
                    "type": kind,
                    "modified": when,
                }
            )
        if not directory and not found:
            raise FileNotFoundError(path)
        return found

    # ---------------------------------------------------------------- writing

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Nothing: writing a file makes the directories on its way."""

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        with tempfile.TemporaryDirectory(prefix="penstock-rsync-") as directory:
            source = Path(directory, "file")
            source.write_bytes(value)
            self._rsync(("--mkpath", "--fsync"), str(source), path)

    def rm_file(self, path: str) -> None:
        directory, _, name = path.rpartition("/")
        only = re.sub(r"([*?\[\\])", r"\\\1", name)
        with tempfile.TemporaryDirectory(prefix="penstock-rsync-") as empty:
            self._rsync(
                ("--dirs", "--delete", f"--include=/{only}", "--exclude=*"),
                f"{empty}/",
                f"{directory}/",
            )

    def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BytesIO:
        return io.BytesIO(self.cat_file(path)) if mode == "rb" else _Upload(self, path)

    def _rsync(self, options: tuple[str, ...], *places: str) -> str:
        """Run the program; what it said. No place is read as an option. Raises FileNotFoundError,
        OSError.
        """
        try:
            command = [
                "env",
                "TZ=UTC",
                "LC_ALL=C",
                "rsync",
                *self._options,
                *options,
                "--",
                *places,
            ]
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                # without a terminal, on which ssh would wait for a password
                start_new_session=True,
                capture_output=True,
                timeout=2 * _SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"rsync does not come to an end within {2 * _SECONDS} s") from None
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode == _NO_PROGRAM:
            raise OSError("there is no program rsync here: Debian's package is called rsync")
        if done.returncode in _PARTIAL and "No such file or directory" in said:
            raise FileNotFoundError(said[:300])
        if done.returncode:
            raise OSError(f"rsync: {said[:300] or f'exit status {done.returncode}'}")
        return done.stdout.decode(errors="surrogateescape")


class _Upload(io.BytesIO):
    """A file that is sent when it is closed, and not at all when writing it failed."""

    def __init__(self, fs: RsyncFileSystem, path: str) -> None:
        super().__init__()
        self._fs = fs
        self._path = path

    def close(self) -> None:
        if not self.closed:
            self._fs.pipe_file(self._path, self.getvalue())
        super().close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            super().close()
        self.close()
