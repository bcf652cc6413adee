"""Declared types in answers of queries over lists."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.answers import to_tdengine
from gateway.information import columns
from penstock.sql import parse_one
from penstock.sql.statements import Query
from tests.unit.gateway.test_information import INFORMATION

STABLES = "information_schema.ins_stables"
WHOLE = [[name, kind.kind, kind.bytes()] for name, kind in columns.STABLES]


def meta(text: str) -> Any:
    statement = parse_one(text)
    assert isinstance(statement, Query)
    answer = INFORMATION.query(statement.query)
    assert answer is not None
    return json.loads(to_tdengine(answer))["column_meta"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            f"SELECT stable_name, columns AS n FROM {STABLES}",
            [["stable_name", "VARCHAR", 192], ["n", "INT", 4]],
        ),
        (f"SELECT * FROM {STABLES}", WHOLE),
        (f"SELECT s.* FROM {STABLES} s", WHOLE),
        (f"SELECT *, DB_NAME FROM {STABLES}", [*WHOLE, ["db_name", "VARCHAR", 192]]),
        (
            f"SELECT upper(stable_name) AS stable_name FROM {STABLES}",
            [["stable_name", "VARCHAR", 1]],
        ),
        (f"SELECT stable_name FROM {STABLES} UNION SELECT 'x'", [["stable_name", "VARCHAR", 1]]),
        (f"SELECT stable_name FROM (SELECT * FROM {STABLES})", [["stable_name", "VARCHAR", 1]]),
        (
            f"SELECT db_name, count(*) AS n FROM {STABLES} GROUP BY db_name",
            [["db_name", "VARCHAR", 192], ["n", "BIGINT", 8]],
        ),
    ],
)
def test_a_column_taken_as_it_is_has_its_declared_type(text: str, wanted: Any) -> None:
    assert meta(text) == wanted
