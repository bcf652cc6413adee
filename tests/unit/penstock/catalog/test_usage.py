"""Refusals to drop or change what streams and views use."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from penstock.catalog import changes
from penstock.catalog.changes.usage import (
    reads_child,
    refuse_column_used,
    refuse_used,
    refuse_viewed,
)
from penstock.catalog.model import StreamEntry, Table, View
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.sql.plan import Column, Event, Key, Member, StreamPlan
from penstock.types import ColumnType

from .builders import PLACE, TIME, VOLTAGE, apply, ids, plan

INT = ColumnType("INT")
HIGH = Column("high", INT)
PLAIN = Column("plain", INT)


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    new_id = ids()
    apply(made, changes.create_database(made, new_id, "power"))
    columns = (TIME, VOLTAGE, PLAIN)
    apply(made, changes.create_table(made, new_id, "power", "meters", columns, (PLACE,)))
    apply(made, changes.create_table(made, new_id, "power", "highs", (TIME, HIGH, PLAIN)))
    return made


def table(catalog: Catalog, name: str) -> Table:
    found = catalog.table("power", name)
    assert found is not None
    return found


def stream(catalog: Catalog, **change: Any) -> StreamEntry:
    made = StreamEntry(
        900, dataclasses.replace(plan(catalog, 900, "s", "meters", "highs"), **change)
    )
    catalog.put(made)
    return made


def refusal(call: Callable[[], None]) -> str:
    with pytest.raises(CatalogError) as caught:
        call()
    assert caught.value.code == "E_IN_USE"
    return caught.value.message


def virtual(made: StreamPlan, *names: str) -> StreamPlan:
    members = tuple(Member(name, (), ()) for name in names)
    return dataclasses.replace(
        made, source=dataclasses.replace(made.source, kind="virtual", members=members)
    )


def test_a_stream_needs_the_child_tables_that_it_names(catalog: Catalog) -> None:
    made = plan(catalog, 900, "s", "meters", "highs")
    assert not reads_child(made, "d1")
    child = plan(catalog, 900, "s", "meters", "highs", child="D1")
    assert reads_child(child, "d1") and not reads_child(child, "d2")
    assert reads_child(virtual(made, "V1", "V2"), "v2")
    assert not reads_child(virtual(child, "V1"), "d1")


def test_what_a_view_reads_or_writes_stays(catalog: Catalog) -> None:
    meters, highs = table(catalog, "meters"), table(catalog, "highs")
    refuse_viewed(catalog, meters)
    catalog.put(View(950, "power", "v", "SELECT 1", meters.id, highs.id))
    for entry in (meters, highs):
        assert "view power.v uses it" in refusal(lambda entry=entry: refuse_viewed(catalog, entry))  # type: ignore[misc]


def test_a_table_that_streams_use_is_refused_with_each_named_once(catalog: Catalog) -> None:
    meters = table(catalog, "meters")
    refuse_used(meters, "drop", [])
    used = stream(catalog)
    message = refusal(lambda: refuse_used(meters, "drop", [used, used]))
    assert message == "cannot drop meters: stream power.s uses it"


@pytest.mark.parametrize(
    ("change", "used"),
    [
        ({}, {"voltage"}),
        ({"where": "PLAIN > 1"}, {"voltage", "plain"}),
        ({"where": "plain_ > 1 OR xplain > 1 OR $plain > 1"}, {"voltage"}),
        ({"keys": (Key("p", "place", INT),)}, {"voltage", "place"}),
        ({"window": Event("plain > 1", "place = 'x'")}, {"voltage", "plain", "place"}),
        ({"aggregates": ()}, {"voltage"}),
        ({"aggregates": (), "where": None}, set()),
    ],
)
def test_a_column_that_a_stream_reads_stays(
    catalog: Catalog, change: dict[str, Any], used: set[str]
) -> None:
    stream(catalog, **change)
    meters = table(catalog, "meters")
    found = set()
    for column in (VOLTAGE, PLAIN, PLACE):
        try:
            refuse_column_used(catalog, meters, column, "drop")
        except CatalogError as error:
            assert error.code == "E_IN_USE"
            assert error.message == f"cannot drop meters.{column.name}: stream power.s uses it"
            found.add(column.name)
    assert found == used


def test_a_column_that_a_stream_fills_stays(catalog: Catalog) -> None:
    made = plan(catalog, 900, "s", "meters", "highs")
    target = dataclasses.replace(made.target, column_of=("ts", "high", None))
    stream(catalog, target=target)
    highs = table(catalog, "highs")
    refuse_column_used(catalog, highs, PLAIN, "drop")
    assert "highs.HIGH" in refusal(
        lambda: refuse_column_used(catalog, highs, dataclasses.replace(HIGH, name="HIGH"), "drop")
    )
