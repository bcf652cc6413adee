"""Session options, as bytes of the protocol's own messages."""

from __future__ import annotations

import pytest

from services.store.flight_session import CLOSE, GET, SET, answer


def option(name: bytes, value: bytes) -> bytes:
    """One entry of a `SetSessionOptionsRequest`; *value* is a `SessionOptionValue`."""
    entry = b"\n" + bytes([len(name)]) + name + b"\x12" + bytes([len(value)]) + value
    return b"\n" + bytes([len(entry)]) + entry


def text(value: bytes) -> bytes:
    return b"\n" + bytes([len(value)]) + value


CATALOG = option(b"catalog", text(b"penstock"))
PLANT = option(b"schema", text(b"plant"))
#: of a `SetSessionOptionsResult`
BAD_NAME, BAD_VALUE = b"\x08\x01", b"\x08\x02"


def test_a_session_is_what_the_header_says() -> None:
    assert answer(GET, b"", "plant") == CATALOG + PLANT
    assert answer(GET, b"", "") == CATALOG
    assert answer(CLOSE, b"", "") == b"\x08\x01"


@pytest.mark.parametrize(
    ("body", "database", "wrong"),
    [
        (b"", "", b""),
        (CATALOG, "", b""),
        (CATALOG + PLANT, "plant", b""),
        (PLANT, "", option(b"schema", BAD_VALUE)),
        (PLANT, "other", option(b"schema", BAD_VALUE)),
        (option(b"catalog", text(b"plant")), "plant", option(b"catalog", BAD_VALUE)),
        (option(b"catalog", b"\x10\x01"), "", option(b"catalog", BAD_VALUE)),
        (option(b"speed", text(b"x")) + CATALOG, "", option(b"speed", BAD_NAME)),
    ],
)
def test_options_can_be_set_to_what_they_are(body: bytes, database: str, wrong: bytes) -> None:
    assert answer(SET, body, database) == wrong


@pytest.mark.parametrize("body", [b"\n\x05", b"\xff" * 20, b"\n\x04\n\x02\xff\xfe", b"\x0d1234"])
def test_bytes_that_are_no_options_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        answer(SET, body, "")
