"""Prepared statements of one connection, and what is bound to them until they are run."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa

from gateway.wires.tdengine.bound_tables import BoundTable
from gateway.wires.tdengine.prepared import BindField, PreparedText
from penstock.errors import OverloadError, SchemaError

#: of one connection
MOST_OPEN = 256
#: bytes of messages that are bound on one connection and not run
MOST_BOUND = 16 << 20


@dataclass
class OpenStatement:
    """One statement. `answer` is what a query gave."""

    number: int
    prepared: PreparedText | None = None
    fields: list[BindField] | None = None
    name: str | None = None
    tags: list[Any] = field(default_factory=list)
    bound: list[BoundTable] = field(default_factory=list)
    size: int = 0
    answer: pa.Table | None = None

    def text(self) -> PreparedText:
        """Return what was prepared. Raises SchemaError: nothing was."""
        if self.prepared is None:
            raise SchemaError(
                "the statement is not prepared", code="E_BODY", hint="prepare it first"
            )
        return self.prepared

    def reset(self, prepared: PreparedText) -> None:
        """Begin anew with another text."""
        self.prepared = prepared
        self.fields = None
        self.name = None
        self.tags = []
        self.answer = None
        self.clear()

    def clear(self) -> None:
        """Forget what is bound."""
        self.bound = []
        self.size = 0


class OpenStatements:
    """Those of one connection. Event loop only."""

    def __init__(self) -> None:
        self._open: dict[int, OpenStatement] = {}
        self._numbers = count(1)

    def add(self) -> OpenStatement:
        """Return a new statement. Raises OverloadError: there are too many."""
        if len(self._open) >= MOST_OPEN:
            raise OverloadError(
                f"{MOST_OPEN} statements are open on this connection", hint="close some"
            )
        made = OpenStatement(next(self._numbers))
        self._open[made.number] = made
        return made

    def find(self, number: int) -> OpenStatement:
        """Return an open statement. Raises SchemaError: there is none."""
        found = self._open.get(number)
        if found is None:
            raise SchemaError(
                "stmt is nil", code="E_BODY", detail=f"there is no statement {number}", hint="init"
            )
        return found

    def bind(self, statement: OpenStatement, bound: list[BoundTable], size: int) -> None:
        """Add values that came in a message of *size* bytes. Raises OverloadError."""
        held = sum(one.size for one in self._open.values())
        if held and held + size > MOST_BOUND:
            raise OverloadError(
                f"{held} bytes are bound and not run", hint="run what is bound, then bind more"
            )
        statement.bound.extend(bound)
        statement.size += size

    def close(self, number: int) -> None:
        self._open.pop(number, None)
