"""Every DDL text and every CREATE STREAM of the conformance cases is in the grammar, and its
canonical form means the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import SqlSyntaxError
from penstock.sql import parse_one, render
from penstock.sql.statements import CreateStream

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "conformance" / "stream-cases.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_the_texts_of_a_case_are_read(case: dict[str, Any]) -> None:
    for text in case["tables"]:
        statement = parse_one(text)
        assert parse_one(render(statement)) == statement
    if case.get("expect_error") == "E_OPTION_TWICE":
        with pytest.raises(SqlSyntaxError) as caught:
            parse_one(case["stream"])
        assert caught.value.code == "E_OPTION_TWICE"
        return
    stream = parse_one(case["stream"])
    assert isinstance(stream, CreateStream)
    assert parse_one(render(stream)) == stream
