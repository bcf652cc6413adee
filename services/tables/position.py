"""How far a copy's files go, in a file beside them that is written after the rows it covers."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.tables.stamp import Fence, WritePart

_NAME = "position.json"


@dataclass(frozen=True)
class CopyPosition:
    """The next record of the log, the next row, and who wrote what up to there."""

    offset: int
    next: int
    fence: Fence
    producers: list[WritePart]

    def to_json(self, table_id: int) -> dict[str, Any]:
        return {
            "table": table_id,
            "offset": self.offset,
            "next": self.next,
            "fence": [self.fence.epoch, self.fence.number, self.fence.leader],
            "producers": [[p.producer, p.sequence, p.done, p.total] for p in self.producers],
        }


def write_position(directory: Path, position: dict[str, Any]) -> None:
    path = directory / _NAME
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(position), encoding="utf-8")
    os.replace(fresh, path)


def read_position(directory: Path, table_id: int) -> CopyPosition:
    """Read the position of a table's copy.

    Raises:
        OSError, ValueError, KeyError, TypeError: it cannot be used, or is of another table.
    """
    position = json.loads((directory / _NAME).read_text(encoding="utf-8"))
    if position["table"] != table_id:
        raise ValueError("files of another table")
    return CopyPosition(
        offset=int(position["offset"]),
        next=int(position["next"]),
        fence=Fence(*position["fence"]),
        producers=[WritePart(*p) for p in position["producers"]],
    )
