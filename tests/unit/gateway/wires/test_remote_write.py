"""Prometheus remote write. The bytes are made here, by the description of the format."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from gateway.wires import remote_write
from gateway.wires.points import Point
from penstock.errors import PenstockError, SchemaError
from tests.fuzz.endpoints import mutated
from tests.unit.gateway.wires.kit import MAX_BODY, Wires, key

PATH = "/api/v1/write"
#: 2024-01-01
T0 = 1_704_067_200_000


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*made, number))


def inside(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def series(labels: Mapping[str, str], *samples: tuple[float, int]) -> bytes:
    made = b"".join(
        inside(1, inside(1, k.encode()) + inside(2, v.encode())) for k, v in labels.items()
    )
    for value, time in samples:
        made += inside(2, b"\x09" + struct.pack("<d", value) + b"\x10" + varint(time))
    return inside(1, made)


def packed(*all_series: bytes) -> bytes:
    return bytes(pa.Codec("snappy").compress(b"".join(all_series), asbytes=True))


UP = series({"__name__": "up", "job": "node", "instance": "a:9100"}, (1.0, T0), (0.0, T0 + 15_000))
LOAD = series({"__name__": "load1", "instance": "a:9100", "empty": ""}, (0.25, T0))


def read(data: bytes) -> Sequence[Point]:
    return remote_write.points(data)[0]


async def test_metrics_become_tables_and_labels_tags(wires: Wires) -> None:
    # metadata, which is field 3, and a field of the future
    more = inside(3, b"\x08\x01\x12\x02up") + inside(99, b"x") + b"\xa0\x06\x05"
    rule = series({"__name__": "job:up:sum"}, (3.0, T0))
    assert await wires.post(PATH, packed(UP, LOAD, more, rule), db="d") == (204, "")
    rows = await wires.sql("SELECT CAST(_ts AS BIGINT), _value, job, instance FROM up ORDER BY _ts")
    assert rows == [(T0, 1.0, "node", "a:9100"), (T0 + 15_000, 0.0, "node", "a:9100")]
    assert await wires.sql("SELECT _value, instance FROM load1") == [(0.25, "a:9100")]
    assert await wires.sql("SELECT _value FROM `job:up:sum`") == [(3.0,)]
    load = wires.gateway.catalog.table("d", "load1")
    assert load is not None and [c.name for c in load.tags] == ["instance"]


def test_samples_that_are_no_number_are_left_out() -> None:
    stale = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
    data = series({"__name__": "m"}, (stale, 1), (math.inf, 2), (math.nan, 3), (5.0, -4))
    (point,) = read(data)
    assert (point.fields, point.time) == ({"_value": 5.0}, -4)


async def test_series_without_a_name_cost_only_themselves(wires: Wires) -> None:
    twice = inside(
        1,
        inside(1, inside(1, b"a") + inside(2, b"1")) + inside(1, inside(1, b"a") + inside(2, b"2")),
    )
    sent = packed(
        UP, series({"job": "x"}, (1.0, T0)), twice, series({"__name__": "a.b"}, (1.0, T0))
    )
    status, said = await wires.post(PATH, sent, db="d")
    assert status == 400 and [e["line"] for e in said["error"]["lines"]] == [2, 3, 4]
    assert await wires.sql("SELECT count(*) FROM up") == [(2,)]


@pytest.mark.parametrize(
    "data",
    [
        b"\x0b",  # a group
        b"\x0a",
        b"\x0a\x05ab",  # longer than the message
        b"\x0a" + b"\xff" * 11,
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        inside(1, b"\x12\x02\x09\x00"),  # half a double
        inside(1, inside(1, inside(1, b"\xff\xfe"))),
        b"\x80",
    ],
)
def test_what_is_no_request_is_refused(data: bytes) -> None:
    with pytest.raises(SchemaError) as wrong:
        remote_write.points(data)
    assert wrong.value.code == "E_BODY"


@pytest.mark.parametrize("data", [b"", b"\xff" * 20, b"\x05", packed(UP)[:-3], packed(UP) + b"x"])
def test_what_snappy_has_not_packed_is_refused(data: bytes) -> None:
    with pytest.raises(SchemaError) as wrong:
        remote_write.decompress(data, MAX_BODY)
    assert wrong.value.code == "E_BODY"


def test_sizes_are_bounded_before_anything_is_unpacked() -> None:
    for data in (varint(1 << 62) + b"x", packed(b"\0" * (MAX_BODY + 1))):
        assert len(data) < MAX_BODY / 10
        with pytest.raises(SchemaError) as wrong:
            remote_write.decompress(data, MAX_BODY)
        assert wrong.value.code == "E_TOO_LARGE"


def test_few_bytes_do_not_make_many_rows_or_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_write, "MOST_FIELDS", 1000)
    for data in (inside(1, b"\x12\0" * 1001), b"\x0a\0" * 1001, b"\x08\0" * 1001):
        with pytest.raises(SchemaError) as wrong:
            remote_write.points(data)
        assert wrong.value.code == "E_TOO_LARGE"
    monkeypatch.undo()
    long = series({"__name__": "m", "a": "x" * 100_000}, *[(1.0, t) for t in range(2000)])
    with pytest.raises(SchemaError) as wrong:
        remote_write.points(long)
    assert wrong.value.code == "E_TOO_LARGE"


def test_mutated_requests_are_taken_or_refused() -> None:
    chance = random.Random(7)
    plain = UP + LOAD
    good = packed(UP, LOAD)
    for _ in range(3000):
        try:
            remote_write.points(mutated(plain, chance))
            remote_write.points(remote_write.decompress(mutated(good, chance), MAX_BODY))
        except PenstockError as error:
            assert error.code in ("E_BODY", "E_TOO_LARGE")


async def test_who_may_send(wires: Wires) -> None:
    sent = packed(UP)
    for headers in ({}, key(password="wrong")):
        assert (await wires.post(PATH, sent, headers, db="d"))[0] == 401
    bob = wires.as_user(wires.gateway.allow("bob"))
    assert (await wires.post(PATH, b"\xff", bob, db="d"))[0] == 403, "before the body is looked at"
    assert (await wires.post(PATH, sent, db="no"))[0] == 404
    assert (await wires.post(PATH, sent))[0] == 400
    assert (await wires.post(PATH, b"\xff", db="d"))[0] == 400
    assert (await wires.post(PATH, b"x" * (2 << 20), db="d"))[0] == 413
    version_2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
    for other in ({"Content-Type": version_2}, {"Content-Encoding": "zstd9"}):
        assert (await wires.post(PATH, sent, {**key(), **other}, db="d"))[0] == 415
    assert wires.gateway.catalog.table("d", "up") is None
    as_sent = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"}
    assert (await wires.post(PATH, sent, {**key(), **as_sent}, db="d"))[0] == 204
