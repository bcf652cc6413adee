"""Child tables with their tags, from the catalog and from what rows made known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import names
from penstock.catalog.child_tags import Tagged, held_tags, tagged_children
from penstock.catalog.model import Child, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.unit.services.memory_redis import MemoryRedis

COLUMNS = (Column("ts", ColumnType("TIMESTAMP")),)
TAGS = (Column("g", ColumnType("INT")), Column("h", ColumnType("DECIMAL", precision=5, scale=2)))
#: `h` is held under an older name
STABLE = Table(
    8,
    "d",
    "meters",
    "stable",
    "in.d",
    1,
    "ms",
    (TableVersion(108, COLUMNS, TAGS, stored=(("h", "_1_h"),)),),
)


@pytest.fixture
def client() -> Any:
    made = MemoryRedis()
    held = {"b": {"g": 2, "_1_h": "1.50"}, "A": {"g": 9}, "c": {}}
    for name, tags in held.items():
        made.hset(names.children(STABLE.id), name, json.dumps(tags))
    return made


CATALOG = Catalog((STABLE, Child(20, "d", 8, "a", (1,)), Child(21, "d", 9, "other", (7,))))


def _tagged(client: Any, only: str | None) -> Iterator[Tagged]:
    return tagged_children(CATALOG, client, STABLE, None if only is None else (only,))


def listed(client: Any, only: str | None = None) -> list[Tagged]:
    return [(name, tuple(tags)) for name, tags in _tagged(client, only)]


def test_the_catalog_goes_before_what_rows_made(client: Any) -> None:
    assert listed(client) == [("a", (1,)), ("b", (2, "1.50")), ("c", (None, None))]


@pytest.mark.parametrize(
    ("only", "found"),
    [
        ("a", [("a", (1,))]),
        ("b", [("b", (2, "1.50"))]),
        # the catalog spells it otherwise
        ("A", []),
        ("other", []),
        ("nowhere", []),
    ],
)
def test_one_child_table(client: Any, only: str, found: list[Tagged]) -> None:
    assert listed(client, only) == found


def test_only_supertables_have_child_tables_that_rows_make(client: Any) -> None:
    plain = Table(8, "d", "p", "plain", "in.d", 1, "ms", (TableVersion(108, COLUMNS),))
    assert held_tags(client, plain, "b") is None
    assert held_tags(client, STABLE, "b") == (2, "1.50")
