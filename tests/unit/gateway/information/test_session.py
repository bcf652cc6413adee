"""Functions of who asks and where, as the clients of the reference ask for them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from gateway.answers import to_tdengine
from gateway.information.session import SPOKEN_VERSION
from penstock.sql import parse_one
from penstock.sql.statements import Query
from tests.unit.gateway.test_information import INFORMATION


def ask(text: str, database: str | None = None, user: str = "ann") -> pa.Table:
    statement = parse_one(text)
    assert isinstance(statement, Query)
    answer = INFORMATION.for_user(user).query(statement.query, database)
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("call", "database", "value"),
    [
        ("database()", "Db", "Db"),
        ("database()", None, None),
        ("user()", None, "ann"),
        ("current_user()", None, "ann"),
        ("server_version()", None, SPOKEN_VERSION),
        ("client_version()", None, SPOKEN_VERSION),
        ("server_status()", None, 1),
    ],
)
def test_a_function_stands_for_its_value(call: str, database: str | None, value: Any) -> None:
    for text in (call, call.upper()):
        assert ask(f"SELECT {text}", database).to_pydict() == {call: [value]}
    assert ask(f"SELECT {call} AS x", database).to_pydict() == {"x": [value]}


def test_values_stand_in_expressions() -> None:
    assert ask("SELECT server_status() + 1 AS n, user() = 'ann' AS mine").to_pylist() == [
        {"n": 2, "mine": True}
    ]
    found = ask(
        "SELECT db_name FROM information_schema.ins_stables WHERE db_name = database()",
        "Db",
        "root",
    )
    assert found.to_pydict() == {"db_name": ["Db"]}


def test_no_database_is_a_text_that_is_missing() -> None:
    assert b'["database()","VARCHAR",1]' in to_tdengine(ask("SELECT database()"))


def test_the_first_numbers_of_the_version_are_the_references() -> None:
    major, minor, *_ = SPOKEN_VERSION.split(".")
    assert (int(major), int(minor)) >= (3, 3)
