from __future__ import annotations

import pytest

from gateway.forward import column_from_json, column_to_json, internal_token
from penstock.sql.plan import Column
from penstock.types import ColumnType


@pytest.mark.parametrize(
    "kind", [ColumnType("INT UNSIGNED"), ColumnType("VARCHAR", 64), ColumnType("DECIMAL", 0, 10, 2)]
)
def test_columns_travel(kind: ColumnType) -> None:
    column = Column("ä b", kind)
    assert column_from_json(column_to_json(column)) == column


def test_the_token_is_the_passwords() -> None:
    assert internal_token("a") == internal_token("a") != internal_token("b")
    assert "a" * 8 not in internal_token("a" * 8)
