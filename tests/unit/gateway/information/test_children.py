"""Child tables and their tags, made by CREATE TABLE or by rows."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from gateway.describing import show_create
from gateway.information.children import ChildLists
from gateway.information.scope import ListScope
from penstock import names
from penstock.catalog.model import Child, Grant, TableVersion, User
from penstock.errors import BusError, PenstockError
from penstock.sql import parse_one
from penstock.sql.plan import Column
from penstock.sql.statements import CreateChildren, ShowCreate, ShowTableTags, ShowTags
from penstock.types import ColumnType
from tests.unit.gateway.information.test_lists import COLUMNS, STABLE, Here, rows

TAGS = (
    Column("site", ColumnType("VARCHAR", 8)),
    Column("price", ColumnType("DECIMAL", precision=9, scale=2)),
    Column("since", ColumnType("TIMESTAMP")),
    Column("key", ColumnType("VARBINARY", 4)),
    Column("live", ColumnType("BOOL")),
)
WIDE = dataclasses.replace(STABLE, id=20, name="wide", versions=(TableVersion(120, COLUMNS, TAGS),))
MADE = Child(21, "d", 20, "made", ("it's", "1.50", 1000, "0aff"))
BORN = '{"site": "y", "price": "2.25", "since": 2000, "key": "01", "live": false}'


@pytest.fixture
def here() -> Here:
    found = Here(WIDE, MADE)
    found.redis.hset(names.children(7), mapping={"born": '{"site": "y"}', "c1": '{"site": "old"}'})
    found.redis.hset(names.children(20), "born2", BORN)
    return found


def show_tags(here: Here, text: str, user: str = "root") -> list[tuple[Any, ...]]:
    statement = parse_one(text)
    lists = ChildLists(here.as_user(user))
    if isinstance(statement, ShowTags):
        return rows(
            lists.tags_of(statement, "d"), "table_name", "tag_name", "tag_type", "tag_value"
        )
    assert isinstance(statement, ShowTableTags)
    return rows(lists.table_tags(statement, "d"))


def test_tags_of_children_that_rows_made_are_listed(here: Here) -> None:
    found = rows(
        ChildLists(here.viewer).tags(), "table_name", "stable_name", "tag_name", "tag_value"
    )
    assert [f for f in found if f[1] == "m"] == [
        ("c1", "m", "site", "x"),
        ("born", "m", "site", "y"),
    ]
    assert [f[2:] for f in found if f[0] == "born2"] == [
        ("site", "y"),
        ("price", "2.25"),
        ("since", "2000"),
        ("key", "\\x01"),
        ("live", "false"),
    ]
    assert ("made", "wide", "live", None) in found


@pytest.mark.parametrize(
    ("scope", "wanted"),
    [
        (ListScope("d", "m"), {"c1", "born"}),
        (ListScope("d", "m", frozenset({"born"})), {"born"}),
        (ListScope(None, None, frozenset({"made"})), {"made"}),
        (ListScope("d", "wide", frozenset({"born"})), set()),
        (ListScope("D", "m", frozenset({"c1"})), {"c1"}),
        (ListScope("none"), set()),
    ],
)
def test_no_more_is_read_than_the_scope_has(here: Here, scope: ListScope, wanted: set[str]) -> None:
    assert {t for (t,) in rows(ChildLists(here.viewer).tags(scope), "table_name")} == wanted


def test_one_child_is_looked_up_and_not_searched_for(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(here.redis, "hscan_iter", None)
    lists = ChildLists(here.viewer)
    assert lists.tags(ListScope("d", "m", frozenset({"born"}))).num_rows == 1
    assert lists.find("d", "born") is not None and lists.find("d", "nobody") is None


def test_tags_of_one_child(here: Here) -> None:
    assert show_tags(here, "SHOW TAGS FROM c1") == [("c1", "site", "VARCHAR(8)", "x")]
    assert show_tags(here, "SHOW TAGS FROM born") == [("born", "site", "VARCHAR(8)", "y")]
    assert show_tags(here, "SHOW TAGS FROM made")[2:4] == [
        ("made", "since", "TIMESTAMP", "1000"),
        ("made", "key", "VARBINARY(4)", "\\x0aff"),
    ]


def test_a_supertable_has_no_values_of_tags(here: Here) -> None:
    assert show_tags(here, "SHOW TAGS FROM m") == []


def test_one_child_is_a_row_with_its_tags_as_columns(here: Here) -> None:
    assert show_tags(here, "SHOW TABLE TAGS FROM born") == [("born", "y")]
    assert show_tags(here, "SHOW TABLE TAGS live FROM made") == [(None,)]


def test_children_are_rows_and_tags_are_columns(here: Here) -> None:
    assert show_tags(here, "SHOW TABLE TAGS FROM m") == [("c1", "x"), ("born", "y")]
    assert show_tags(here, "SHOW TABLE TAGS SITE FROM m") == [("x",), ("y",)]
    assert show_tags(here, "SHOW TABLE TAGS live, tbname FROM wide") == [
        (None, "made"),
        (False, "born2"),
    ]
    (made, born) = show_tags(here, "SHOW TABLE TAGS TBNAME, _tags FROM wide")
    assert made[:3] == ("made", "it's", Decimal("1.50")) and made[4:] == (b"\n\xff", None)
    assert born[2] == Decimal("2.25") and born[3].timestamp() == 2 and born[4] == b"\x01"


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("SHOW TAGS FROM nobody", "E_NO_TABLE", ""),
        ("SHOW TAGS FROM p", "E_NOT_A_STABLE", ""),
        ("SHOW TABLE TAGS FROM nobody", "E_NO_TABLE", ""),
        ("SHOW TABLE TAGS FROM p", "E_NOT_A_STABLE", ""),
        ("SHOW TABLE TAGS sight FROM m", "E_NO_COLUMN", "its tags are site"),
    ],
)
def test_a_table_of_another_kind_is_refused_at_its_name(
    here: Here, text: str, code: str, hint: str
) -> None:
    with pytest.raises(PenstockError) as caught:
        show_tags(here, text)
    error: Any = caught.value
    assert error.code == code and error.hint.startswith(hint)
    assert error.column == (17 if "sight" in text else text.rindex(" ") + 2)


def test_children_of_tables_that_a_user_may_not_see_are_not_there(here: Here) -> None:
    here.catalog.put(User(900, "ann", "", grants=(Grant("READ", 7),)))
    assert {t for (t,) in rows(ChildLists(here.as_user("ann")).tags(), "table_name")} == {
        "c1",
        "born",
    }
    for text in ("SHOW TAGS FROM made", "SHOW TAGS FROM born2", "SHOW TABLE TAGS FROM wide"):
        with pytest.raises(PenstockError) as caught:
            show_tags(here, text, "ann")
        assert caught.value.code == "E_NO_TABLE"


def test_any_child_can_be_made_again_by_its_text(here: Here) -> None:
    lists = ChildLists(here.viewer)
    shown = {}
    for name in ("made", "born2", "born", "c1"):
        statement = parse_one(f"SHOW CREATE TABLE {name}")
        assert isinstance(statement, ShowCreate)
        ((_, shown[name]),) = rows(show_create(here.catalog, statement, "d", lists.find))
        (child,) = [parse_one(shown[name])]
        assert isinstance(child, CreateChildren)
    assert shown["born"].endswith("USING `m` TAGS ('y')")
    assert shown["born2"].endswith("TAGS ('y', '2.25', 2000, '\\x01', FALSE)")
    assert shown["made"].endswith("TAGS ('it\\'s', '1.50', 1000, '\\x0aff', NULL)")


def test_a_child_that_there_is_not_has_no_text(here: Here) -> None:
    statement = parse_one("SHOW CREATE TABLE nobody")
    assert isinstance(statement, ShowCreate)
    with pytest.raises(PenstockError) as caught:
        show_create(here.catalog, statement, "d", ChildLists(here.viewer).find)
    assert caught.value.code == "E_NO_TABLE"


def test_redis_that_is_away_is_said(here: Here) -> None:
    here.redis.down = True
    lists = ChildLists(here.viewer)
    with pytest.raises(BusError):
        lists.tags()
    with pytest.raises(BusError):
        lists.find("d", "born")


def test_many_children_become_one_table(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.answers._ROWS_AT_A_TIME", 3)
    for i in range(10):
        here.redis.hset(names.children(7), f"n{i}", '{"site": "z"}')
    found = ChildLists(here.viewer).tags(ListScope("d", "m"))
    assert isinstance(found, pa.Table) and found.num_rows == 12
