"""A stand-in for `Connection.ha` that writes down what is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.client.stream_tables import StreamTables

#: a method of `Connection.ha` and its arguments by name, defaults included
Called = tuple[str, dict[str, Any]]


@dataclass
class Subscribed:
    topic: str = "11/ha.trades/watch"


@dataclass
class RecordedTable:
    """What `table` of a `RecordedHa` gives."""

    calls: list[Called]

    def changelog(self) -> str:
        self.calls.append(("changelog", {}))
        return "rows"


@dataclass
class RecordedHa:
    """Takes every call that `StreamTables` would take, and no other."""

    calls: list[Called] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        signature = inspect.signature(getattr(StreamTables, name))

        def call(*positional: Any, **keywords: Any) -> Any:
            bound = signature.bind(self, *positional, **keywords)
            bound.apply_defaults()
            self.calls.append((name, {k: v for k, v in bound.arguments.items() if k != "self"}))
            if name == "table":
                return RecordedTable(self.calls)
            if name == "subscribe":
                return Subscribed()
            return None if signature.return_annotation == "None" else f"answer of {name}"

        return call
