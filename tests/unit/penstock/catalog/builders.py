"""Catalogs and plans for the tests beside this file."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from penstock.catalog.changes import Change
from penstock.catalog.view import Catalog
from penstock.sql.plan import (
    Aggregate,
    Column,
    Duration,
    Interval,
    Output,
    Source,
    StreamPlan,
    Target,
    Trigger,
)
from penstock.types import ColumnType

TIME = Column("ts", ColumnType("TIMESTAMP"))
VOLTAGE = Column("voltage", ColumnType("INT"))
NOTE = Column("note", ColumnType("VARCHAR", 10))
PLACE = Column("place", ColumnType("VARCHAR", 20))
FLOOR = Column("floor", ColumnType("INT"))


def ids(start: int = 100) -> Callable[[], int]:
    numbers = count(start)
    return lambda: next(numbers)


def apply(catalog: Catalog, change: Change) -> Change:
    """What the log and its reader do with a change."""
    for entry in change.removes:
        catalog.remove(entry.id)
    for entry in change.puts:
        catalog.put(entry)
    return change


def plan(
    catalog: Catalog, stream_id: int, name: str, source: str, target: str, child: str | None = None
) -> StreamPlan:
    database = "power"
    read = catalog.table(database, source)
    written = catalog.table(database, target)
    assert read is not None and written is not None
    return StreamPlan(
        stream_id,
        database,
        name,
        f"CREATE STREAM {name}",
        Source(
            read.id,
            database,
            read.name,
            "child" if child else "stable",
            read.columns,
            read.tags,
            "ms",
            child,
        ),
        "scan",
        "voltage > 5",
        (),
        Interval(Duration(10, "s"), Duration(10, "s")),
        Trigger("window_close"),
        (Aggregate("_a0", "max", "voltage", ColumnType("INT")),),
        (
            Output("ts", "_wstart", ColumnType("TIMESTAMP")),
            Output("high", "_a0", ColumnType("INT")),
        ),
        Target(
            written.id, database, written.name, written.columns, written.tags, ("ts", "high"), ()
        ),
    )
