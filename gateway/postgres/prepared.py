"""Prepared statements and portals of one connection, and how much of them it may keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from gateway.postgres.pg_types import PgType
from gateway.postgres.session import PgAnswer
from gateway.postgres.statements import PgDescription
from gateway.postgres.translate import PgStatement
from penstock.errors import OverloadError, SqlSemanticError

#: of one connection
MOST_STATEMENTS = 1000
MOST_PORTALS = 100


@dataclass
class PgPrepared:
    """A statement that was parsed; `statement` None: its text is empty."""

    statement: PgStatement | None
    declared: tuple[int, ...]
    size: int
    #: what it takes and gives, once it was asked for or values were bound
    description: PgDescription | None = None
    #: its columns were told to the client, so rows have to be of their types
    told: bool = False


@dataclass
class PgPortal:
    """A statement with values, and its answer once it was run."""

    prepared: PgPrepared
    values: Sequence[Any]
    formats: Sequence[int]
    size: int
    answer: PgAnswer | None = None
    columns: list[tuple[str, PgType]] = field(default_factory=list)
    sent: int = 0

    @property
    def held(self) -> int:
        """Return how many bytes of an answer wait here."""
        table = self.answer.table if self.answer is not None else None
        return int(table.nbytes) if isinstance(table, pa.Table) else 0


class PgKept:
    """Statements and portals by name; "" is the unnamed one, which the next replaces."""

    def __init__(self, most_bytes: int, most_held: int) -> None:
        """
        Args:
            most_bytes: of texts and values.
            most_held: of answers that wait in portals.
        """
        self._most_bytes = most_bytes
        self._most_held = most_held
        self._statements: dict[str, PgPrepared] = {}
        self._portals: dict[str, PgPortal] = {}

    # ---------------------------------------------------------------- statements

    def add_statement(self, name: str, prepared: PgPrepared) -> None:
        """Keep a statement. Raises SqlSemanticError, OverloadError."""
        if name and name in self._statements:
            raise SqlSemanticError(
                f'there is a prepared statement "{name[:64]}"', code="E_STATEMENT_EXISTS"
            )
        self._statements.pop(name, None)
        if len(self._statements) >= MOST_STATEMENTS:
            raise _too_much(f"{MOST_STATEMENTS} prepared statements", "DEALLOCATE some of them")
        self._require_room(prepared.size)
        self._statements[name] = prepared

    def statement(self, name: str) -> PgPrepared:
        """Return a statement. Raises SqlSemanticError."""
        if name not in self._statements:
            raise SqlSemanticError(
                f'there is no prepared statement "{name[:64]}"', code="E_NO_STATEMENT"
            )
        return self._statements[name]

    def drop_statement(self, name: str) -> None:
        self._statements.pop(name, None)

    def drop_statements(self) -> None:
        self._statements.clear()

    # ---------------------------------------------------------------- portals

    def add_portal(self, name: str, portal: PgPortal) -> None:
        """Keep a portal. Raises SqlSemanticError, OverloadError."""
        if name and name in self._portals:
            raise SqlSemanticError(f'there is a portal "{name[:64]}"', code="E_STATEMENT_EXISTS")
        self._portals.pop(name, None)
        if len(self._portals) >= MOST_PORTALS:
            raise _too_much(f"{MOST_PORTALS} portals", "close some of them")
        self._require_room(portal.size)
        self._portals[name] = portal

    def portal(self, name: str) -> PgPortal:
        """Return a portal. Raises SqlSemanticError."""
        if name not in self._portals:
            raise SqlSemanticError(f'there is no portal "{name[:64]}"', code="E_NO_PORTAL")
        return self._portals[name]

    def drop_portal(self, name: str) -> None:
        self._portals.pop(name, None)

    def drop_portals(self) -> None:
        self._portals.clear()

    def require_held(self) -> None:
        """Raise OverloadError when the answers that wait are too many bytes."""
        if sum(portal.held for portal in self._portals.values()) > self._most_held:
            raise _too_much(f"{self._most_held} bytes of answers in portals", "close some of them")

    def _require_room(self, more: int) -> None:
        kept = sum(one.size for one in self._statements.values())
        kept += sum(one.size for one in self._portals.values())
        if kept + more > self._most_bytes:
            raise _too_much(f"{self._most_bytes} bytes of statements", "close some of them")


def _too_much(what: str, hint: str) -> OverloadError:
    return OverloadError(f"a connection keeps at most {what}", hint=hint)
