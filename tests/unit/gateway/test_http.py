from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gateway import http
from penstock import errors
from penstock.errors import AuthError, CatalogError, OverloadError, PenstockError, SqlSyntaxError

ROOT = Path(__file__).parents[3]
#: codes that only SqlErrors carry come from these; they are 400 whatever they are called
SQL_ONLY = (
    "penstock/sql/",
    "penstock/windows/",
    "penstock/errors.py",
    "gateway/insert.py",
    "gateway/deleting.py",
)


def used_codes() -> dict[str, str]:
    """Every error code that the gateway or what it calls may raise as something other than an
    SqlError, and where.
    """
    found: dict[str, str] = {}
    for path in [
        *ROOT.glob("gateway/*.py"),
        *ROOT.glob("penstock/*.py"),
        *ROOT.glob("penstock/catalog/**/*.py"),
    ]:
        place = str(path.relative_to(ROOT))
        if place.startswith(SQL_ONLY) or place == "gateway/http.py":
            continue
        text = path.read_text(encoding="utf-8")
        # statement.error(…) and SqlSemanticError(…) make SqlErrors
        text = re.sub(
            r"(?:statement\.error|s\.error|SqlSemanticError|SqlSyntaxError)\((?:[^()]|\([^()]*\))*\)",
            "",
            text,
        )
        for code in re.findall(r'(?:code\s*=\s*|refuse\(\s*)"(E_[A-Z_]+)"', text):
            found.setdefault(code, place)
    return found


def test_every_code_has_a_status() -> None:
    unmapped = {code: place for code, place in used_codes().items() if code not in http.STATUS}
    assert not unmapped


def test_every_class_of_error_has_a_status() -> None:
    kinds = [
        k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, PenstockError)
    ]
    assert len(kinds) > 10
    assert not {
        k.code for k in kinds if k.code not in http.STATUS and not issubclass(k, errors.SqlError)
    }


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CatalogError("x", code="E_NO_TABLE"), 404),
        (SqlSyntaxError("x"), 400),
        (SqlSyntaxError("x", code="E_ANYTHING"), 400),
        (OverloadError("x"), 429),
        (AuthError("x"), 401),
    ],
)
def test_status(error: PenstockError, status: int) -> None:
    response = http.error_response(error)
    assert response.status == status
    assert json.loads(response.body or b"")["error"]["message"] == "x"  # type: ignore[arg-type]


def test_tdengines_form() -> None:
    response = http.tdengine_error(SqlSyntaxError("found x", line=1, column=3, hint="write y"))
    body = json.loads(response.body or b"")  # type: ignore[arg-type]
    assert (response.status, body["code"], body["desc"]) == (
        200,
        0x2600,
        "found x (line 1, column 3); write y",
    )
    assert http.tdengine_error(AuthError("who?")).status == 401
    full = http.tdengine_error(OverloadError("full"))
    assert (full.status, full.headers["Retry-After"]) == (429, "1")
