"""Errors, and the statements that their lines and columns are in."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from gateway.postgres.translate import PgStatement, split_statements
from penstock.errors import PenstockError, SqlError

T = TypeVar("T")


class PlacedError(Exception):
    """An error, and the statement that it is about."""

    def __init__(self, error: PenstockError, statement: PgStatement) -> None:
        super().__init__(error.message)
        self.error = error
        self.statement = statement


async def placed(statement: PgStatement, work: Awaitable[T]) -> T:
    """Return what *work* gives. Raises PlacedError for SqlErrors."""
    try:
        return await work
    except SqlError as error:
        raise PlacedError(error, statement) from None


def split_placed(text: str) -> list[PgStatement]:
    """Return the statements of a text. Raises PlacedError."""
    try:
        return split_statements(text)
    except SqlError as error:
        raise PlacedError(error, PgStatement(text, 0, text, (), (0,), (0,))) from None
