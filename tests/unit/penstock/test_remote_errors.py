from __future__ import annotations

import pytest

from penstock.errors import (
    AuthError,
    CatalogError,
    OverloadError,
    PenstockError,
    RemoteError,
    SchemaError,
    SqlSemanticError,
    SqlSyntaxError,
)
from penstock.remote_errors import error_of


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"code": "E_ROW", "message": "m"}, 400, SchemaError),
        ({"code": "E_OVERLOAD", "message": "m"}, 429, OverloadError),
        ({"code": "E_AUTH", "message": "m"}, 401, AuthError),
        ({"code": "E_NO_TABLE", "message": "m"}, 404, CatalogError),
        ({"code": "E_SYNTAX", "message": "m", "line": 1, "snippet": "x"}, 400, SqlSyntaxError),
        ({"code": "E_IN_USE", "message": "m", "line": 1, "snippet": "x"}, 400, SqlSemanticError),
        ({"code": "E_IN_USE", "message": "m"}, 409, CatalogError),
        ({"code": "E_FORBIDDEN", "message": "m"}, 409, AuthError),
        ({"code": "E_WHATEVER", "message": "m"}, 502, RemoteError),
    ],
)
def test_errors(body: dict[str, object], status: int, kind: type[PenstockError]) -> None:
    error = error_of(body, status)
    assert type(error) is kind
    assert (error.code, error.message) == (body["code"], "m")


def test_an_error_is_the_same_after_its_way() -> None:
    error = SqlSyntaxError("m", hint="h", line=1, column=2, snippet="s")
    back = error_of(error.to_dict())
    assert isinstance(back, SqlSyntaxError)
    assert back.to_dict() == error.to_dict()
