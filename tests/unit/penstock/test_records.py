from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from penstock.bus import Batch
from penstock.errors import SchemaError
from penstock.records import (
    CatalogRecord,
    ControlRecord,
    DeadLetter,
    EventsRecord,
    ExchangeRecord,
    Manifest,
    decode,
    encode,
)

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


def test_a_dead_letter_is_about_a_record_and_when_it_came() -> None:
    came = np.array([1_700_000_000_000, -1])  # of the second the broker did not note it
    batch = Batch("in.db", 3, np.array([7, 9]), came, [None, None], [b"a", b"b"])
    assert DeadLetter.of(batch, 0, "store", "E", "why") == DeadLetter(
        "in.db", 3, 7, "store", "E", "why", int(came[0]), value=b"a"
    )
    unknown = DeadLetter.of(batch, 1, "store", "E", "why")
    assert unknown.offset == 9 and abs(unknown.time / 1000 - time.time()) < 60


@pytest.mark.parametrize(
    "value",
    [None, b"", b"\0\0\0\0", b"\0\0\0\0\x02x", b"\0\0\0\0\x01", b"\0\0\0\0\x01\xff\xff", b"{}"],
)
def test_refuses_what_is_none(value: bytes | None) -> None:
    with pytest.raises(SchemaError):
        decode(ControlRecord, value)
