"""The child tables of a supertable with their tags, whether CREATE TABLE or their rows made them.

A child table that both know is as the catalog has it: that is where `SET TAG` writes. Redis is read
some child tables at a time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import redis

from penstock import names
from penstock.catalog.model import Child, Table
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
    catalog: Catalog,
    client: redis.Redis,
    stable: Table,
    only: Collection[str] | None = None,
    most: int | None = None,
) -> Iterator[Tagged]:
    """Yield the child tables of a supertable. Raises redis.RedisError.

    Args:
        only: the names of those that are wanted, as they are spelled.
        most: so many are enough, whichever they are.
    """
    for child in made_children(catalog, stable, only, most):
        yield child.name, child.tags
    choices = tag_choices(stable.stored_names, stable.tags)
    for name, held in held_children(catalog, client, stable, only):
        yield name, plain_tags(held, choices)


def made_children(
    catalog: Catalog, stable: Table, only: Collection[str] | None, most: int | None
) -> Iterable[Child]:
    """Return the child tables that CREATE TABLE made; the arguments are those of
    `tagged_children`.
    """
    if only is None:
        return catalog.children(stable.id) if most is None else catalog.some_children(stable, most)
    found = (catalog.child(stable.database, name) for name in only)
    return [c for c in found if c is not None and c.stable_id == stable.id and c.name in only]


def held_children(
    catalog: Catalog, client: redis.Redis, stable: Table, only: Collection[str] | None
) -> Iterator[tuple[str, Any]]:
    """Yield the names of child tables that only their rows made known, with what Redis holds of
    their tags. Raises redis.RedisError.
    """
    if stable.kind != "stable":
        return
    seen: set[str] = set()
    for name, held in _held(client, names.children(stable.id), only):
        lower = name.lower()
        made = catalog.child(stable.database, lower)
        if lower not in seen and (made is None or made.stable_id != stable.id):
            seen.add(lower)
            yield name, held


def _held(client: redis.Redis, key: str, only: Collection[str] | None) -> Iterator[tuple[str, Any]]:
    """Yield fields of a hash as text, with their values."""
    if only is None:
        for field, held in redis_link.hash_items(client, key):
            yield field.decode(errors="replace") if isinstance(field, bytes) else field, held
        return
    for some in redis_link.chunks(sorted(only)):
        for name, held in zip(some, client.hmget(key, list(some)), strict=True):
            if held is not None:
                yield name, held
