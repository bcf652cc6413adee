from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from gateway import children, rows
from gateway.children import Children
from gateway.row_error import RowError
from penstock.catalog.model import Child, Database, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.errors import BusError
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.unit.gateway.nowhere import NOWHERE
from tests.unit.gateway.test_rows import METERS, NOW

TABLE = Table(
    1, "db", "meters", "stable", "in.db", 4, "ms", (TableVersion(100, METERS.columns, METERS.tags),)
)
OTHER = replace(
    TABLE, id=2, name="other", versions=(TableVersion(101, METERS.columns, METERS.tags),)
)
PLAIN = replace(
    TABLE, id=3, name="plain", kind="plain", versions=(TableVersion(102, METERS.columns),)
)
CATALOG = Catalog(
    [
        Database(9, "db"),
        TABLE,
        OTHER,
        PLAIN,
        Child(4, "db", 1, "D1", ("berlin",)),
        Child(5, "db", 2, "o1", ("x",)),
        Child(6, "db", 1, "d2"),
    ]
)


def test_the_tables_own_spelling_and_tags_win() -> None:
    frame = rows.from_objects(
        METERS,
        [
            {"tbname": n, "ts": NOW, "site": "paris", "v": 1.0, "n": i, "s": ""}
            for i, n in enumerate(("d1", "D1", "d2"))
        ],
    )
    settled = Children(NOWHERE).settle(METERS, frame, CATALOG)
    assert settled.columns == frame.columns
    assert settled["tbname"].to_list() == ["D1", "D1", "d2"]
    assert settled["site"].to_list() == ["berlin", "berlin", None]
    assert settled["n"].to_list() == [0, 1, 2]


@pytest.mark.parametrize("name", ["o1", "plain", "meters"])
def test_names_of_other_tables_are_refused(name: str) -> None:
    frame = rows.from_objects(METERS, [{"tbname": name, "ts": NOW}])
    with pytest.raises(RowError) as caught:
        Children(NOWHERE).settle(METERS, frame, CATALOG)
    assert caught.value.column == "tbname"


def test_new_children_need_redis() -> None:
    with pytest.raises(BusError) as caught:
        Children(NOWHERE).settle(
            METERS, rows.from_objects(METERS, [{"tbname": "new", "ts": NOW}]), CATALOG
        )
    assert caught.value.code == "E_REDIS_DOWN"


def test_tags_as_json_and_back() -> None:
    kinds = ("INT", "BOOL", "VARBINARY", "NCHAR")
    layout = replace(
        METERS,
        tags=(
            *(Column(k, ColumnType(k, 9)) for k in kinds),
            Column("d", ColumnType("DECIMAL", 0, 9, 2)),
        ),
    )
    text = children.to_json((1, True, b"\x00\xff", "ä", Decimal("1.50")), layout)
    assert children.from_json(text, layout) == (1, True, "00ff", "ä", "1.50")
    assert children.from_json("{}", layout) == (None,) * 5


def test_tags_keep_their_values_under_another_name() -> None:
    held = children.to_json(("berlin",), METERS)
    layout = replace(
        METERS,
        tags=(Column("town", METERS.tags[0].type), METERS.tags[0]),
        stored={"town": ("site",), "site": ("site#102",)},
    )
    assert children.from_json(held, layout) == ("berlin", None)
    assert children.from_json(children.to_json(("rome", "x"), layout), layout) == ("rome", "x")
