"""Tables that rows make: a supertable that is made or widened for the columns of line protocol."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.ddl.definer import Definer
from penstock.catalog import changes
from penstock.catalog.view import Catalog
from penstock.sql.plan import Column
from penstock.types import ColumnType


def lacks(
    catalog: Catalog, database: str, name: str, columns: Sequence[Column], tags: Sequence[Column]
) -> bool:
    """Tell whether a table is not there, or has not all of these columns and tags."""
    table = catalog.table(database, name)
    if table is None:
        return True
    have = {c.name.lower(): c.type for c in (*table.columns, *table.tags)}
    return any(_grows(have.get(c.name.lower()), c) for c in (*columns, *tags))


def grow(
    definer: Definer,
    database: str,
    name: str,
    time: Column,
    columns: Sequence[Column],
    tags: Sequence[Column],
) -> None:
    """Make the supertable *name*, or widen it, so that it has these columns and tags. Runs in the
    DDL thread.
    """
    if definer.catalog.table(database, name) is None:
        definer.decide(
            lambda c, i: changes.create_table(
                c, i, database, name, (time, *columns), tags, if_not_exists=True
            )
        )
        return
    for column in columns:
        _grow_column(definer, database, name, column, tag=False)
    for column in tags:
        _grow_column(definer, database, name, column, tag=True)


def _grow_column(definer: Definer, database: str, name: str, column: Column, *, tag: bool) -> None:
    table = definer.catalog.table(database, name)
    assert table is not None
    types = {c.name.lower(): c.type for c in (table.tags if tag else table.columns)}
    has = types.get(column.name.lower())
    if has is None:
        definer.decide(lambda c, i: changes.add_column(c, i, database, name, column, tag=tag))
    elif _grows(has, column):
        wider = Column(column.name, ColumnType(has.kind, column.type.length))
        definer.decide(lambda c, i: changes.modify_column(c, i, database, name, wider, tag=tag))


def _grows(has: ColumnType | None, column: Column) -> bool:
    if has is None:
        return True
    return has.sized and column.type.sized and column.type.length > has.length
