"""The audit trail: logins, tokens, definitions, grants and refusals, one JSON object a line, in a file of its own and in the room's log.

`open_trail` is called once at the start of a room; before that (and where no file is wanted) lines go to the log only. Lines are appended
by one write each, so that several processes may share a file, and a file that was moved away is made anew. Refused: secrets: SQL comes here
through `penstock.sql.secret.hidden`.
"""

from __future__ import annotations

import logging
import os
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any

from penstock import log
from penstock.errors import PenstockError

_NAME = "penstock.audit"
_log = log.get(_NAME)
_BAD = ("login refused", "refused")


def open_trail(path: str, room: str) -> None:
    """Append the trail to the file *path* from now on (empty: to none); readable by its owner only."""
    logger = logging.getLogger(_NAME)
    logger.setLevel(logging.INFO)  # whatever the room's own level
    for old in logger.handlers[:]:
        logger.removeHandler(old)
        old.close()
    if not path:
        return
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        handler = WatchedFileHandler(path, encoding="utf-8")
    except OSError as wrong:
        _log.warning("the audit trail's file cannot be written: its lines are in this log only", path=path, reason=str(wrong.strerror))
        return
    handler.setFormatter(log.formatter(room))
    logger.addHandler(handler)


def write(event: str, **fields: Any) -> None:
    """One line. *fields* hold no secrets."""
    (_log.warning if event in _BAD else _log.info)(event, audit=True, **fields)


def refused(user: str, remote: str, error: PenstockError) -> None:
    """Somebody was told E_FORBIDDEN."""
    write("refused", user=user, remote=remote, reason=error.message)
