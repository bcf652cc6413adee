"""Which exchange partition finishes a group."""

from __future__ import annotations

import polars as pl

from penstock import names
from spark_jobs.processor.group_places import PARTITIONS, GroupPlaces


def places_of(places: GroupPlaces, *groups: str | None) -> list[int]:
    rows = pl.DataFrame(
        {"_k0": groups, "v": range(len(groups))}, schema_overrides={"_k0": pl.String}
    )
    made = places.add_to(rows)
    assert made.drop("_place").equals(rows)
    return made.get_column("_place").to_list()


def test_a_group_has_one_place_by_its_keys() -> None:
    places = GroupPlaces("db.out", ["_k0"], None)
    values = [f"g{i}" for i in range(50)]

    found = places_of(places, *values)

    assert found == [names.group_id("db.out", (v,)) % PARTITIONS for v in values]
    assert places_of(places, "g7", None, "g7", None)[::2] == [found[7]] * 2
    assert set(found) == set(range(PARTITIONS))


def test_null_is_a_group_too() -> None:
    null = names.group_id("db.out", (None,)) % PARTITIONS

    assert places_of(GroupPlaces("db.out", ["_k0"], None), None, None) == [null, null]


def test_all_groups_may_have_one_place() -> None:
    assert places_of(GroupPlaces("db.out", ["_k0"], 3), "a", "b") == [3, 3]
    assert places_of(GroupPlaces("db.out", [], 0), "a") == [0]
