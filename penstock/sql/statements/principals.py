"""Statements about users, roles and their rights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.sql.statements.base import Name, Statement


@dataclass(frozen=True, kw_only=True)
class CreateUser(Statement):
    name: str
    password: str = field(repr=False)
    enabled: bool = True
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class AlterUser(Statement):
    """Changes of a user; None for what stays."""

    name: str
    password: str | None = field(default=None, repr=False)
    enabled: bool | None = None


@dataclass(frozen=True, kw_only=True)
class CreateRole(Statement):
    name: str
    if_not_exists: bool = False


GrantKind = Literal["all", "database", "table", "stream"]


@dataclass(frozen=True, kw_only=True)
class Grant(Statement):
    """GRANT, or with `take` REVOKE; on everything without `name`."""

    rights: tuple[str, ...]
    kind: GrantKind
    name: Name | None
    grantee: str
    take: bool = False


@dataclass(frozen=True, kw_only=True)
class GrantRole(Statement):
    """GRANT ROLE, or with `take` REVOKE ROLE."""

    role: str
    grantee: str
    take: bool = False


@dataclass(frozen=True, kw_only=True)
class RevokeTokens(Statement):
    user: str
