"""Conformance cases: the file format and what a backend gives back for one case.

Owns reading the JSON file, and the shape of an outcome as it goes to the OUT file. Refuses to
judge: that is `compare`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.sql.plan import Target

#: processing time at creation when a case does not say
DEFAULT_CLOCK = 1_700_006_400_000

Row = dict[str, Any]


def tags_of(target: Target) -> tuple[list[str], list[str]]:
    """Names of the tags that an outcome's rows are sorted by, and of those that they show: none
    that the target has by itself.
    """
    tags = [
        t.name for t, origin in zip(target.tags, target.tag_of, strict=True) if origin != "group_id"
    ]
    return tags, [] if "group_id" in target.tag_of else tags


@dataclass(frozen=True)
class Case:
    """One case. `raw` is the JSON object as read; a key that is not in it is not expected of
    anybody.
    """

    id: str
    tables: tuple[str, ...]
    stream: str
    events: tuple[tuple[Any, ...], ...]
    clock_start: int
    timezone: str
    raw: dict[str, Any]

    @classmethod
    def read(cls, raw: dict[str, Any]) -> Case:
        """One case from its JSON object."""
        return cls(
            id=raw["id"],
            tables=tuple(raw["tables"]),
            stream=raw["stream"],
            events=tuple(tuple(e) for e in raw.get("events", ())),
            clock_start=raw.get("clock_start", DEFAULT_CLOCK),
            timezone=raw.get("timezone", "UTC"),
            raw=raw,
        )


@dataclass
class Outcome:
    """What the system gave. `crash` is set when the case could not be run to its end: such a case
    has failed.
    """

    id: str
    rows: list[Row] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    notify: list[Row] = field(default_factory=list)
    error: str | None = None
    snapshots: list[list[Row]] = field(default_factory=list)
    crash: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The object written to the OUT file."""
        error = self.error or ("crash" if self.crash else None)
        return {
            "id": self.id,
            "rows": self.rows,
            "tables": self.tables,
            "notify": self.notify,
            "error": error,
            "snapshots": self.snapshots,
        }


class Backend(Protocol):
    """Something that can run cases. It never looks at what a case expects."""

    def run(self, case: Case) -> Outcome:
        """Run *case* to its end; a refused statement is an outcome, never an exception."""
        ...

    def close(self) -> None:
        """Stop whatever was started."""
        ...


def load(path: Path) -> list[Case]:
    """All cases of a file."""
    return [Case.read(raw) for raw in json.loads(path.read_text())]
