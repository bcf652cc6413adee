"""A database gets more partitions: what is refused, and what the catalog says on the way."""

from __future__ import annotations

import dataclasses

import pytest

from penstock.catalog import changes, generations
from penstock.catalog.model import Database, Table, View
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.feeds.cursor import Cursor
from penstock.repartition.readers import earliest, resume, turn

from .builders import FLOOR, NOTE, PLACE, TIME, VOLTAGE, apply, ids, plan


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    new_id = ids()
    apply(made, changes.create_database(made, new_id, "Power", partitions=3))
    apply(
        made,
        changes.create_table(
            made, new_id, "power", "meters", (TIME, VOLTAGE, NOTE), (PLACE, FLOOR)
        ),
    )
    apply(made, changes.create_table(made, new_id, "power", "highs", (TIME, VOLTAGE), (PLACE,)))
    apply(
        made,
        changes.create_table(
            made, new_id, "power", "own", (TIME, VOLTAGE), own_topic=True, partitions=2
        ),
    )
    return made


def home(catalog: Catalog) -> Database:
    found = catalog.database("power")
    assert found is not None
    return found


def moved(catalog: Catalog, partitions: int, ended: list[int]) -> None:
    apply(catalog, generations.begin(catalog, "power", partitions))
    apply(catalog, generations.halt(home(catalog)))
    apply(catalog, generations.end(home(catalog), ended))
    apply(catalog, generations.turn(catalog, home(catalog)))


def refused(catalog: Catalog, partitions: int = 6) -> CatalogError:
    with pytest.raises(CatalogError) as caught:
        generations.begin(catalog, "power", partitions)
    return caught.value


def test_from_one_generation_to_the_next_and_the_one_after(catalog: Catalog) -> None:
    apply(catalog, generations.begin(catalog, "power", 6))
    assert (catalog.is_halted("in.power"), catalog.topics()) == (
        False,
        {"in.power": 3, "in.power.own": 2},
    )
    apply(catalog, generations.halt(home(catalog)))
    assert (catalog.is_halted("in.power"), catalog.is_halted("in.power.own")) == (True, False)
    assert catalog.topic_owner("in.power-g2") == home(catalog).id, (
        "while it is made it is its own already"
    )
    apply(catalog, generations.end(home(catalog), [9, 19, 29]))
    apply(catalog, generations.turn(catalog, home(catalog)))
    assert catalog.topics() == {"in.power-g2": 6, "in.power.own": 2}
    assert catalog.former_topics() == {"in.power": 3}
    assert catalog.begins("in.power-g2") == {0: 10, 1: 20, 2: 30, 3: 10, 4: 20, 5: 30}
    assert (catalog.ends("in.power"), catalog.ends("in.power-g2")) == ({0: 9, 1: 19, 2: 29}, {})
    assert catalog.begins("in.power") == catalog.begins("in.power.own") == {}
    assert [t.name for t in catalog.tables_of_topic("in.power-g2")] == ["meters", "highs"]
    assert {catalog.topic_owner(t) for t in ("in.power", "in.power-g2")} == {home(catalog).id}
    assert not catalog.is_halted("in.power-g2")
    assert catalog.is_halted("in.power"), "whoever looked up the table before must not write there"
    moved(catalog, 12, [100] * 6)
    assert catalog.lineage("in.power-g3") == [
        ("in.power-g3", 12),
        ("in.power-g2", 6),
        ("in.power", 3),
    ]
    made = changes.create_table(catalog, ids(900), "power", "late", (TIME, VOLTAGE)).puts[0]
    assert isinstance(made, Table) and (made.topic, made.partitions) == ("in.power-g3", 12)


def test_a_multiple_only(catalog: Catalog) -> None:
    assert generations.begin(catalog, "power", 3) == changes.Change()
    for impossible in (1, 4, 1026):
        assert (refused(catalog, impossible).code, refused(catalog, impossible).hint[:7]) == (
            "E_BAD_OPTION",
            "6, 9, 1",
        )


def test_streams_and_views_in_the_way_are_named(catalog: Catalog) -> None:
    within = plan(catalog, 900, "peaks", "meters", "highs")
    apply(catalog, changes.create_stream(catalog, within, created=5))
    generations.begin(catalog, "power", 6)
    apply(catalog, changes.set_stream_status(catalog, "power", "peaks", "paused"))
    assert (refused(catalog).code, refused(catalog).hint) == (
        "E_CANNOT_MOVE",
        "RESUME STREAM power.peaks",
    )
    apply(catalog, changes.set_stream_status(catalog, "power", "peaks", "running"))
    apply(
        catalog,
        changes.create_stream(catalog, plan(catalog, 901, "across", "meters", "own"), created=5),
    )
    assert "stream power.across reads one topic and writes another" in refused(catalog).message
    apply(catalog, changes.drop_stream(catalog, "power", "across"))
    told = dataclasses.replace(
        within,
        stream_id=903,
        name="told",
        target=dataclasses.replace(within.target, table_id=0, stored=False),
    )
    apply(catalog, changes.create_stream(catalog, told, created=5))
    generations.begin(catalog, "power", 6)
    timed = dataclasses.replace(
        within,
        stream_id=902,
        name="timed",
        path="exchange",
        trigger=dataclasses.replace(within.trigger, kind="max_delay"),
    )
    apply(catalog, changes.create_stream(catalog, timed, created=5))
    assert "stream power.timed closes windows by the clock" in refused(catalog).message
    apply(catalog, changes.drop_stream(catalog, "power", "timed"))
    target = catalog.table("power", "meters")
    assert target is not None
    catalog.put(View(950, "power", "v", "SELECT 1", 1, target.id))
    assert "view power.v writes into Power" in refused(catalog).message


def test_a_reader_has_each_topic_to_its_end_first(catalog: Catalog) -> None:
    first = Cursor({0: 10, 1: 19, 2: 30}, {"0/s:1": (7, 0)})
    assert turn(catalog, "in.power", first) is None
    moved(catalog, 6, [9, 19, 29])
    assert resume(catalog, "in.power-g2", first) == ("in.power", first)
    assert turn(catalog, "in.power", first) is None, "one record is left"
    first.offsets[1] = 20
    second = turn(catalog, "in.power", first)
    assert second == Cursor({0: 10, 1: 20, 2: 30, 3: 10, 4: 20, 5: 30})
    assert resume(catalog, "in.power", second) == ("in.power-g2", second)
    assert turn(catalog, "in.power-g2", second) is None
    moved(catalog, 12, [100] * 6)
    third = Cursor(dict.fromkeys(range(12), 101))
    for cursor, topic in ((first, "in.power"), (second, "in.power-g2"), (third, "in.power-g3")):
        assert resume(catalog, "in.power-g3", cursor) == (topic, cursor)
    assert turn(catalog, "in.power-g2", second) is None
    assert turn(catalog, "in.power-g2", Cursor(dict.fromkeys(range(6), 101))) == third
    assert earliest(catalog, "in.power-g3") == "in.power"
    assert resume(catalog, "in.power.own", Cursor({0: 1})) == ("in.power.own", Cursor({0: 1}))
    assert earliest(catalog, "in.power.own") == "in.power.own"


def test_a_token_of_a_topic_that_is_gone_is_a_place_in_those_that_came_after(
    catalog: Catalog,
) -> None:
    moved(catalog, 6, [9, 19, 29])
    moved(catalog, 12, [100] * 6)
    apply(catalog, generations.remove(home(catalog), ["in.power"]))
    assert (catalog.former_topics(), home(catalog).generation) == ({"in.power-g2": 6}, 3)
    assert earliest(catalog, "in.power-g3") == "in.power-g2"
    spread = Cursor({0: 10, 1: 20, 2: 30, 3: 10, 4: 20, 5: 30})
    assert resume(catalog, "in.power-g3", Cursor({0: 10, 1: 20, 2: 30})) == ("in.power-g2", spread)
    assert catalog.begins("in.power-g2") == spread.offsets
    apply(catalog, generations.remove(home(catalog), ["in.power-g2"]))
    assert earliest(catalog, "in.power-g3") == "in.power-g3"
    assert resume(catalog, "in.power-g3", Cursor({0: 10, 1: 20, 2: 30}))[0] == "in.power-g3"
    assert catalog.lineage("in.power-g3") == [
        ("in.power-g3", 12),
        ("in.power-g2", 6),
        ("in.power", 3),
    ]
    moved(catalog, 24, [200] * 12)
    assert catalog.former_topics() == {"in.power-g3": 12}
