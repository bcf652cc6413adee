"""Child tables of a supertable: which exist, how each is spelled, and the tags that every row of
one carries.

Owns a cache over the catalog (children made by CREATE TABLE … USING) and Redis (children first seen
in rows). The first tags a child got win; later ones in rows are ignored, as `ALTER TABLE … SET TAG`
is the way to change them. A name that another table of the database has is refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import polars as pl
import redis

from gateway.layout import TBNAME, RowLayout
from gateway.row_error import RowError
from penstock import names
from penstock.catalog.child_tags import plain_tags, tag_choices
from penstock.catalog.model import Child
from penstock.catalog.view import Catalog
from penstock.coordination import redis_link
from penstock.errors import BusError
from penstock.rows import tag_values
from penstock.sql.plan import Column

#: child tables remembered in this process; beyond that the oldest are asked for again
_LIMIT = 500_000
#: how a child table is spelled, and its tags as a `Child` has them
_Child: TypeAlias = tuple[str, tuple[Any, ...]]


def text(value: bytes | str) -> str:
    """Return what Redis gave as text, whichever way its client decodes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def to_json(tags: Sequence[Any], layout: RowLayout) -> str:
    """Return the form that `names.children` holds: an object by stored name, bytes as hex, decimals
    as text.
    """
    keys = [layout.stored.get(t.name, (t.name,))[0] for t in layout.tags]
    return json.dumps(
        dict(zip(keys, map(tag_values.to_json, tags), strict=True)),
        separators=(",", ":"),
        ensure_ascii=False,
    )


def from_json(held_text: str | bytes, layout: RowLayout) -> tuple[Any, ...]:
    """Return tags as a `Child` has them, in the table's order; one that was added later is None."""
    return plain_tags(held_text, tag_choices(layout.stored, layout.tags))


def count_held(client: redis.Redis, table_id: int, wanted: list[str]) -> int:
    """Count the names of *wanted* that were seen in rows, too.

    Raises:
        BusError: Redis does not answer.
    """
    key = names.children(table_id)
    return redis_link.ask(
        lambda: sum(
            v is not None
            for some in redis_link.chunks(wanted)
            for v in client.hmget(key, list(some))
        )
    )


def _name_and_tags(layout: RowLayout, child: Child) -> _Child:
    """Return what a child table that was made by CREATE TABLE is called, and its tags."""
    if child.stable_id != layout.table_id:
        raise RowError(f'"{child.name}" is a child of another supertable', column=TBNAME)
    return child.name, tuple(child.tags) + (None,) * (len(layout.tags) - len(child.tags))


def _columns(layout: RowLayout, children: Sequence[_Child]) -> list[pl.Series]:
    """Return names and tags of *children*, one row each."""
    columns = [pl.Series(TBNAME, [name for name, _ in children], dtype=pl.String)]
    for i, tag in enumerate(layout.tags):
        columns.append(tag_values.to_series(tag.name, tag.type, [tags[i] for _, tags in children]))
    return columns


class Children:
    """One per process, used by the one thread that prepares rows."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._seen: dict[tuple[int, str], _Child] = {}
        #: supertable → `Catalog.child_removals` and the tags of the moment since which its child
        #: tables are remembered
        self._since: dict[int, tuple[int, tuple[Column, ...]]] = {}

    def settle(self, layout: RowLayout, frame: pl.DataFrame, catalog: Catalog) -> pl.DataFrame:
        """Return *frame* with each child's own spelling and tags. New children are registered.

        Raises:
            RowError: a name belongs to another table.
            BusError: new children cannot be registered, because Redis does not answer.
        """
        if layout.plain:
            return frame
        # Arrow's dictionary of the names: each child is looked up once, and tags are taken by index
        coded = frame[TBNAME].to_arrow(compat_level=pl.CompatLevel.oldest()).dictionary_encode()
        unique: list[str] = coded.dictionary.to_pylist()
        known = self._recall(layout, unique, catalog)
        fresh = [name for name, child in known.items() if child is None]
        if fresh:
            known.update(self._register(layout, frame, fresh, catalog))
        children = [child for child in known.values() if child is not None]
        # Arrow looks them up: polars would hand each gathering of a few lines to its threads
        made = {
            series.name: pl.Series(
                series.name,
                series.to_arrow(compat_level=pl.CompatLevel.oldest()).take(coded.indices),
            )
            for series in _columns(layout, children)
        }
        return pl.DataFrame([made.get(series.name, series) for series in frame.get_columns()])

    def find(self, layout: RowLayout, name: str, catalog: Catalog) -> _Child | None:
        """Return spelling and tags of one child table, from wherever it is known."""
        found = self._recall(layout, [name], catalog)[name]
        if found is None:
            held = self._ask(lambda: self._redis.hget(names.children(layout.table_id), name))
            if held is not None:
                found = self._seen[layout.table_id, name.lower()] = (name, from_json(held, layout))
        return found

    def forget_child(self, layout: RowLayout, name: str) -> None:
        """Forget a child table that was dropped."""
        self._seen.pop((layout.table_id, name.lower()), None)
        self._ask(lambda: self._redis.hdel(names.children(layout.table_id), name))

    def forget(self, table_id: int) -> None:
        """Forget a supertable: it was dropped, or its tags changed."""
        for key in [k for k in self._seen if k[0] == table_id]:
            del self._seen[key]

    def _recall(
        self, layout: RowLayout, wanted: Sequence[str], catalog: Catalog
    ) -> dict[str, _Child | None]:
        """Return spelling and tags of child tables by the names asked for; None of a new one."""
        self._drop_outdated(layout, catalog)
        created = catalog.children_by_name(layout.database)
        seen = self._seen
        table = layout.table_id
        width = len(layout.tags)
        known: dict[str, _Child | None] = {}
        for name in wanted:
            lower = name.lower()
            child = created.get(lower)
            if child is not None:
                known[name] = _name_and_tags(layout, child)
                continue
            found = seen.get((table, lower))
            # without its tags where one was added since
            known[name] = found if found is not None and len(found[1]) == width else None
        return known

    def _drop_outdated(self, layout: RowLayout, catalog: Catalog) -> None:
        """Forget a supertable's child tables when another process may have dropped one, or changed
        the tags.
        """
        now = (catalog.child_removals(layout.table_id), layout.tags)
        if self._since.setdefault(layout.table_id, now) != now:
            self.forget(layout.table_id)
            self._since[layout.table_id] = now

    def _register(
        self, layout: RowLayout, frame: pl.DataFrame, fresh: list[str], catalog: Catalog
    ) -> dict[str, _Child]:
        for name in fresh:
            if catalog.table(layout.database, name) is not None:
                raise RowError(
                    f'"{name}" is a table of its own, not a child of {layout.table}', column=TBNAME
                )
        columns = [t.name for t in layout.tags]
        first = (
            frame.filter(pl.col(TBNAME).is_in(fresh))
            .group_by(TBNAME)
            .agg(pl.col(c).first() for c in columns)
        )
        offered = {row[0]: row[1:] for row in first.select(TBNAME, *columns).iter_rows()}
        key = names.children(layout.table_id)

        def ask(some: Sequence[str]) -> list[Any]:
            pipe = self._redis.pipeline(transaction=False)
            for name in some:
                pipe.hsetnx(key, name, to_json(offered[name], layout))
            pipe.hmget(key, list(some))
            return list(pipe.execute()[-1])

        made = {}
        for some in redis_link.chunks(fresh):
            for name, held in zip(some, self._ask(partial(ask, some)), strict=True):
                made[name] = self._seen[layout.table_id, name.lower()] = (
                    name,
                    from_json(held, layout),
                )
        while len(self._seen) > _LIMIT:
            del self._seen[next(iter(self._seen))]
        return made

    @staticmethod
    def _ask(question: Any) -> Any:
        try:
            return question()
        except redis.RedisError as down:
            raise BusError(
                "new child tables cannot be registered: Redis does not answer",
                code="E_REDIS_DOWN",
                detail=str(down),
                retryable=True,
            ) from down
