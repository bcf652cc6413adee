"""Answers that a client has not fetched to their end: so many a connection, so many bytes a user,
and for some time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count

from gateway.wires.tdengine import block
from gateway.wires.tdengine.columns import WireTable
from penstock.errors import OverloadError, SchemaError

#: of one connection
MOST_OPEN = 64
#: seconds after which one is freed that nobody asked for
IDLE_S = 600.0


class ResultBudget:
    """Bytes of open results, by user, of all connections. Event loop only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[str, int] = {}

    def take(self, user: str, size: int) -> None:
        """Count *size* more bytes of *user*. Raises OverloadError."""
        held = self._held.get(user, 0)
        if held and held + size > self._most:
            raise OverloadError(
                f"open results hold {held} bytes, and this one has {size}",
                hint="fetch them to their end, or free them",
            )
        self._held[user] = held + size

    def give_back(self, user: str, size: int) -> None:
        left = self._held.get(user, 0) - size
        if left > 0:
            self._held[user] = left
        else:
            self._held.pop(user, None)

    def held(self, user: str) -> int:
        return self._held.get(user, 0)


@dataclass
class OpenResult:
    """One answer, and how far it was fetched. `current` is the block that was told of last."""

    table: WireTable
    user: str
    size: int
    timer: asyncio.TimerHandle
    next_row: int = 0
    current: tuple[int, int] | None = None

    def advance(self) -> tuple[int, int] | None:
        """Return start and number of rows of the next block; None: there is none."""
        left = self.table.rows - self.next_row
        if left <= 0:
            return None
        rows = min(left, block.rows_of_block(self.table))
        self.current = (self.next_row, rows)
        self.next_row += rows
        return self.current


class OpenResults:
    """Those of one connection. Event loop only."""

    def __init__(self, budget: ResultBudget, idle_s: float = IDLE_S) -> None:
        self._budget = budget
        self._idle_s = idle_s
        self._open: dict[int, OpenResult] = {}
        self._numbers = count(1)

    def add(self, user: str, table: WireTable) -> int:
        """Keep a result until it is freed; return its number. Raises OverloadError."""
        if len(self._open) >= MOST_OPEN:
            raise OverloadError(
                f"{MOST_OPEN} results are open on this connection",
                hint="fetch them to their end, or free them",
            )
        size = sum(column.values.nbytes for column in table.columns)
        self._budget.take(user, size)
        number = next(self._numbers)
        self._open[number] = OpenResult(table, user, size, self._start_timer(number))
        return number

    def find(self, number: int) -> OpenResult:
        """Return an open result, whose time begins anew. Raises SchemaError: there is none."""
        found = self._open.get(number)
        if found is None:
            raise SchemaError(
                "result is nil",
                code="E_BODY",
                detail=f"there is no open result {number}",
                hint="it was freed, fetched to its end, or not asked for in ten minutes",
            )
        found.timer.cancel()
        found.timer = self._start_timer(number)
        return found

    def free(self, number: int) -> None:
        """Forget a result, if it is there."""
        found = self._open.pop(number, None)
        if found is not None:
            found.timer.cancel()
            self._budget.give_back(found.user, found.size)

    def free_all(self) -> None:
        for number in list(self._open):
            self.free(number)

    def _start_timer(self, number: int) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._idle_s, self.free, number)
