"""Users, roles and their rights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

#: what may be granted; the last two only on everything
Right = Literal["READ", "WRITE", "CREATE", "ALTER", "DROP", "FUNCTION", "ADMIN"]


@dataclass(frozen=True)
class Grant:
    """One right on the database, table or stream of an id (ids are never used again), or on
    everything: 0.
    """

    right: Right
    object_id: int = 0


@dataclass(frozen=True)
class Role:
    """Rights under a name, for users to have."""

    id: int
    name: str
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True)
class User:
    """Somebody who may log in. `password` is an argon2 hash and is shown nowhere; `generation`
    outdates the tokens given out before.
    """

    id: int
    name: str
    password: str = field(repr=False)
    enabled: bool = True
    roles: tuple[int, ...] = ()
    grants: tuple[Grant, ...] = ()
    #: epoch milliseconds
    created: int = 0
    generation: int = 0


Principal = User | Role
