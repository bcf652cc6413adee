"""Entries of the catalog by name, in any case."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.catalog.model import (
    Child,
    CompatibilityLevel,
    Database,
    External,
    Role,
    Snode,
    Table,
    User,
    View,
)
from penstock.catalog.name_index import NameIndex
from penstock.types import ColumnType
from penstock.udf import UserFunction

INT = ColumnType("INT")
ENTRIES: list[tuple[Any, str, object]] = [
    (Database(1, "Power"), "databases", "power"),
    (Table(2, "Power", "Meters", "plain", "in", 1, "ms", ()), "tables", ("power", "meters")),
    (External(3, "Power", "Far", "penstock", (), "d", "t", ()), "externals", ("power", "far")),
    (View(4, "Power", "V", "SELECT 1", 1, 2), "views", ("power", "v")),
    (User(5, "Ann", "hash"), "users", "ann"),
    (Role(6, "Readers"), "roles", "readers"),
    (UserFunction(7, "Half", (INT,), INT, "c"), "functions", "half"),
    (Snode(8, 3), "snodes", 3),
    (CompatibilityLevel(9, 2, "FULL"), "levels", 2),
]


@pytest.mark.parametrize(
    ("entry", "dictionary", "key"), ENTRIES, ids=[type(e[0]).__name__ for e in ENTRIES]
)
def test_an_entry_has_its_place(entry: Any, dictionary: str, key: object) -> None:
    index = NameIndex()
    held, found = index.slot(entry)
    assert held is getattr(index, dictionary)
    assert found == key


def test_child_tables_have_a_dict_for_each_database() -> None:
    index = NameIndex()
    held, key = index.slot(Child(9, "Power", 2, "D1"))
    held[key] = "x"
    assert index.children == {"power": {"d1": "x"}}
    assert index.slot(Child(10, "POWER", 2, "d2"))[0] is held
    assert index.slot(Child(11, "other", 2, "d2"))[0] is not held


def test_a_name_in_lower_case_is_kept_as_it_is() -> None:
    """There may be millions of child tables."""
    name = "".join(["d", "1"])
    _, key = NameIndex().slot(Child(9, "power", 2, name))
    assert key is name
