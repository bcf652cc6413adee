from __future__ import annotations

import pytest

from gateway.ingest import parse_body
from penstock.errors import SchemaError


def test_one_row_several_rows_and_lines() -> None:
    assert parse_body("application/json", b'{"a": 1}') == [{"a": 1}]
    assert parse_body("application/json", b'[{"a": 1}, {"a": 2}]') == [{"a": 1}, {"a": 2}]
    assert parse_body("application/x-ndjson", b'{"a": 1}\r\n\n {"a": 2}\n') == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        ("application/json", b"", "E_BODY"),
        ("application/json", b"5", "E_BODY"),
        ("application/json", b'{"a": Infinity}', "E_BODY"),
        ("application/x-ndjson", b'{"a": 1},{"a": 2}', "E_BODY"),
        ("text/plain", b"x", "E_MEDIA_TYPE"),
    ],
)
def test_what_is_refused(kind: str, body: bytes, code: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_body(kind, body)
    assert caught.value.code == code
