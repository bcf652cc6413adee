"""Points: what the wires of other databases send, once their text or bytes are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.errors import SchemaError


class LineError(SchemaError):
    """`line` counts from 1."""

    code = "E_LINE"

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "line": self.line}


@dataclass(frozen=True, slots=True)
class Unsigned:
    """An integer written with `u`: it makes a BIGINT UNSIGNED column."""

    value: int


@dataclass(frozen=True, slots=True)
class Point:
    """`line` is its place in what was sent, from 1; `time` counts the units of the request, None
    is now.
    """

    measurement: str
    tags: tuple[tuple[str, str], ...]
    fields: dict[str, Any]
    time: int | None
    line: int
