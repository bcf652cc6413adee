"""Logs of a mesh's services as entries with time and level, whichever of them wrote them: JSON of
our own services, and what Kafka, Redis and Spark write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.runtime.log_entries import LogEntry, level_of, parse_json

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
#: what would move the cursor of a terminal
_CONTROLS = {code: rf"\x{code:02x}" for code in (*range(32), *range(127, 160))}
_BLOCK = 256 << 10


def parse_line(line: str, service: str) -> LogEntry | None:
    """Return the entry that *line* begins; None for a line that continues another."""
    if line.startswith("{"):
        return parse_json(line, service)
    for form, time_form in _FOREIGN:
        found = form.match(line)
        if found is None:
            continue
        try:
            time = datetime.strptime(found["time"], time_form).astimezone(UTC)
        except (ValueError, OverflowError):
            return None
        return LogEntry(time, level_of(found["level"]), service, found["text"], (line,))
    return None


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
