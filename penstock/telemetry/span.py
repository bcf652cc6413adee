"""A span: one piece of a service's work, with its place in a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from penstock.runtime.traces import SpanContext

Value: TypeAlias = str | bool | int | float | Sequence[str] | Sequence[int]


class SpanKind(IntEnum):
    """OTLP's numbers."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3
    PRODUCER = 4
    CONSUMER = 5


@dataclass(slots=True, eq=False)
class Span:
    """Times are nanoseconds since 1970. `parent` is empty for the first span of a trace."""

    name: str
    kind: SpanKind
    context: SpanContext
    start: int
    parent: str = ""
    end: int = 0
    attributes: dict[str, Value] = field(default_factory=dict)
    links: list[SpanContext] = field(default_factory=list)
    #: what went wrong; empty: nothing did
    error: str = ""
