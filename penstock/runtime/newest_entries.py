"""The newest entries of a process's log, kept until somebody takes them: the same lines as on
standard error, so what was hidden there is hidden here. Refused: more than fits. What was pushed
out is counted, what is long is cut.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

#: entries that are kept
MOST = 500
#: characters of an entry as JSON
LONGEST = 4_000
_LONGEST_VALUE = 500
#: the end of a traceback says most
_LONGEST_EXCEPTION = 2_000
#: what an entry cannot be without
_HEAD = ("timestamp", "level", "event", "exception", "trace")


@dataclass(frozen=True)
class TakenEntries:
    """Entries as JSON, the oldest first; `left_out` came before them and are gone."""

    entries: tuple[str, ...] = ()
    left_out: int = 0

    def __bool__(self) -> bool:
        return bool(self.entries)


class NewestEntries:
    """Keeps what `penstock.runtime.log` gives it, from any thread."""

    def __init__(self, most: int = MOST) -> None:
        self._entries = deque[str](maxlen=most)
        self._left_out = 0
        self._lock = threading.Lock()

    def keep(self, line: str) -> None:
        """Keep an entry, perhaps in place of the oldest."""
        entry = shorten(line)
        with self._lock:
            self._left_out += len(self._entries) == self._entries.maxlen
            self._entries.append(entry)

    def take(self) -> TakenEntries:
        """Return what came since the last time."""
        with self._lock:
            taken = TakenEntries(tuple(self._entries), self._left_out)
            self._entries.clear()
            self._left_out = 0
        return taken


def shorten(line: str) -> str:
    """Return an entry that is short enough: long values are cut, and where that is too little, its
    last fields go. `…` stands where something is missing.
    """
    # half a character cannot be sent
    line = line.encode(errors="replace").decode()
    if len(line) <= LONGEST:
        return line
    entry = {name: _cut(name, value) for name, value in json.loads(line).items()}
    text = _json(entry)
    for name in reversed([name for name in entry if name not in _HEAD]):
        if len(text) <= LONGEST:
            break
        del entry[name]
        text = _json({**entry, "…": "…"})
    return text


def _cut(name: str, value: Any) -> Any:
    text = value if isinstance(value, str) else _json(value)
    if name == "exception":
        return text if len(text) <= _LONGEST_EXCEPTION else f"…{text[-_LONGEST_EXCEPTION:]}"
    return value if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
