"""OTLP metrics over HTTP. The bytes are made here, by the description of the format."""

from __future__ import annotations

import gzip
import json
import math
import random
import struct
from typing import Any

import pytest

from gateway.wires import otlp_messages
from gateway.wires.otlp_messages import decode
from gateway.wires.otlp_points import read_points
from penstock.errors import PenstockError, SchemaError
from penstock.protobuf import ProtobufReader
from tests.fuzz.endpoints import mutated
from tests.unit.gateway.wires.kit import MAX_BODY, Wires, key
from tests.unit.gateway.wires.test_remote_write import inside, varint

PATH = "/v1/metrics"
JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}
#: 2024-01-01, in nanoseconds
T0 = 1_704_067_200_000_000_000


def fixed(field: int, value: int | float) -> bytes:
    form = "<d" if isinstance(value, float) else "<Q"
    return varint(field << 3 | 1) + struct.pack(form, value)


def attribute(name: str, value: bytes) -> bytes:
    return inside(1, name.encode()) + inside(2, value)


def text(value: str) -> bytes:
    return inside(1, value.encode())


def request(*metrics: bytes, **resource: str) -> bytes:
    """Metrics of one resource and one scope."""
    own = b"".join(inside(1, attribute(k.replace("_", "."), text(v))) for k, v in resource.items())
    scope = inside(1, inside(1, b"my.meter"))
    return inside(1, inside(1, own) + inside(2, scope + b"".join(inside(2, m) for m in metrics)))


HOST = inside(7, attribute("host.name", text("a")))
GAUGE = inside(1, b"cpu.load") + inside(5, inside(1, fixed(3, T0) + fixed(4, 0.25) + HOST))
SUM = inside(1, b"requests") + inside(
    7, inside(1, fixed(3, T0) + fixed(6, 7)) + b"\x10\x02\x18\x01"
)
COUNTS = struct.pack("<3Q", 1, 2, 3)
BOUNDS = struct.pack("<2d", 0.5, 10.0)
HISTOGRAM = inside(1, b"latency") + inside(
    9,
    inside(
        1,
        fixed(3, T0)
        + fixed(4, 6)
        + fixed(5, 31.5)
        + inside(6, COUNTS)
        + inside(7, BOUNDS)
        + fixed(12, 20.0)
        # the start of its time, an exemplar, and a field of the future
        + fixed(2, T0 - 1)
        + inside(8, b"\x01")
        + inside(99, b"x"),
    ),
)


def number(value: Any = 1.5, **more: Any) -> dict[str, Any]:
    return {"timeUnixNano": str(T0), "asDouble": value, **more}


def metrics(*sent: dict[str, Any], attributes: Any = ()) -> dict[str, Any]:
    resource = {"attributes": list(attributes)}
    scopes = [{"scope": {}, "metrics": list(sent)}]
    return {"resourceMetrics": [{"resource": resource, "scopeMetrics": scopes}]}


def gauge(name: str, *points: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "gauge": {"dataPoints": list(points)}}


def tag(name: str, **value: Any) -> dict[str, Any]:
    return {"key": name, "value": value}


async def test_metrics_become_tables_as_prometheus_makes_them(wires: Wires) -> None:
    data = request(GAUGE, SUM, HISTOGRAM, service_name="shop")
    assert await wires.post(PATH, data, key() | PROTOBUF, db="d") == (200, "")
    rows = await wires.sql(
        "SELECT CAST(_ts AS BIGINT), _value, host_name, service_name, otel_scope_name FROM cpu_load"
    )
    assert rows == [(T0 // 10**6, 0.25, "a", "shop", "my.meter")]
    assert await wires.sql("SELECT _value, service_name FROM requests") == [(7.0, "shop")]
    for name, value in (("count", 6.0), ("sum", 31.5), ("max", 20.0)):
        assert await wires.sql(f"SELECT _value FROM latency_{name}") == [(value,)]
    buckets = await wires.sql("SELECT le, _value FROM latency_bucket ORDER BY _value")
    assert buckets == [("0.5", 1.0), ("10.0", 3.0), ("+Inf", 6.0)]
    assert wires.gateway.catalog.table("d", "latency_min") is None


async def test_json_packed_by_gzip_is_the_same(wires: Wires) -> None:
    sent = metrics(
        gauge("cpu.load", number(0.25, attributes=[tag("host.name", stringValue="a")])),
        {"name": "requests", "sum": {"dataPoints": [{"timeUnixNano": T0, "asInt": "7"}]}},
    )
    headers = key() | JSON | {"Content-Encoding": "gzip", "X-Penstock-Database": "d"}
    assert await wires.post(PATH, gzip.compress(json.dumps(sent).encode()), headers) == (200, {})
    assert await wires.sql("SELECT _value, host_name FROM cpu_load") == [(0.25, "a")]
    assert await wires.sql("SELECT _value FROM requests") == [(7.0,)]


def test_both_encodings_are_read_alike() -> None:
    values = [
        (text("x"), {"stringValue": "x"}, "x"),
        (b"\x10\x01", {"boolValue": True}, "true"),
        (b"\x18" + varint(-5), {"intValue": "-5"}, "-5"),
        (fixed(4, 0.5), {"doubleValue": 0.5}, "0.5"),
        (
            inside(5, inside(1, text("x"))),
            {"arrayValue": {"values": [{"stringValue": "x"}]}},
            '["x"]',
        ),
        (
            inside(6, inside(1, attribute("k", text("x")))),
            {"kvlistValue": {"values": [tag("k", stringValue="x")]}},
            '{"k": "x"}',
        ),
        (inside(7, b"\x01\x02"), {"bytesValue": "AQI="}, "AQI="),
    ]
    for data, plain, found in values:
        own = inside(7, attribute("a", data))
        sent = inside(1, b"m") + inside(5, inside(1, fixed(3, T0) + fixed(4, 1.5) + own))
        by_bytes = decode(inside(1, inside(2, inside(2, sent))))
        by_text = metrics(gauge("m", number(attributes=[tag("a", **plain)])))
        (point,) = read_points(by_bytes)[0]
        assert read_points(by_text)[0] == [point]
        assert point.tags == (("a", found),)


async def test_what_does_not_fit_is_a_partial_success(wires: Wires) -> None:
    untaken = {"name": "s", "summary": {"dataPoints": [{}, {}]}}
    exponential = {"name": "e", "exponentialHistogram": {"dataPoints": [{}]}}
    sent = metrics(untaken, gauge("m", number(), {"timeUnixNano": T0}), exponential)
    status, told = await wires.post(PATH, json.dumps(sent), key() | JSON, db="d")
    assert status == 200
    assert told["partialSuccess"]["rejectedDataPoints"] == "4"
    assert "summary is not taken" in told["partialSuccess"]["errorMessage"]
    assert await wires.sql("SELECT _value FROM m") == [(1.5,)]
    bad = request(inside(1, b"m") + inside(11, inside(1, b"")))
    headers = key() | PROTOBUF
    async with wires.client.post(f"{PATH}?db=d", data=bad, headers=headers) as answer:
        body = await answer.read()
        assert (answer.status, answer.content_type) == (200, PROTOBUF["Content-Type"])
    # partial_success, which has rejected_data_points and error_message
    reader = ProtobufReader(body, 9, otlp_messages.body_error, otlp_messages.too_large)
    ((number_, _, start, end),) = reader.fields(0, len(body))
    (_, _, rejected, _), (_, _, first, last) = reader.fields(start, end)
    assert (number_, rejected) == (1, 1) and "summary is not taken" in reader.text(first, last)


def test_names_and_tags_become_plain() -> None:
    attributes = [
        tag("http.route", stringValue="/a"),
        tag("http-route", stringValue="/b"),
        tag("op", stringValue="get"),
        tag("9th", stringValue="x"),
        tag("empty", stringValue=""),
        tag("nothing"),
        tag("", stringValue="x"),
    ]
    sent = metrics(gauge("9.http/server", number(attributes=attributes)))
    (point,) = read_points(sent)[0]
    assert point.measurement == "_9_http_server"
    assert point.tags == (("_9th", "x"), ("http_route", "/a;/b"), ("op_", "get"))


def test_a_data_points_own_attributes_come_first() -> None:
    one = number(attributes=[tag("env", stringValue="own")])
    common = [tag("env", stringValue="resource"), tag("zone", stringValue="z")]
    (point,) = read_points(metrics(gauge("m", one), attributes=common))[0]
    assert dict(point.tags) == {"env": "own", "zone": "z"}


def test_values_that_are_no_number_are_left_out() -> None:
    sent = metrics(gauge("m", number("NaN"), number("Infinity"), number(flags=1), number(2)))
    points, refused = read_points(sent)
    assert [p.fields["_value"] for p in points] == [2.0] and refused == []


@pytest.mark.parametrize(
    "point",
    [
        {"asDouble": 1},
        number("x"),
        number([]),
        number(timeUnixNano="soon"),
        number(timeUnixNano=str(1 << 63)),
        number(timeUnixNano=True),
        number(flags="x"),
        {"timeUnixNano": T0},
        {"timeUnixNano": T0, "asInt": 1.5},
    ],
)
def test_a_bad_data_point_costs_only_itself(point: dict[str, Any]) -> None:
    points, refused = read_points(metrics(gauge("m", number(), point)))
    assert (len(points), [bad.line for bad in refused]) == (1, [2])


def test_a_histogram_has_one_bucket_more_than_bounds() -> None:
    for counts, bounds, fits in ((["1"], [], True), ([], [], True), ([1, 2], [1, 2], False)):
        one = {"timeUnixNano": T0, "count": 3, "bucketCounts": counts, "explicitBounds": bounds}
        points, refused = read_points(metrics({"name": "h", "histogram": {"dataPoints": [one]}}))
        assert (bool(points), bool(refused)) == (fits, not fits)


@pytest.mark.parametrize(
    "sent",
    [
        [],
        {"resourceMetrics": {}},
        {"resourceMetrics": [5]},
        {"resourceMetrics": [{"resource": []}]},
        {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m", "gauge": 5}]}]}]},
    ],
)
def test_what_is_no_request_is_refused(sent: Any) -> None:
    with pytest.raises(SchemaError) as wrong:
        read_points(sent)
    assert wrong.value.code == "E_BODY"


def test_few_bytes_do_not_make_much(monkeypatch: pytest.MonkeyPatch) -> None:
    nested = b""
    for _ in range(100):
        nested = inside(5, inside(1, nested))
    deep = inside(1, b"m") + inside(5, inside(1, inside(7, attribute("a", nested))))
    with pytest.raises(SchemaError, match="no ExportMetricsServiceRequest"):
        decode(request(deep))
    long = [tag("a", stringValue="x" * 100_000)]
    with pytest.raises(SchemaError) as wrong:
        read_points(metrics(gauge("m", *[number()] * 2000), attributes=long))
    assert wrong.value.code == "E_TOO_LARGE"
    monkeypatch.setattr(otlp_messages, "MOST_FIELDS", 1000)
    with pytest.raises(SchemaError) as many:
        decode(b"\x0a\0" * 1001)
    assert many.value.code == "E_TOO_LARGE"


def test_mutated_requests_are_taken_or_refused() -> None:
    chance = random.Random(7)
    plain = request(GAUGE, SUM, HISTOGRAM, service_name="shop")
    for _ in range(2000):
        try:
            for point in read_points(decode(mutated(plain, chance)))[0]:
                assert math.isfinite(point.fields["_value"])
        except PenstockError as error:
            assert error.code in ("E_BODY", "E_TOO_LARGE")


async def test_errors_are_statuses_and_json(wires: Wires) -> None:
    good = json.dumps(metrics(gauge("m", number())))
    status, told = await wires.post(PATH, good, key() | JSON, db="none")
    assert (status, told["code"]) == (404, 5) and "E_NO_DATABASE" in told["message"]
    status, told = await wires.post(PATH, "{", key() | JSON, db="d")
    assert (status, told["code"]) == (400, 3)
    status, told = await wires.post(PATH, good, key() | JSON)
    assert status == 400 and "X-Penstock-Database" in told["message"]
    for headers in ({"Content-Type": "text/plain"}, JSON | {"Content-Encoding": "snappy"}):
        assert (await wires.post(PATH, good, key() | headers, db="d"))[0] == 415


async def test_an_error_of_protobuf_is_protobuf(wires: Wires) -> None:
    headers = key() | PROTOBUF
    async with wires.client.post(f"{PATH}?db=d", data=b"\x0b", headers=headers) as answer:
        body = await answer.read()
        assert (answer.status, answer.content_type) == (400, PROTOBUF["Content-Type"])
    assert body.startswith(b"\x08\x03\x12") and b"E_BODY" in body


async def test_bodies_that_do_not_unpack_are_refused(wires: Wires) -> None:
    bomb = gzip.compress(b" " * (MAX_BODY + 1))
    packed = JSON | {"Content-Encoding": "gzip"}
    assert (await wires.post(PATH, bomb, key() | packed, db="d"))[0] == 413
    assert (await wires.post(PATH, b"no gzip", key() | packed, db="d"))[0] == 400


async def test_who_may_send(wires: Wires) -> None:
    good = json.dumps(metrics(gauge("m", number())))
    assert (await wires.post(PATH, good, JSON, db="d"))[0] == 401
    assert (await wires.post(PATH, good, key(password="wrong") | JSON, db="d"))[0] == 401
    wires.gateway.allow("ann")
    ann = wires.as_user("ann") | JSON
    status, told = await wires.post(PATH, good, ann, db="d")
    assert (status, told["code"]) == (403, 7)
    assert wires.gateway.catalog.table("d", "m") is None
