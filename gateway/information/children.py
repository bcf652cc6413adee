"""Lists of child tables with their tags (`penstock.catalog.child_tags`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from gateway.answers import gather, table_of
from gateway.information import columns
from gateway.information.scope import EVERYTHING, ListScope
from gateway.information.viewer import Viewer
from gateway.layout import TBNAME
from penstock.catalog.child_tags import Tagged, held_tags, tagged_children
from penstock.catalog.model import Child, Table
from penstock.coordination import redis_link
from penstock.rows import tag_values
from penstock.sql.plan import Column
from penstock.sql.statements import Name, ShowTableTags, ShowTags

#: stands for all tags in SHOW TABLE TAGS
_ALL_TAGS = "_tags"


class ChildLists:
    """The child tables that one user may see."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def find(self, database: str, name: str) -> tuple[Child, Table] | None:
        """Return a child table and its supertable; one that rows made has the id 0. Raises
        BusError.
        """
        catalog = self._viewer.catalog
        made = catalog.child(database, name)
        if made is not None:
            stable = catalog.table_by_id(made.stable_id)
            seen = stable is not None and catalog.table(stable.database, stable.name) is not None
            return (made, stable) if stable is not None and seen else None
        for stable in catalog.tables(database):
            held = self._find_held(stable, name)
            if held is not None:
                return held, stable
        return None

    def tags(self, scope: ListScope = EVERYTHING) -> pa.Table:
        """Return every tag of every child table of *scope*. Raises BusError."""
        rows = (
            row
            for stable in self._viewer.catalog.tables(scope.database)
            if stable.tags and scope.has_stable(stable.name)
            for row in _rows(stable, self._children(stable, scope.tables, scope.first))
        )
        needed = scope.cut(columns.TAGS, rows)
        return redis_link.ask(lambda: gather(columns.TAGS, needed))

    def tags_of(self, statement: ShowTags, home: str) -> pa.Table:
        """Answer SHOW TAGS FROM; a supertable has no values of tags. Raises BusError,
        SqlSemanticError.
        """
        stable, child = self._with_tags(statement, statement.table, home)
        children = [] if child is None else [(child.name, child.tags)]
        return table_of(columns.TAGS, list(_rows(stable, children)))

    def table_tags(self, statement: ShowTableTags, home: str) -> pa.Table:
        """Answer SHOW TABLE TAGS, of one child table for its name. Raises BusError,
        SqlSemanticError.
        """
        stable, child = self._with_tags(statement, statement.stable, home)
        chosen = _choose(statement, stable)
        shown = [_show_column(stable, at) for at in chosen]
        children = self._children(stable) if child is None else [(child.name, child.tags)]
        rows = (
            tuple(name if at < 0 else _value(stable, tags, at) for at in chosen)
            for name, tags in children
        )
        return redis_link.ask(lambda: gather(shown, rows, stable.precision))

    def _with_tags(
        self, statement: ShowTags | ShowTableTags, name: Name, home: str
    ) -> tuple[Table, Child | None]:
        """Return the supertable that *name* is, or is a child table of. Raises BusError,
        SqlSemanticError.
        """
        table = self._viewer.catalog.table(home, name.name)
        if table is not None and table.tags:
            return table, None
        if table is not None:
            raise statement.error(
                f"{table.name} is a plain table, which has no tags", name, code="E_NOT_A_STABLE"
            )
        found = self.find(home, name.name)
        if found is None:
            raise statement.error(f'there is no table "{name.name}"', name, code="E_NO_TABLE")
        child, stable = found
        return stable, child

    def _children(
        self, stable: Table, only: Collection[str] | None = None, most: int | None = None
    ) -> Iterator[Tagged]:
        """Yield the child tables of a supertable, as `tagged_children` does."""
        return tagged_children(self._viewer.catalog, self._viewer.redis, stable, only, most)

    def _find_held(self, stable: Table, name: str) -> Child | None:
        """Return a child table that its rows made known. Raises BusError."""
        tags = held_tags(self._viewer.redis, stable, name)
        return None if tags is None else Child(0, stable.database, stable.id, name, tags)


def _rows(stable: Table, children: Iterable[Tagged]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of child tables in a list of tags."""
    shown = [(at, tag, str(tag.type)) for at, tag in enumerate(stable.tags)]
    for name, tags in children:
        for at, tag, kind in shown:
            value = _as_text(tag, tags[at] if at < len(tags) else None)
            yield name, stable.database, stable.name, tag.name, kind, value


def _as_text(tag: Column, value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    held = tag_values.from_json(value, tag.type)
    return f"\\x{held.hex()}" if isinstance(held, bytes) else str(value)


def _choose(statement: ShowTableTags, stable: Table) -> list[int]:
    """Return which columns are asked for: -1 is the name, others are tags by their place."""
    everything = list(range(len(stable.tags)))
    if not statement.columns:
        return [-1, *everything]
    chosen: list[int] = []
    for column in statement.columns:
        if column.name.lower() == _ALL_TAGS:
            chosen += everything
        else:
            chosen.append(_place(statement, column, stable))
    return chosen


def _place(statement: ShowTableTags, column: Name, stable: Table) -> int:
    low = column.name.lower()
    if low == TBNAME:
        return -1
    for at, tag in enumerate(stable.tags):
        if tag.name.lower() == low:
            return at
    known = ", ".join(t.name for t in stable.tags)
    raise statement.error(
        f"{stable.name} has no tag {column.name}",
        column,
        code="E_NO_COLUMN",
        hint=f"its tags are {known}; tbname is the child table",
    )


def _show_column(stable: Table, at: int) -> tuple[str, Any]:
    return (TBNAME, columns.TEXT) if at < 0 else (stable.tags[at].name, stable.tags[at].type)


def _value(stable: Table, tags: Sequence[Any], at: int) -> Any:
    value = tags[at] if at < len(tags) else None
    return tag_values.from_json(value, stable.tags[at].type)
