"""The rules of DDL, one test a rule; every refusal has a code of its own."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from penstock.catalog import changes, entries
from penstock.catalog.changes import Change
from penstock.catalog.model import FOREIGN, Child, Database, StreamEntry, Table, View
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.sql.plan import Column, Duration
from penstock.types import ColumnType

from .builders import FLOOR, NOTE, PLACE, TIME, VOLTAGE, apply, ids, plan

HIGH = Column("high", ColumnType("INT"))


@pytest.fixture
def new_id() -> Callable[[], int]:
    return ids()


@pytest.fixture
def catalog(new_id: Callable[[], int]) -> Catalog:
    made = Catalog()
    apply(made, changes.create_database(made, new_id, "Power", precision="us", partitions=3))
    apply(
        made,
        changes.create_table(
            made, new_id, "power", "Meters", (TIME, VOLTAGE, NOTE), (PLACE, FLOOR)
        ),
    )
    apply(made, changes.create_table(made, new_id, "power", "highs", (TIME, HIGH)))
    apply(made, changes.create_child(made, new_id, "power", "D1", "meters", {"PLACE": "here"}))
    return made


def refused(code: str, change: Callable[[], Change]) -> CatalogError:
    with pytest.raises(CatalogError) as caught:
        change()
    assert caught.value.code == code
    return caught.value


def stream(
    catalog: Catalog,
    name: str = "peaks",
    source: str = "meters",
    target: str = "highs",
    child: str | None = None,
) -> StreamEntry:
    made = changes.create_stream(
        catalog,
        plan(catalog, 900 + len(catalog.streams()), name, source, target, child=child),
        created=5,
    )
    apply(catalog, made)
    assert isinstance(made.puts[0], StreamEntry)
    return made.puts[0]


def test_a_database(catalog: Catalog, new_id: Callable[[], int]) -> None:
    assert catalog.database("POWER") == Database(100, "Power", "us", None, 3, Duration(1, "d"))
    assert changes.create_database(catalog, new_id, "pOwer", if_not_exists=True) == Change()
    refused("E_DATABASE_EXISTS", lambda: changes.create_database(catalog, new_id, "pOwer"))
    refused("E_BAD_NAME", lambda: changes.create_database(catalog, new_id, "a b"))
    refused("E_BAD_OPTION", lambda: changes.create_database(catalog, new_id, "x", partitions=0))
    refused(
        "E_BAD_OPTION", lambda: changes.create_database(catalog, new_id, "x", keep=Duration(1, "h"))
    )
    apply(catalog, changes.alter_database(catalog, "power", keep=Duration(30, "d")))
    found = catalog.database("power")
    assert found is not None and (found.keep, found.max_ahead) == (
        Duration(30, "d"),
        Duration(1, "d"),
    )
    assert not found.dot_to_underscore
    apply(catalog, changes.alter_database(catalog, "power", dot_to_underscore=True))
    apply(catalog, changes.alter_database(catalog, "power", keep=Duration(40, "d")))
    found = catalog.database("power")
    assert found is not None and (found.keep, found.dot_to_underscore) == (Duration(40, "d"), True)
    refused("E_NO_DATABASE", lambda: changes.alter_database(catalog, "nope"))


def test_tables_take_the_databases_settings_or_a_topic_of_their_own(
    catalog: Catalog, new_id: Callable[[], int]
) -> None:
    meters = catalog.table("power", "METERS")
    assert meters is not None
    assert (meters.kind, meters.topic, meters.partitions, meters.precision) == (
        "stable",
        "in.power",
        3,
        "us",
    )
    apply(
        catalog,
        changes.create_table(
            catalog,
            new_id,
            "power",
            "Big",
            (TIME, VOLTAGE),
            own_topic=True,
            partitions=16,
            comment="x",
        ),
    )
    big = catalog.table("power", "big")
    assert big is not None
    assert (big.kind, big.topic, big.partitions, dict(big.options)) == (
        "plain",
        "in.power.big",
        16,
        {"comment": "x"},
    )
    assert catalog.topics() == {"in.power": 3, "in.power.big": 16}
    refused(
        "E_BAD_OPTION",
        lambda: changes.create_table(catalog, new_id, "power", "t", (TIME, VOLTAGE), partitions=2),
    )


@pytest.mark.parametrize(
    ("code", "columns", "tags"),
    [
        ("E_NO_TIME_COLUMN", (), ()),
        ("E_NO_TIME_COLUMN", (VOLTAGE, TIME), ()),
        ("E_DUPLICATE_COLUMN", (TIME, VOLTAGE, Column("Voltage", ColumnType("INT"))), ()),
        ("E_DUPLICATE_COLUMN", (TIME, VOLTAGE), (Column("TS", ColumnType("INT")),)),
        ("E_RESERVED_NAME", (TIME, Column("op", ColumnType("INT"))), ()),
        ("E_RESERVED_NAME", (TIME, VOLTAGE), (Column("tbname", ColumnType("INT")),)),
        ("E_BAD_NAME", (TIME, Column("x" * 65, ColumnType("INT"))), ()),
        ("E_BAD_JSON", (TIME, Column("j", ColumnType("JSON"))), ()),
        ("E_BAD_JSON", (TIME, VOLTAGE), (Column("j", ColumnType("JSON")), FLOOR)),
        ("E_TOO_MANY_COLUMNS", (TIME, *(Column(f"c{i}", VOLTAGE.type) for i in range(4096))), ()),
    ],
)
def test_columns_that_are_refused(
    catalog: Catalog,
    new_id: Callable[[], int],
    code: str,
    columns: tuple[Column, ...],
    tags: tuple[Column, ...],
) -> None:
    refused(code, lambda: changes.create_table(catalog, new_id, "power", "t", columns, tags))


def test_names_and_keys_that_are_refused(catalog: Catalog, new_id: Callable[[], int]) -> None:
    for name in ("", "a.b", "x" * 193, "a\nb"):
        refused(
            "E_BAD_NAME",
            lambda name=name: changes.create_table(catalog, new_id, "power", name, (TIME, VOLTAGE)),
        )  # type: ignore[misc]
    refused(
        "E_TABLE_EXISTS",
        lambda: changes.create_table(catalog, new_id, "power", "METERS", (TIME, VOLTAGE)),
    )
    refused(
        "E_TABLE_EXISTS",
        lambda: changes.create_table(catalog, new_id, "power", "d1", (TIME, VOLTAGE)),
    )
    assert (
        changes.create_table(catalog, new_id, "power", "METERS", (TIME,), if_not_exists=True)
        == Change()
    )
    refused(
        "E_BAD_KEY",
        lambda: changes.create_table(
            catalog, new_id, "power", "t", (TIME, NOTE, VOLTAGE), key_column="voltage"
        ),
    )
    keyed = changes.create_table(
        catalog, new_id, "power", "t", (TIME, VOLTAGE), key_column="voltage"
    ).puts[0]
    assert isinstance(keyed, Table) and keyed.key_column == "voltage"
    refused(
        "E_NO_DATABASE", lambda: changes.create_table(catalog, new_id, "nope", "t", (TIME, VOLTAGE))
    )


def test_child_tables(catalog: Catalog, new_id: Callable[[], int]) -> None:
    child = catalog.child("power", "d1")
    assert child is not None and (child.name, child.tags) == ("D1", ("here", None))
    refused(
        "E_TABLE_EXISTS", lambda: changes.create_child(catalog, new_id, "power", "d1", "meters", {})
    )
    refused(
        "E_TABLE_EXISTS",
        lambda: changes.create_child(
            catalog, new_id, "power", "highs", "meters", {}, if_not_exists=True
        ),
    )
    assert (
        changes.create_child(catalog, new_id, "power", "d1", "meters", {}, if_not_exists=True)
        == Change()
    )
    refused(
        "E_NO_COLUMN",
        lambda: changes.create_child(catalog, new_id, "power", "d2", "meters", {"nope": 1}),
    )
    refused(
        "E_NOT_A_STABLE", lambda: changes.create_child(catalog, new_id, "power", "d2", "highs", {})
    )
    refused("E_NO_TABLE", lambda: changes.create_child(catalog, new_id, "power", "d2", "nope", {}))


def test_tags_are_set_on_children_known_and_unknown(
    catalog: Catalog, new_id: Callable[[], int]
) -> None:
    known = apply(
        catalog, changes.set_tags(catalog, new_id, "power", "d1", "meters", {"floor": 3})
    ).puts[0]
    assert isinstance(known, Child) and known.tags == ("here", 3)
    seen_in_rows = apply(
        catalog, changes.set_tags(catalog, new_id, "power", "d9", "meters", {"place": "there"})
    ).puts[0]
    assert isinstance(seen_in_rows, Child) and seen_in_rows.tags == ("there", None)


def test_every_alter_is_a_new_schema_and_the_old_ones_stay(
    catalog: Catalog, new_id: Callable[[], int]
) -> None:
    first = catalog.table("power", "meters")
    assert first is not None
    apply(
        catalog,
        changes.add_column(
            catalog, new_id, "power", "meters", Column("amps", ColumnType("DOUBLE"))
        ),
    )
    apply(
        catalog,
        changes.modify_column(
            catalog, new_id, "power", "meters", Column("NOTE", ColumnType("VARCHAR", 20))
        ),
    )
    apply(
        catalog,
        changes.add_column(
            catalog, new_id, "power", "meters", Column("zone", ColumnType("INT")), tag=True
        ),
    )
    apply(catalog, changes.rename_tag(catalog, new_id, "power", "meters", "zone", "area"))
    apply(catalog, changes.drop_column(catalog, new_id, "power", "meters", "voltage"))
    table = catalog.table("power", "meters")
    assert table is not None
    assert len(table.versions) == 6 and len(set(table.schema_ids)) == 6
    assert [(c.name, str(c.type)) for c in table.columns] == [
        ("ts", "TIMESTAMP"),
        ("note", "VARCHAR(20)"),
        ("amps", "DOUBLE"),
    ]
    assert [t.name for t in table.tags] == ["place", "floor", "area"]
    assert table.versions[4].renamed == (("zone", "area"),)
    found = catalog.schema(first.schema_id)
    assert found is not None and found == (table, first.newest)


def test_alters_that_would_spoil_old_records_are_refused(
    catalog: Catalog, new_id: Callable[[], int]
) -> None:
    for column, kind in (
        ("note", ColumnType("VARCHAR", 5)),
        ("note", ColumnType("NCHAR", 50)),
        ("voltage", ColumnType("BIGINT")),
    ):
        wanted = Column(column, kind)
        refused(
            "E_BAD_MODIFY",
            lambda c=wanted: changes.modify_column(catalog, new_id, "power", "meters", c),
        )  # type: ignore[misc]
    refused("E_KEY_COLUMN", lambda: changes.drop_column(catalog, new_id, "power", "meters", "ts"))
    refused("E_NO_COLUMN", lambda: changes.drop_column(catalog, new_id, "power", "meters", "nope"))
    refused(
        "E_DUPLICATE_COLUMN",
        lambda: changes.add_column(
            catalog, new_id, "power", "meters", Column("NOTE", ColumnType("INT"))
        ),
    )
    refused(
        "E_NOT_A_STABLE",
        lambda: changes.add_column(catalog, new_id, "power", "highs", FLOOR, tag=True),
    )
    refused("E_CHILD_TABLE", lambda: changes.add_column(catalog, new_id, "power", "d1", FLOOR))
    apply(catalog, changes.drop_column(catalog, new_id, "power", "meters", "place", tag=True))
    child = catalog.child("power", "d1")
    assert child is not None and child.tags == (None,)
    refused(
        "E_LAST_TAG",
        lambda: changes.drop_column(catalog, new_id, "power", "meters", "floor", tag=True),
    )


def test_what_a_stream_uses_stays(catalog: Catalog, new_id: Callable[[], int]) -> None:
    stream(catalog)
    error = refused("E_IN_USE", lambda: changes.drop_table(catalog, "power", "meters"))
    assert "Power.peaks" in error.message or "power.peaks" in error.message
    refused("E_IN_USE", lambda: changes.drop_table(catalog, "power", "highs"))
    refused("E_IN_USE", lambda: changes.drop_column(catalog, new_id, "power", "meters", "voltage"))
    refused("E_IN_USE", lambda: changes.drop_column(catalog, new_id, "power", "highs", "high"))
    assert changes.drop_column(catalog, new_id, "power", "meters", "note").puts
    assert changes.drop_table(catalog, "power", "d1").removes == (catalog.child("power", "d1"),)
    apply(catalog, changes.drop_stream(catalog, "power", "PEAKS"))
    assert {type(e) for e in changes.drop_table(catalog, "power", "meters").removes} == {
        Child,
        Table,
    }


def test_a_child_that_a_stream_reads_stays(catalog: Catalog) -> None:
    stream(catalog, child="d1")
    refused("E_IN_USE", lambda: changes.drop_table(catalog, "power", "d1"))


def test_streams(catalog: Catalog) -> None:
    made = stream(catalog)
    assert (made.status, made.created) == ("running", 5)
    again = plan(catalog, 950, "Peaks", "meters", "highs")
    refused("E_STREAM_EXISTS", lambda: changes.create_stream(catalog, again, created=6))
    assert changes.create_stream(catalog, again, created=6, if_not_exists=True) == Change()
    refused(
        "E_STREAM_CYCLE",
        lambda: changes.create_stream(
            catalog, plan(catalog, 951, "back", "highs", "meters"), created=6
        ),
    )
    refused(
        "E_STREAM_CYCLE",
        lambda: changes.create_stream(
            catalog, plan(catalog, 951, "self", "meters", "meters"), created=6
        ),
    )
    failed = changes.set_stream_status(catalog, "power", "peaks", "failed", "why").puts[0]
    assert isinstance(failed, StreamEntry) and (failed.status, failed.reason) == ("failed", "why")
    assert changes.drop_stream(catalog, "power", "nope", if_exists=True) == Change()
    refused("E_NO_STREAM", lambda: changes.drop_stream(catalog, "power", "nope"))


def test_a_database_goes_with_all_it_holds_unless_used_from_outside(
    catalog: Catalog, new_id: Callable[[], int]
) -> None:
    stream(catalog)
    apply(catalog, changes.create_database(catalog, new_id, "other"))
    apply(catalog, changes.drop_database(catalog, "other"))
    dropped = apply(catalog, changes.drop_database(catalog, "power")).removes
    assert [type(e) for e in dropped] == [StreamEntry, Child, Table, Table, Database]
    assert (catalog.databases(), catalog.tables(), catalog.streams()) == ([], [], [])
    assert changes.drop_database(catalog, "power", if_exists=True) == Change()
    refused("E_NO_DATABASE", lambda: changes.drop_database(catalog, "power"))


def test_table_options(catalog: Catalog) -> None:
    made = changes.set_table_options(
        catalog, "power", "meters", keep=Duration(9, "d"), comment="new"
    ).puts[0]
    assert isinstance(made, Table) and (made.keep, made.options) == (
        Duration(9, "d"),
        {"comment": "new"},
    )


def test_keep_is_refused_for_rows_without_a_time_of_their_own(catalog: Catalog) -> None:
    meters = catalog.table("power", "meters")
    assert meters is not None
    followed = dataclasses.replace(meters, options={FOREIGN: '{"fixed_time":true}'})
    catalog.put(followed)
    refused(
        "E_BAD_OPTION",
        lambda: changes.set_table_options(catalog, "power", "meters", keep=Duration(9, "d")),
    )
    made = apply(catalog, changes.set_table_options(catalog, "power", "meters", comment="new"))
    assert made.puts[0] == dataclasses.replace(
        followed, options={**followed.options, "comment": "new"}
    )


def test_resume_is_counted_for_views_that_stop_at_a_row(catalog: Catalog) -> None:
    """So the federation service sees it, though such a view is `running` to the catalog all the
    while.
    """
    kinds: tuple[Any, ...] = ("retry", "stop", "drop")
    for number, on_error in enumerate(kinds):
        catalog.put(View(900 + number, "power", on_error, "SELECT 1", 1, 2, on_error=on_error))
        for _ in range(2):
            apply(catalog, changes.set_view_status(catalog, "power", on_error, "paused"))
            apply(catalog, changes.set_view_status(catalog, "power", on_error, "running"))
        view = catalog.view("power", on_error)
        assert view is not None and (view.status, view.resumed) == (
            "running",
            2 if on_error == "stop" else 0,
        )


def test_a_view_of_an_older_build_is_tried_again_for_ever() -> None:
    record = entries.read(
        entries.to_value(View(900, "power", "v", "SELECT 1", 1, 2, on_error="drop", resumed=3), 1)
    )
    body = json.loads(record.body)
    assert entries.from_record(record) == View(
        900, "power", "v", "SELECT 1", 1, 2, on_error="drop", resumed=3
    )
    del body["on_error"], body["resumed"]
    assert entries.from_record(dataclasses.replace(record, body=json.dumps(body))) == View(
        900, "power", "v", "SELECT 1", 1, 2
    )


def test_snodes_and_what_needs_one(catalog: Catalog, new_id: Callable[[], int]) -> None:
    apply(catalog, changes.create_database(catalog, new_id, "several", replica=3))
    assert catalog.database("several") == dataclasses.replace(
        catalog.database("several") or Database(0, ""), replica=3
    )
    power = catalog.database("power")
    assert power is not None
    catalog.put(dataclasses.replace(power, replica=2))
    stream = plan(catalog, 960, "kept", "meters", "highs")
    refused("E_NO_SNODE", lambda: changes.create_stream(catalog, stream, created=1))
    apply(catalog, changes.create_snode(catalog, new_id, 1, created=5))
    assert [(s.dnode, s.name, s.created) for s in catalog.snodes()] == [(1, "snode1", 5)]
    refused("E_SNODE_EXISTS", lambda: changes.create_snode(catalog, new_id, 1, created=5))
    assert changes.create_stream(catalog, stream, created=1).puts
    apply(catalog, changes.drop_snode(catalog, 1))
    assert catalog.snodes() == [] and catalog.snode(1) is None
    refused("E_NO_SNODE", lambda: changes.drop_snode(catalog, 1))
