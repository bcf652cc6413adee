"""PARTITIONS of a database grow: the steps from the topic of one generation to that of the next, as
pure decisions.

The catalog holds how far a move has come (`Move`), so the next leader goes on. Objects that cannot
be moved are refused by name and with a way out. Nothing is written here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NoReturn

from penstock.catalog.changes import Change
from penstock.catalog.changes.limits import MAX_PARTITIONS
from penstock.catalog.model import Database, Move, StreamEntry
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.sql.plan import needs_ticks

_DROP = "drop it, and create it again afterwards"


def begin(catalog: Catalog, name: str, partitions: int) -> Change:
    """The database is to have *partitions* partitions.

    Raises:
        CatalogError: they cannot be had, or something of the database cannot be moved.
    """
    database = catalog.database(name)
    if database is None:
        _refuse("E_NO_DATABASE", f"there is no database {name}")
    if partitions == database.partitions:
        return Change()
    if (
        partitions < database.partitions
        or partitions % database.partitions
        or partitions > MAX_PARTITIONS
    ):
        offered = ", ".join(
            str(database.partitions * k)
            for k in (2, 3, 4)
            if database.partitions * k <= MAX_PARTITIONS
        )
        _refuse(
            "E_BAD_OPTION",
            f"{name} has {database.partitions} partitions: it can have a multiple of that, up to"
            f" {MAX_PARTITIONS}",
            hint=(
                f"{offered or 'a wider database beside it: docs/scaling.md'}; so each new partition"
                " goes on where one old one ended"
            ),
        )
    _check_links(catalog, database)
    for stream in catalog.streams():
        _check_stream(catalog, database, stream)
    return Change((dataclasses.replace(database, move=Move(partitions)),))


def halt(database: Database) -> Change:
    """Writers hold what they get from now on."""
    assert database.move is not None
    return Change(
        (dataclasses.replace(database, move=dataclasses.replace(database.move, halted=True)),)
    )


def end(database: Database, ended: Sequence[int]) -> Change:
    """The old topic has ended, at these offsets."""
    assert database.move is not None
    return Change(
        (
            dataclasses.replace(
                database, move=dataclasses.replace(database.move, ended=tuple(ended))
            ),
        )
    )


def begins(database: Database) -> dict[int, int]:
    """Return where each partition of the next generation begins: behind the control record that
    ends the one it comes from.
    """
    assert database.move is not None
    return {
        q: database.move.ended[q % database.partitions] + 1 for q in range(database.move.partitions)
    }


def turn(catalog: Catalog, database: Database) -> Change:
    """The next generation is the present one, for the database and all tables that share its
    topic.
    """
    assert database.move is not None
    turned = dataclasses.replace(
        database,
        partitions=database.move.partitions,
        former=(*database.former, database.move.ended),
        move=None,
    )
    tables = [t for t in catalog.tables(database.name) if t.topic == database.topic]
    return Change(
        (
            turned,
            *(
                dataclasses.replace(t, topic=turned.topic, partitions=turned.partitions)
                for t in tables
            ),
        )
    )


def remove(database: Database, topics: Sequence[str]) -> Change:
    """Forget these topics of earlier generations, the earliest ones."""
    assert list(topics) == list(database.former_topics)[: len(topics)]
    return Change((dataclasses.replace(database, removed=database.removed + len(topics)),))


def _check_links(catalog: Catalog, database: Database) -> None:
    """Refuse to move a database that other services write to: those rows cannot be held."""
    inside = {t.id: t for t in catalog.tables(database.name) if t.topic == database.topic}
    view = next((v for v in catalog.views() if v.target_id in inside), None)
    if view is not None:
        _refuse(
            "E_CANNOT_MOVE",
            f"view {view.database}.{view.name} writes into {database.name}",
            hint=_DROP,
        )
    foreign = next((t for t in inside.values() if t.foreign), None)
    if foreign is not None:
        _refuse(
            "E_CANNOT_MOVE",
            f"{database.name}.{foreign.name} is filled from a topic of another Kafka",
            hint=_DROP,
        )


def _check_stream(catalog: Catalog, database: Database, stream: StreamEntry) -> None:
    plan = stream.plan
    name = f"{stream.database}.{stream.name}"
    target = catalog.table_by_id(plan.target.table_id)
    sources = set(catalog.source_topics(plan))
    if database.topic not in {*sources, target.topic if target is not None else ""}:
        return
    if plan.source.kind == "virtual":
        _refuse("E_CANNOT_MOVE", f"stream {name} joins rows of a virtual table", hint=_DROP)
    writes_here = not plan.target.stored or (target is not None and target.topic == database.topic)
    if sources != {database.topic} or not writes_here:
        _refuse("E_CANNOT_MOVE", f"stream {name} reads one topic and writes another", hint=_DROP)
    if stream.status == "paused":
        _refuse(
            "E_CANNOT_MOVE",
            f"stream {name} is paused: what waits in it cannot be moved",
            hint=f"RESUME STREAM {name}",
        )
    if plan.path == "exchange" and needs_ticks(plan):
        _refuse(
            "E_CANNOT_MOVE",
            f"stream {name} closes windows by the clock over groups of several partitions",
            hint=_DROP,
        )


def _refuse(code: str, message: str, *, hint: str = "") -> NoReturn:
    raise CatalogError(message, code=code, hint=hint)
