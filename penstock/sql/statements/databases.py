"""Statements about databases and snodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.sql.plan import Duration
from penstock.sql.statements.base import Statement


@dataclass(frozen=True)
class DatabaseOptions:
    """Options as given; None for those that are not."""

    precision: Literal["ms", "us", "ns"] | None = None
    keep: Duration | None = None
    partitions: int | None = None
    max_ahead: Duration | None = None
    replica: int | None = None
    dot_to_underscore: bool | None = None


@dataclass(frozen=True, kw_only=True)
class CreateDatabase(Statement):
    name: str
    if_not_exists: bool = False
    options: DatabaseOptions = DatabaseOptions()


@dataclass(frozen=True, kw_only=True)
class AlterDatabase(Statement):
    name: str
    options: DatabaseOptions = DatabaseOptions()


@dataclass(frozen=True, kw_only=True)
class UseDatabase(Statement):
    name: str


@dataclass(frozen=True, kw_only=True)
class CreateSnode(Statement):
    dnode: int
