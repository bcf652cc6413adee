"""Logs of a mesh's services as entries with time and level, whichever of them wrote them: JSON of
our own services, and what Kafka, Redis and Spark write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
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
#: Kafka's, Redis' and Spark's; they write times of this machine's zone
_FOREIGN = tuple(
    (re.compile(rf"{before}(?P<time>{time}) (?P<level>{level}) (?P<text>.*)"), time_form)
    for before, time, level, time_form in (
        ("", r"\d{4}-\d\d-\d\dT[\d:]{8},\d{3}", "[A-Z]+", "%Y-%m-%dT%H:%M:%S,%f"),
        (r"\d+:\w ", r"\d\d \w{3} \d{4} [\d:]{8}\.\d{3}", "[.*#-]", "%d %b %Y %H:%M:%S.%f"),
        ("", r"\d\d/\d\d/\d\d [\d:]{8}", "[A-Z]+", "%y/%m/%d %H:%M:%S"),
    )
)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
#: what a line says apart from its text
_HEAD = ("timestamp", "level", "event", "service", "room", "logger")
#: what would move the cursor of a terminal
_CONTROLS = {code: rf"\x{code:02x}" for code in (*range(32), *range(127, 160))}
_BLOCK = 256 << 10


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


def parse_line(line: str, service: str) -> LogEntry | None:
    """Return the entry that *line* begins; None for a line that continues another."""
    if line.startswith("{"):
        return _parse_json(line, service)
    for form, time_form in _FOREIGN:
        found = form.match(line)
        if found is None:
            continue
        try:
            time = datetime.strptime(found["time"], time_form).astimezone(UTC)
        except (ValueError, OverflowError):
            return None
        return LogEntry(time, _level(found["level"]), service, found["text"], (line,))
    return None


def _parse_json(line: str, service: str) -> LogEntry | None:
    try:
        about = json.loads(line)
        time = datetime.fromisoformat(about["timestamp"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    known = {k: v for k, v in about.items() if k not in _HEAD}
    level = _level(str(about.get("level", "info")))
    return LogEntry(time, level, service, str(about.get("event", "")), (line,), known)


def _level(word: str) -> str:
    lower = word.lower()
    known = _LEVEL_WORDS.get(lower, lower)
    return known if known in LEVELS else "info"


def entries_of(lines: Iterable[str], service: str) -> Iterator[LogEntry]:
    """Yield the entries of lines that come in order."""
    head: LogEntry | None = None
    more: list[str] = []
    for line in lines:
        fresh = parse_line(line, service)
        if fresh is None:
            more.append(line)
            continue
        if head is not None or more:
            yield _whole(head, more, service)
        head, more = fresh, []
    if head is not None or more:
        yield _whole(head, more, service)


def newest_first(logs: Iterable[Path], service: str) -> Iterator[LogEntry]:
    """Yield the entries of *logs*, the newest file first and its last entry first. Reads no more
    than is asked for.
    """
    more: list[str] = []
    for log in logs:
        for line in _lines_backwards(log):
            head = parse_line(line, service)
            if head is None:
                more.append(line)
                continue
            yield _whole(head, more[::-1], service)
            more = []
    if more:
        yield _whole(None, more[::-1], service)


def _whole(head: LogEntry | None, more: list[str], service: str) -> LogEntry:
    """Return an entry with the lines that continue it; *head* is None when the log begins with
    them.
    """
    if head is None:
        return LogEntry(_BEGINNING, "info", service, more[0], tuple(more))
    return LogEntry(head.time, head.level, service, head.text, (*head.lines, *more), head.fields)


def _lines_backwards(path: Path) -> Iterator[str]:
    """Yield the lines of a file from its end, without line ends; nothing if there is no file."""
    try:
        file = open(path, "rb")
    except FileNotFoundError:
        return
    with file:
        left = file.seek(0, 2)
        rest = b""
        while left:
            size = min(_BLOCK, left)
            left -= size
            file.seek(left)
            rest = file.read(size) + rest
            first, *lines = rest.split(b"\n")
            yield from (line.decode(errors="replace") for line in reversed(lines) if line)
            rest = first
        if rest:
            yield rest.decode(errors="replace")


def readable(entry: LogEntry) -> str:
    """Return an entry for people: time, level, service, text and fields; then what continues it."""
    time = f"{entry.time:%Y-%m-%d %H:%M:%S}.{entry.time.microsecond // 1000:03d}Z"
    if entry.time == _BEGINNING:
        time = " " * len(time)
    fields = [f"{k}={_value(v)}" for k, v in entry.fields.items() if k != "exception"]
    first = f"{time} {entry.level.upper():<8} {entry.service:<10} "
    first += " ".join([entry.text.translate(_CONTROLS), *fields])
    below = [*str(entry.fields.get("exception", "")).splitlines(), *entry.lines[1:]]
    return "\n".join([first, *(f"    {line.translate(_CONTROLS)}" for line in below)])


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    plain = text.translate(_CONTROLS)
    return json.dumps(text, ensure_ascii=False) if " " in plain or not plain else plain
