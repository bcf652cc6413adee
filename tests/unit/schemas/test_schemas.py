"""Every built-in schema loads, parses, and has an id of its own below the tables'."""

from __future__ import annotations

from importlib import resources

import fastavro

import schemas
from penstock.names import CONTROL_SCHEMA_ID, FIRST_TABLE_SCHEMA_ID


def test_every_file_has_an_id_and_parses() -> None:
    files = {
        p.name.removesuffix(".avsc")
        for p in resources.files("schemas").iterdir()
        if p.name.endswith(".avsc")
    }
    assert files == set(schemas.BUILT_IN_IDS)
    for name in files:
        fastavro.parse_schema(schemas.load(name))


def test_ids_are_unique_and_leave_room_for_tables() -> None:
    ids = list(schemas.BUILT_IN_IDS.values())
    assert len(set(ids)) == len(ids)
    assert max(ids) < FIRST_TABLE_SCHEMA_ID
    assert schemas.BUILT_IN_IDS["control"] == CONTROL_SCHEMA_ID


def test_a_loaded_schema_is_a_copy() -> None:
    schemas.load("control")["fields"].clear()
    assert schemas.load("control")["fields"]
