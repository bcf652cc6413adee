"""What pq:// names mean: streams, views and databases, by name or serial."""

from __future__ import annotations

import pytest

from penstock.catalog.model import Database, Table, TableVersion, View
from penstock.catalog.view import Catalog
from penstock.errors import PenstockError
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.federation.scope import NamedQuery

_COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT")))


def _catalog(status: str = "running") -> Catalog:
    table = Table(11, "d", "t", "plain", "in.d", 1, "ms", (TableVersion(100, _COLUMNS),))
    view = View(12, "d", "up", "SELECT * FROM d.s", 10, 11, status=status, begin=("x",))  # type: ignore[arg-type]
    return Catalog([Database(5, "d"), table, view, Database(6, "other")])


def _find(database: str, name: str) -> tuple[Table, None]:
    found = _catalog().table(database, name)
    if found is None:
        raise PenstockError("none", code="E_NO_TABLE")
    return found, None


@pytest.mark.parametrize(
    "scope",
    [
        NamedQuery("up", None),
        NamedQuery("d.up", None),
        NamedQuery("UP", None),
        NamedQuery(None, 12),
        NamedQuery("d", None),
        NamedQuery(None, 5),
    ],
)
def test_one_table_by_any_of_its_names(scope: NamedQuery) -> None:
    assert scope.table(_catalog(), "t", _find)[0].id == 11


@pytest.mark.parametrize(
    ("scope", "table", "code"),
    [
        (NamedQuery("nobody", None), "t", "E_NO_QUERY"),
        (NamedQuery(None, 99), "t", "E_NO_QUERY"),
        (NamedQuery(None, 11), "t", "E_NO_QUERY"),
        (NamedQuery("up", None), "s", "E_NO_TABLE"),
        (NamedQuery("d", None), "other.t", "E_NO_TABLE"),
        (NamedQuery("d", None), "x", "E_NO_TABLE"),
    ],
)
def test_what_is_not_there(scope: NamedQuery, table: str, code: str) -> None:
    with pytest.raises(PenstockError) as wrong:
        scope.table(_catalog(), table, _find)
    assert wrong.value.code == code


def test_a_paused_view_does_not_run() -> None:
    with pytest.raises(PenstockError) as wrong:
        NamedQuery("up", None).check(_catalog("paused"))
    assert wrong.value.code == "E_QUERY_NOT_RUNNING" and '"up"' in wrong.value.message
