"""The view of the catalog, its entries as records, and what registry and planner see of it."""

from __future__ import annotations

import json

import fastavro
import pytest

from penstock.catalog import changes, entries
from penstock.catalog.model import Child, Entry, Table
from penstock.catalog.schema_view import CatalogSchema
from penstock.catalog.view import Catalog
from penstock.codec import subjects as registry
from penstock.errors import SchemaError
from penstock.records import CatalogRecord, encode

from .builders import NOTE, PLACE, TIME, VOLTAGE, apply, ids, plan


@pytest.fixture
def catalog() -> Catalog:
    new_id = ids()
    made = Catalog()
    apply(made, changes.create_database(made, new_id, "Power"))
    apply(made, changes.create_table(made, new_id, "power", "Meters", (TIME, VOLTAGE), (PLACE,)))
    apply(made, changes.create_child(made, new_id, "power", "D1", "meters", {"place": "here"}))
    apply(made, changes.create_table(made, new_id, "power", "highs", (TIME, VOLTAGE)))
    apply(made, changes.add_column(made, new_id, "power", "meters", NOTE))
    apply(
        made,
        changes.create_stream(made, plan(made, new_id(), "peaks", "meters", "highs"), created=7),
    )
    return made


def all_entries(catalog: Catalog) -> list[Entry]:
    tables = catalog.tables()
    return [
        *catalog.databases(),
        *tables,
        *(c for t in tables for c in catalog.children(t.id)),
        *catalog.streams(),
    ]


def test_every_entry_comes_back_from_its_record(catalog: Catalog) -> None:
    found = all_entries(catalog)
    assert len(found) == 5
    for entry in found:
        record = entries.read(entries.to_value(entry, 3))
        assert record.epoch == 3
        assert entries.from_record(record) == entry
        assert entries.key_of(entry) == f"{record.kind}/{record.id}".encode()


def test_unknown_kinds_are_left_alone_and_malformed_ones_named() -> None:
    assert entries.from_record(CatalogRecord("hologram", 5, "x", 1, "{}")) is None
    with pytest.raises(SchemaError, match="table/5"):
        entries.from_record(CatalogRecord("table", 5, "x", 1, "{}"))
    with pytest.raises(SchemaError, match="child/5"):
        entries.from_record(CatalogRecord("child", 5, "x", 1, "no json"))
    with pytest.raises(SchemaError):
        entries.read(encode(CatalogRecord("table", 5, "x", 1, "{}"))[:-2])


def test_lookups_go_by_name_in_any_case_and_by_ids(catalog: Catalog) -> None:
    meters = catalog.table("POWER", "METERS")
    child = catalog.child("power", "d1")
    assert meters is not None and child is not None
    assert catalog.by_id(meters.id) is catalog.table_by_id(meters.id) is meters
    assert catalog.children(meters.id) == [child]
    assert catalog.table("power", "d1") is None and catalog.child("power", "meters") is None
    assert [catalog.schema(i) for i in meters.schema_ids] == [(meters, v) for v in meters.versions]
    [stream] = catalog.readers_of(meters.id)
    assert catalog.stream("power", "PEAKS") is stream is catalog.stream_by_id(stream.id)
    assert catalog.writers_of(stream.plan.target.table_id) == [stream]
    assert [t.name for t in catalog.tables_of_topic("in.power")] == ["Meters", "highs"]
    assert catalog.stream_by_id(meters.id) is None and catalog.table_by_id(stream.id) is None


def test_dropped_schemas_are_remembered_as_dropped(catalog: Catalog) -> None:
    meters = catalog.table("power", "meters")
    assert meters is not None and not catalog.was_dropped(meters.schema_id)
    catalog.remove(meters.id)
    assert catalog.schema(meters.schema_id) is None
    assert catalog.was_dropped(meters.schema_id) and catalog.was_dropped(meters.schema_ids[0])
    assert not catalog.was_dropped(catalog.next_id) and not catalog.was_dropped(1)
    assert catalog.remove(meters.id) is None


def test_replaying_the_log_gives_the_same_catalog(catalog: Catalog) -> None:
    again = Catalog(all_entries(catalog))
    assert all_entries(again) == all_entries(catalog)
    assert again.next_id == catalog.next_id
    renamed = Child(catalog.next_id, "Power", 101, "D2", ())
    again.put(renamed)
    again.put(Child(renamed.id, "Power", 101, "D3", ()))
    assert again.child("power", "d2") is None and again.child("power", "d3") is not None


def test_registry(catalog: Catalog) -> None:
    assert registry.subjects(catalog) == ["in.power-Meters", "in.power-highs"]
    meters = catalog.table("power", "meters")
    assert isinstance(meters, Table)
    assert registry.table_of(catalog, "in.power-Meters") is meters
    first, second = registry.versions_of(meters)
    assert (first.version, second.version, second.id) == (1, 2, meters.schema_id)
    assert registry.of_id(catalog, first.id) == first
    assert registry.schema_text(catalog, second.id) == second.schema
    fastavro.parse_schema(json.loads(second.schema))
    assert json.loads(registry.schema_text(catalog, 1) or "")["name"] == "Control"
    assert registry.schema_text(catalog, 9999) is None and registry.of_id(catalog, 1) is None
    assert registry.table_of(catalog, "nope") is None


def test_the_planners_view(catalog: Catalog) -> None:
    meters = catalog.table("power", "meters")
    assert meters is not None
    view = CatalogSchema(catalog, lambda database, name: meters.id if name == "seen" else None)
    assert (view.precision("POWER"), view.precision("nope")) == ("ms", None)
    stable = view.table("power", "meters")
    child = view.table("power", "d1")
    seen = view.table("power", "seen")
    assert stable is not None and (stable.kind, stable.child, stable.columns) == (
        "stable",
        None,
        meters.columns,
    )
    assert child is not None and (child.kind, child.child, child.name, child.id) == (
        "child",
        "D1",
        "Meters",
        meters.id,
    )
    assert seen is not None and (seen.kind, seen.child) == ("child", "seen")
    assert (
        view.table("power", "nope") is None
        and CatalogSchema(catalog).table("power", "seen") is None
    )
    assert (
        list(view.streams_into("power", "highs")) == ["peaks"]
        and list(view.streams_into("power", "nope")) == []
    )
