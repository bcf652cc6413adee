"""Virtual tables: origins of their columns, and the members that a stream reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from penstock.catalog import changes, virtual
from penstock.catalog.changes import Change
from penstock.catalog.model import Child, Table, VirtualColumn
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.sql.plan import Column, Member, Origin
from penstock.types import ColumnType

from .builders import FLOOR, NOTE, PLACE, TIME, VOLTAGE, apply, ids

A = Column("a", ColumnType("INT"))
TEXT = Column("text", ColumnType("VARCHAR", 20))


def origin(column: str, table: str, source: str, database: str = "power") -> VirtualColumn:
    return VirtualColumn(column, database, table, source)


class World:
    """A catalog with tables to take columns from."""

    def __init__(self) -> None:
        self.catalog = Catalog()
        self.new_id = ids()
        made, new_id = self.catalog, self.new_id
        apply(made, changes.create_database(made, new_id, "power"))
        apply(made, changes.create_database(made, new_id, "fine", precision="us"))
        columns = (TIME, VOLTAGE, NOTE)
        apply(made, changes.create_table(made, new_id, "power", "Plain", columns))
        apply(made, changes.create_table(made, new_id, "fine", "us", columns))
        apply(made, changes.create_table(made, new_id, "power", "met", columns, (PLACE,)))
        apply(made, changes.create_child(made, new_id, "power", "D1", "met", {}))
        apply(
            made,
            changes.create_table(
                made, new_id, "power", "keyed", (TIME, VOLTAGE), key_column="voltage"
            ),
        )

    def find(self, database: str, name: str) -> tuple[Table, str | None] | None:
        child = self.catalog.child(database, name)
        if child is not None:
            stable = self.catalog.table_by_id(child.stable_id)
            assert stable is not None
            return stable, child.name
        table = self.catalog.table(database, name)
        return None if table is None else (table, None)

    def table(self, name: str) -> Table:
        found = self.catalog.table("power", name)
        assert found is not None
        return found

    def create(self, *origins: VirtualColumn, name: str = "v", **options: Any) -> Change:
        return virtual.create_table(
            self.catalog,
            self.new_id,
            self.find,
            "power",
            name,
            options.pop("columns", (TIME, A, TEXT)),
            origins,
            **options,
        )

    def create_child(self, *origins: VirtualColumn, stable: str = "vs", **options: Any) -> Change:
        return virtual.create_child(
            self.catalog,
            self.new_id,
            self.find,
            "power",
            options.pop("name", "vc"),
            stable,
            options.pop("tags", {"floor": 1}),
            origins,
            **options,
        )

    def set_origin(self, name: str, column: str, to: VirtualColumn | None) -> Change:
        return virtual.set_origin(self.catalog, self.find, "power", name, column, to)


@pytest.fixture
def world() -> World:
    made = World()
    apply(made.catalog, made.create(tags=(FLOOR,), name="vs"))
    return made


def refused(code: str, call: Callable[[], Any]) -> CatalogError:
    with pytest.raises(CatalogError) as caught:
        call()
    assert caught.value.code == code
    return caught.value


def test_origins_are_kept_in_the_spelling_of_their_tables(world: World) -> None:
    made = world.create(origin("A", "PLAIN", "VOLTAGE"), origin("text", "d1", "Note"))
    (table,) = made.puts
    assert isinstance(table, Table) and table.kind == "virtual"
    assert table.origins == (
        origin("a", "Plain", "voltage"),
        origin("text", "D1", "note"),
    )


def test_a_table_that_is_there_is_left_alone(world: World) -> None:
    apply(world.catalog, world.create())
    refused("E_TABLE_EXISTS", world.create)
    assert world.create(if_not_exists=True) == Change()


def test_a_virtual_supertable_has_no_origins_of_its_own(world: World) -> None:
    refused(
        "E_VTABLE_ORIGIN",
        lambda: world.create(origin("a", "plain", "voltage"), tags=(FLOOR,), name="other"),
    )


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        (origin("a", "nosuch", "x"), "E_NO_TABLE", "power.nosuch"),
        (origin("nosuch", "plain", "voltage"), "E_NO_COLUMN", "nosuch"),
        (origin("a", "plain", "nosuch"), "E_NO_COLUMN", "power.plain has no column nosuch"),
        (origin("ts", "plain", "ts"), "E_VTABLE_ORIGIN", "the time that rows are joined by"),
        (origin("a", "vs", "a"), "E_VTABLE_ORIGIN", "virtual itself"),
        (origin("a", "met", "voltage"), "E_VTABLE_ORIGIN", "is a supertable"),
        (origin("a", "keyed", "voltage"), "E_VTABLE_ORIGIN", "composite key"),
        (origin("a", "us", "voltage", "fine"), "E_VTABLE_ORIGIN", "counts time in us"),
        (origin("a", "plain", "note"), "E_VTABLE_ORIGIN", "a is INT"),
    ],
)
def test_an_origin_that_cannot_be_joined_is_refused(
    world: World, given: VirtualColumn, code: str, says: str
) -> None:
    assert says in refused(code, lambda: world.create(given)).message


def test_a_column_has_one_origin(world: World) -> None:
    twice = (origin("a", "plain", "voltage"), origin("A", "d1", "voltage"))
    assert "two origins" in refused("E_VTABLE_ORIGIN", lambda: world.create(*twice)).message


def test_a_text_may_be_taken_into_a_longer_one_only(world: World) -> None:
    short = Column("text", ColumnType("VARCHAR", 9))
    given = origin("text", "plain", "note")
    assert world.create(given).puts
    refused("E_VTABLE_ORIGIN", lambda: world.create(given, columns=(TIME, short)))
    other = Column("text", ColumnType("NCHAR", 20))
    refused("E_VTABLE_ORIGIN", lambda: world.create(given, columns=(TIME, other)))


def test_a_virtual_child_says_where_its_columns_come_from(world: World) -> None:
    made = world.create_child(origin("a", "plain", "voltage"))
    (child,) = made.puts
    assert isinstance(child, Child)
    assert (child.tags, child.origins) == ((1,), (origin("a", "Plain", "voltage"),))
    apply(world.catalog, made)
    assert world.create_child(if_not_exists=True) == Change()


@pytest.mark.parametrize("stable", ["met", "plain"])
def test_only_a_virtual_supertable_has_virtual_children(world: World, stable: str) -> None:
    refused("E_NOT_A_STABLE", lambda: world.create_child(stable=stable, tags={}))


def test_an_origin_is_changed_or_taken_away(world: World) -> None:
    apply(world.catalog, world.create(origin("a", "plain", "voltage")))
    apply(world.catalog, world.set_origin("V", "A", origin("a", "d1", "voltage")))
    assert world.table("v").origins == (origin("a", "D1", "voltage"),)
    apply(world.catalog, world.set_origin("v", "text", origin("text", "plain", "note")))
    assert len(world.table("v").origins) == 2
    apply(world.catalog, world.set_origin("v", "a", None))
    assert world.table("v").origins == (origin("text", "Plain", "note"),)


def test_an_origin_of_a_child_is_its_own(world: World) -> None:
    apply(world.catalog, world.create_child())
    made = world.set_origin("vc", "a", origin("a", "plain", "voltage"))
    (child,) = made.puts
    assert isinstance(child, Child) and child.origins == (origin("a", "Plain", "voltage"),)


@pytest.mark.parametrize(
    ("name", "column", "code"),
    [
        ("nosuch", "a", "E_NO_TABLE"),
        ("plain", "voltage", "E_NO_TABLE"),
        ("d1", "voltage", "E_NO_TABLE"),
        ("vs", "a", "E_NO_TABLE"),
        ("v", "nosuch", "E_NO_COLUMN"),
        ("v", "ts", "E_NO_COLUMN"),
    ],
)
def test_only_columns_of_virtual_tables_have_origins(
    world: World, name: str, column: str, code: str
) -> None:
    apply(world.catalog, world.create())
    refused(code, lambda: world.set_origin(name, column, None))


def test_a_stream_reads_tables_by_their_ids(world: World) -> None:
    apply(
        world.catalog, world.create(origin("a", "d1", "voltage"), origin("text", "plain", "note"))
    )
    met, plain = world.table("met"), world.table("plain")
    assert virtual.members(world.catalog, world.find, world.table("v")) == (
        Member(
            "v",
            (),
            (Origin("a", met.id, "D1", "voltage"), Origin("text", plain.id, "Plain", "note")),
        ),
    )


def test_an_origin_that_is_gone_is_left_out(world: World) -> None:
    apply(
        world.catalog,
        world.create(origin("a", "plain", "voltage"), origin("text", "d1", "note")),
    )
    v = world.table("v")
    without = dataclasses.replace(v.origins[1], source="nosuch")
    v = dataclasses.replace(v, origins=(v.origins[0], without))
    world.catalog.remove(world.table("plain").id)
    assert virtual.members(world.catalog, world.find, v) == (Member("v", (), ()),)


def test_the_members_of_a_supertable_are_its_children_as_they_were_made(world: World) -> None:
    for name, floor in (("Z", 1), ("a", 2)):
        apply(world.catalog, world.create_child(name=name, tags={"floor": floor}))
    vs = world.table("vs")
    found = virtual.members(world.catalog, world.find, vs)
    assert [(m.name, m.tags) for m in found] == [("Z", (1,)), ("a", (2,))]
    assert [m.name for m in virtual.members(world.catalog, world.find, vs, "A")] == ["a"]
    wider = changes.add_column(world.catalog, world.new_id, "power", "vs", PLACE, tag=True)
    apply(world.catalog, wider)
    (first, _) = virtual.members(world.catalog, world.find, world.table("vs"))
    assert first.tags == (1, None)
