"""The audit trail: logins, tokens, definitions, grants and refusals, one JSON object a line, in a
file of its own and in the service's log.

`open_trail` is called once at the start of a service; before that (and where no file is wanted)
lines go to the log only. Lines are appended by one write each, so that several processes may share
a file, and a file that was moved away is made anew. A file that has grown to its limit is moved to
`….1` by the process that notices, older ones to `….2` and on; the last one goes. Refused: secrets:
SQL comes here through `penstock.sql.secret.hide`.
"""

from __future__ import annotations

import fcntl
import logging
import os
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.runtime import log

_NAME = "penstock.audit"
_log = log.get(_NAME)
_BAD = ("login refused", "refused")


#: defaults of `PENSTOCK_AUDIT_LOG_BYTES` and `PENSTOCK_AUDIT_LOG_FILES`
MAX_BYTES = 64 << 20
KEPT_FILES = 8


class _RotatedFile(WatchedFileHandler):
    """A file that several processes append to. Readable by its owner only, also when it was made
    anew.
    """

    def __init__(self, path: str, max_bytes: int, kept: int) -> None:
        self._max_bytes = max_bytes
        self._kept = kept
        super().__init__(path, encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        file = os.open(
            self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600
        )
        return os.fdopen(file, "a", encoding="utf-8")

    def reopenIfNeeded(self) -> None:  # noqa: N802 - the name is logging's
        super().reopenIfNeeded()
        if (
            self._max_bytes
            and self.stream is not None
            and os.fstat(self.stream.fileno()).st_size >= self._max_bytes
        ):
            self._rotate()
            super().reopenIfNeeded()

    def _rotate(self) -> None:
        """Move the files on, unless another process just did."""
        directory = os.open(os.path.dirname(self.baseFilename), os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            if not self._is_ours():
                return
            for number in range(self._kept - 1, 0, -1):
                older = f"{self.baseFilename}.{number}"
                if os.path.exists(older):
                    os.replace(older, f"{self.baseFilename}.{number + 1}")
            if self._kept:
                os.replace(self.baseFilename, f"{self.baseFilename}.1")
            else:
                os.unlink(self.baseFilename)
        finally:
            os.close(directory)

    def _is_ours(self) -> bool:
        try:
            found = os.stat(self.baseFilename)
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == (self.dev, self.ino)


def open_trail(path: str, service: str, max_bytes: int = MAX_BYTES, kept: int = KEPT_FILES) -> None:
    """Append the trail to the file *path* from now on (empty: to none); readable by its owner only.

    Args:
        path: of the file.
        service: the service that writes.
        max_bytes: the file is moved to `….1` when it has grown to this; 0: never.
        kept: older files that are kept.
    """
    logger = logging.getLogger(_NAME)
    logger.setLevel(logging.INFO)  # whatever the service's own level
    for old in logger.handlers[:]:
        logger.removeHandler(old)
        old.close()
    if not path:
        return
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        handler = _RotatedFile(path, max_bytes, kept)
    except OSError as wrong:
        _log.warning(
            "the audit trail's file cannot be written: its lines are in this log only",
            path=path,
            reason=str(wrong.strerror),
        )
        return
    handler.setFormatter(log.formatter(service))
    logger.addHandler(handler)


def write(event: str, **fields: Any) -> None:
    """One line. *fields* hold no secrets."""
    (_log.warning if event in _BAD else _log.info)(event, audit=True, **fields)


def note_refusal(user: str, remote: str, error: PenstockError) -> None:
    """Write that somebody got E_FORBIDDEN."""
    write("refused", user=user, remote=remote, reason=error.message)
