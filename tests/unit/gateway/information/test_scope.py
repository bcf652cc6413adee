"""Which part of a list a query can have rows of."""

from __future__ import annotations

import pytest

from gateway.information.scope import EVERYTHING, ListScope, is_own, scope_of
from penstock.sql import parse_one
from penstock.sql.statements import Query

TAGS = "SELECT * FROM information_schema.ins_tags"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (TAGS, EVERYTHING),
        (f"{TAGS} WHERE db_name = 'd'", ListScope("d")),
        (f"{TAGS} t WHERE t.db_name = 'd' AND ('c' = TABLE_NAME)", ListScope("d", None, "c")),
        (
            f"{TAGS} WHERE db_name = 'd' AND stable_name = 'm' AND tag_name = 'x'",
            ListScope("d", "m"),
        ),
        (f"{TAGS} WHERE `type` = 'NORMAL_TABLE'", ListScope(kind="NORMAL_TABLE")),
        (f"{TAGS} WHERE db_name = 'd' OR table_name = 'c'", EVERYTHING),
        (f"{TAGS} WHERE NOT db_name = 'd'", EVERYTHING),
        (f"{TAGS} WHERE db_name = stable_name AND table_name > 'c'", EVERYTHING),
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


def test_the_database_of_lists_is_known_in_any_case() -> None:
    assert is_own("Information_Schema")
    assert not is_own("d") and not is_own(None)
