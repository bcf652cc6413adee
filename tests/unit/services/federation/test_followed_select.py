from __future__ import annotations

import dataclasses

import pytest

from penstock.catalog.model import Table, TableVersion
from penstock.errors import CatalogError, SqlError
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.federation.followed_select import FollowedSelect
from tests.unit.services.federation.kit import COLUMNS, PLAIN


class Followed:
    """A SELECT over a table whose definition a test changes."""

    def __init__(self, sql: str, positions: bool = False) -> None:
        self.table: Table | None = PLAIN
        self.select = FollowedSelect(
            sql, lambda: self.table, None, "UTC", 0, partitions=1, positions=positions
        )

    def columns(self) -> list[str]:
        return [c.name for c in self.select.columns]


def test_a_new_column_is_followed_once():
    followed = Followed("SELECT * FROM d.plain")
    assert not followed.select.refresh()
    added = (*COLUMNS, Column("w", ColumnType("INT")))
    followed.table = dataclasses.replace(
        PLAIN, versions=(*PLAIN.versions, TableVersion(207, added))
    )
    assert followed.select.refresh()
    assert not followed.select.refresh()
    assert followed.columns() == ["_op", "tbname", "_time", "ts", "v", "w"]


def test_positions_stand_before_what_is_selected():
    assert Followed("SELECT v FROM d.plain", positions=True).columns() == [
        "_op",
        "tbname",
        "_time",
        "_offset",
        "_row",
        "v",
    ]


def test_another_number_of_partitions_is_another_definition():
    followed = Followed("SELECT v FROM d.plain")
    followed.select.partitions = 4
    assert followed.select.refresh()
    assert followed.select.source.partitions == 4


def test_a_dropped_table_ends_it():
    followed = Followed("SELECT v FROM d.plain")
    followed.table = None
    with pytest.raises(CatalogError, match="dropped"):
        followed.select.refresh()


def test_a_select_that_does_not_fit_is_refused():
    with pytest.raises(SqlError):
        Followed("SELECT nothing FROM d.plain")
