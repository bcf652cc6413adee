from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import SchemaError
from penstock.records import CatalogRecord, ControlRecord, DeadLetter, EventsRecord, ExchangeRecord, Manifest, decode, encode

RECORDS: list[Any] = [
    ControlRecord("tick", time=5),
    ControlRecord("delete", "trace", 3, 4, ("d1", "d2"), 1, 2, 0, "{}", "p", 7, 1),
    ExchangeRecord(1, "x:1:in.db:0", 3, 9, b"\x00arrow", 2, False),
    EventsRecord(1, "db.s", "s:1:in.db:0", 3, 9, "[]", history=True, trace="t"),
    DeadLetter("in.db", 1, 2, "scan", "E_SCHEMA", "why", 3, 4, b"\xff"),
    Manifest("scan:in.db", 1, 2, "file:/x", {"in.db:0": 7}, ("a", "b")),
    CatalogRecord("table", 100, "t", 2, "{}"),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_comes_back_as_it_was(record: Any) -> None:
    value = encode(record)
    assert value[0] == 0
    assert decode(type(record), value) == record


def test_a_dead_letter_is_cut() -> None:
    letter = DeadLetter("in.db", 1, 2, "scan", "E", "why", 3, value=b"x" * 100_000)
    assert decode(DeadLetter, encode(letter)).value == b"x" * (64 << 10)


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0", b"\0\0\0\0\x02x", b"\0\0\0\0\x01", b"\0\0\0\0\x01\xff\xff", b"{}"])
def test_refuses_what_is_none(value: bytes | None) -> None:
    with pytest.raises(SchemaError):
        decode(ControlRecord, value)
