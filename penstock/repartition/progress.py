"""What services tell each other in Redis while a database gets more partitions: one hash a move, a
field for each part that is done.
"""

from __future__ import annotations

import redis

from penstock import names
from penstock.catalog.model import Database

_KEEP_SECONDS = 86_400


def key(database: Database) -> str:
    """The hash of a database's move to the next generation."""
    return names.move(database.id, database.generation + 1)


def say(client: redis.Redis, move: str, part: str, value: str | int) -> None:
    """A *part* of a *move* is done. Raises redis.RedisError."""
    client.hset(move, part, str(value))
    client.expire(move, _KEEP_SECONDS)
