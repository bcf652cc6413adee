from __future__ import annotations

import pytest

from gateway.forward import column_from_json, column_to_json, error_of, internal_token
from penstock.errors import CatalogError, SqlSemanticError, SqlSyntaxError
from penstock.sql.plan import Column
from penstock.types import ColumnType


@pytest.mark.parametrize(
    "kind", [ColumnType("INT UNSIGNED"), ColumnType("VARCHAR", 64), ColumnType("DECIMAL", 0, 10, 2)]
)
def test_columns_travel(kind: ColumnType) -> None:
    column = Column("ä b", kind)
    assert column_from_json(column_to_json(column)) == column


def test_errors_travel() -> None:
    error = SqlSyntaxError("m", hint="h", line=1, column=2, snippet="s")
    back = error_of(error.to_dict())
    assert isinstance(back, SqlSyntaxError)
    assert back.to_dict() == error.to_dict()
    assert isinstance(error_of({"code": "E_IN_USE", "message": "m", "line": 1}), SqlSemanticError)
    assert isinstance(error_of({"code": "E_IN_USE", "message": "m"}), CatalogError)


def test_the_token_is_the_passwords() -> None:
    assert internal_token("a") == internal_token("a") != internal_token("b")
    assert "a" * 8 not in internal_token("a" * 8)
