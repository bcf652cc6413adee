"""Entries of the services' logs, read from the JSON lines that `penstock.runtime.log` writes, and
which of them somebody wants to see. What other programs write is the business of
`penstock.cli.log_entries`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

LEVELS = ("debug", "info", "warning", "error", "critical")
_LEVEL_WORDS = {
    "trace": "debug",
    "warn": "warning",
    "fatal": "critical",
    "severe": "error",
    ".": "debug",
    "-": "debug",
    "*": "info",
    "#": "warning",
}
#: what a line says apart from its text
_HEAD = ("timestamp", "level", "event", "service", "room", "logger")
_LENGTH = re.compile(r"(?P<count>\d+)(?P<unit>[smhdw])\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class LogEntry:
    """What a service said at one moment. `lines` are as they stand in the log; lines without a
    time, such as those of a traceback, belong to the entry before.
    """

    time: datetime
    level: str
    service: str
    text: str
    lines: tuple[str, ...]
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def severity(self) -> int:
        return LEVELS.index(self.level)


@dataclass(frozen=True)
class LogFilter:
    """Which entries are shown. `text` may stand anywhere in what an entry says, in either case."""

    since: datetime | None = None
    severity: int = 0
    trace: str = ""
    text: str = ""

    @property
    def is_open(self) -> bool:
        """Whether neither a time nor a trace bounds them."""
        return self.since is None and not self.trace

    def is_recent(self, entry: LogEntry) -> bool:
        return self.since is None or entry.time >= self.since

    def has(self, entry: LogEntry) -> bool:
        return (
            entry.severity >= self.severity
            and (not self.trace or entry.fields.get("trace") == self.trace)
            and (not self.text or self.text.lower() in _text_of(entry).lower())
        )


def _text_of(entry: LogEntry) -> str:
    return "\n".join([entry.text, *(f"{name}={value}" for name, value in entry.fields.items())])


def parse_json(line: str, service: str) -> LogEntry | None:
    """Return the entry in a line of JSON; None where it is none."""
    try:
        # NaN is no JSON where the entry goes next
        about = json.loads(line, parse_constant=str)
        time = datetime.fromisoformat(about["timestamp"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    known = {k: v for k, v in about.items() if k not in _HEAD}
    level = level_of(str(about.get("level", "info")))
    return LogEntry(time, level, service, str(about.get("event", "")), (line,), known)


def level_of(word: str) -> str:
    """Return the level that *word* means, whoever wrote it."""
    lower = word.lower()
    known = _LEVEL_WORDS.get(lower, lower)
    return known if known in LEVELS else "info"


def moment_of(given: str, now: datetime) -> datetime:
    """Return the moment that `10m`, `2h`, `1d` before *now* or a time in ISO 8601 means; UTC unless
    it has a zone. Raises ValueError.
    """
    length = _LENGTH.match(given)
    if length is not None:
        try:
            return now - timedelta(**{_UNITS[length["unit"]]: int(length["count"])})
        except OverflowError as long:
            raise ValueError(f"{given} is too long ago") from long
    found = datetime.fromisoformat(given)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
