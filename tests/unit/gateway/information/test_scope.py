"""Which part of a list a query can have rows of."""

from __future__ import annotations

import pytest

from gateway.information.scope import EVERYTHING, ListScope, is_own, scope_of
from penstock.sql import parse_one
from penstock.sql.statements import Query
from penstock.types import ColumnType

VARCHAR = ColumnType("VARCHAR", 8)
TAGS = "SELECT * FROM information_schema.ins_tags"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (TAGS, EVERYTHING),
        (f"{TAGS} WHERE db_name = 'd'", ListScope("d")),
        (
            f"{TAGS} t WHERE t.db_name = 'd' AND ('c' = TABLE_NAME)",
            ListScope("d", None, frozenset({"c"})),
        ),
        (
            f"{TAGS} WHERE db_name = 'd' AND stable_name = 'm' AND tag_name = 'x'",
            ListScope("d", "m"),
        ),
        (f"{TAGS} WHERE `type` = 'NORMAL_TABLE'", ListScope(kind="NORMAL_TABLE")),
        (
            f"{TAGS} WHERE table_name IN ('a', 'b') AND db_name = 'd'",
            ListScope("d", None, frozenset({"a", "b"})),
        ),
        (f"{TAGS} WHERE table_name NOT IN ('a', 'b')", EVERYTHING),
        (f"{TAGS} WHERE table_name > 'a'", ListScope(above="a")),
        (f"{TAGS} WHERE db_name = 'd' OR table_name = 'c'", EVERYTHING),
        (f"{TAGS} WHERE NOT db_name = 'd'", EVERYTHING),
        (f"{TAGS} WHERE db_name = stable_name AND table_name < 'c'", EVERYTHING),
        (f"{TAGS} WHERE table_name = 5", EVERYTHING),
        (f"{TAGS} WHERE db_name = 'd' UNION {TAGS}", EVERYTHING),
        (f"SELECT * FROM ({TAGS}) WHERE db_name = 'd'", EVERYTHING),
        (
            f"{TAGS} WHERE db_name = (SELECT max(db_name) FROM information_schema.ins_tables)",
            EVERYTHING,
        ),
    ],
)
def test_only_what_must_hold_for_every_row_narrows(text: str, wanted: ListScope) -> None:
    statement = parse_one(text)
    assert isinstance(statement, Query)
    assert scope_of(statement.query) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"{TAGS} LIMIT 7", ListScope(most=7)),
        (
            f"{TAGS} WHERE db_name = 'd' AND stable_name = 'm' LIMIT 7 OFFSET 20",
            ListScope("d", "m", most=27),
        ),
        (
            "SELECT table_name AS n, 1 FROM information_schema.ins_tables LIMIT 5, 2",
            ListScope(most=7),
        ),
        (
            f"{TAGS} WHERE table_name > 'c' ORDER BY table_name LIMIT 7",
            ListScope(above="c", most=7, by_name=True),
        ),
        # other conditions and clauses choose among more rows
        (f"{TAGS} WHERE db_name = 'd' AND tag_name = 'x' LIMIT 7", ListScope("d")),
        (f"{TAGS} WHERE db_name = 'd' AND db_name = 'e' LIMIT 7", ListScope("d")),
        (f"{TAGS} WHERE table_name LIKE 'c%' LIMIT 7", EVERYTHING),
        (f"{TAGS} ORDER BY table_name DESC LIMIT 7", EVERYTHING),
        (f"{TAGS} ORDER BY table_name, tag_name LIMIT 7", EVERYTHING),
        ("SELECT tag_name AS table_name FROM ins_tags ORDER BY table_name LIMIT 7", EVERYTHING),
        ("SELECT DISTINCT db_name FROM information_schema.ins_tags LIMIT 7", EVERYTHING),
        ("SELECT count(*) FROM information_schema.ins_tags LIMIT 7", EVERYTHING),
        ("SELECT row_number() OVER () FROM information_schema.ins_tags LIMIT 7", EVERYTHING),
        ("SELECT db_name FROM information_schema.ins_tags GROUP BY 1 LIMIT 7", EVERYTHING),
    ],
)
def test_a_limit_is_of_the_list_where_nothing_else_chooses(text: str, wanted: ListScope) -> None:
    statement = parse_one(text)
    assert isinstance(statement, Query)
    assert scope_of(statement.query) == wanted


SHOWN = (("table_name", VARCHAR), ("db_name", VARCHAR), ("type", VARCHAR))
ROWS = [
    ("c", "d", "CHILD_TABLE"),
    ("a", "D", "CHILD_TABLE"),
    ("b", "d", "NORMAL_TABLE"),
    ("a", "d", "CHILD_TABLE"),
    ("d", "d", "CHILD_TABLE"),
]


@pytest.mark.parametrize(
    ("scope", "names", "read"),
    [
        (ListScope(), "cabad", 5),
        (ListScope("d"), "cabad", 5),
        (ListScope("d", most=2), "cb", 3),
        (ListScope("d", kind="CHILD_TABLE", most=2), "ca", 4),
        (ListScope("d", tables=frozenset("ab"), most=9), "ba", 5),
        (ListScope(above="b", most=1), "c", 1),
        (ListScope("d", above="a", most=2, by_name=True), "bc", 5),
        (ListScope(most=0), "", 0),
    ],
)
def test_a_list_is_read_no_further_than_the_query_needs(
    scope: ListScope, names: str, read: int
) -> None:
    rows = iter(ROWS)
    assert "".join(row[0] for row in scope.cut(SHOWN, rows)) == names
    assert len(ROWS) - len(list(rows)) == read


def test_the_database_of_lists_is_known_in_any_case() -> None:
    assert is_own("Information_Schema")
    assert not is_own("d") and not is_own(None)
