"""The child tables of a supertable with their tags, whether CREATE TABLE or their rows made them.

A child table that both know is as the catalog has it: that is where `SET TAG` writes. Redis is read
some child tables at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import redis

from penstock import names
from penstock.catalog.model import Table
from penstock.catalog.stored import StoredNames
from penstock.catalog.view import Catalog
from penstock.coordination import redis_link
from penstock.sql.plan import Column

#: how a child table is spelled, and its tags as a `Child` has them
Tagged: TypeAlias = tuple[str, Sequence[Any]]


def tag_choices(stored: StoredNames, tags: Sequence[Column]) -> list[tuple[str, ...]]:
    """Return, for each tag, the names that its value may be held under."""
    return [stored.get(tag.name, (tag.name,)) for tag in tags]


def plain_tags(held_text: str | bytes, choices: Sequence[tuple[str, ...]]) -> tuple[Any, ...]:
    """Return tags as a `Child` has them: bytes as hex, decimals as text."""
    held = json.loads(held_text)
    return tuple(next((held[n] for n in names_ if n in held), None) for names_ in choices)


def held_tags(client: redis.Redis, stable: Table, name: str) -> tuple[Any, ...] | None:
    """Return the tags of a child table that its rows made known; None: they did not. Raises
    BusError.
    """
    if stable.kind != "stable":
        return None
    held = redis_link.ask(lambda: client.hget(names.children(stable.id), name))
    if held is None:
        return None
    return plain_tags(held, tag_choices(stable.stored_names, stable.tags))


def tagged_children(
    catalog: Catalog, client: redis.Redis, stable: Table, only: str | None = None
) -> Iterator[Tagged]:
    """Yield the child tables of a supertable, or the one called *only*. Raises redis.RedisError."""
    seen: set[str] = set()
    for child in catalog.children(stable.id):
        seen.add(child.name.lower())
        if only is None or child.name == only:
            yield child.name, child.tags
    if only is not None:
        held = None if only.lower() in seen else held_tags(client, stable, only)
        if held is not None:
            yield only, held
        return
    choices = tag_choices(stable.stored_names, stable.tags)
    for field, held_text in redis_link.hash_items(client, names.children(stable.id)):
        name = field.decode(errors="replace") if isinstance(field, bytes) else field
        if name.lower() not in seen:
            seen.add(name.lower())
            yield name, plain_tags(held_text, choices)
