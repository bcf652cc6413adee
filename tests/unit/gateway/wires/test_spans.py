"""Spans of requests and writes, over a gateway in memory and a collector over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.codec import TableCodec, schema_ids
from penstock.runtime import traces
from penstock.telemetry.tracer import close_tracer, open_tracer
from tests.otlp_collector import FoundSpan, OtlpCollector, collecting
from tests.unit.gateway.wires.kit import Wires, key

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
SERVER, PRODUCER = 2, 4


@pytest.fixture
def collector() -> Iterator[OtlpCollector]:
    with collecting() as made:
        yield made
    close_tracer()


def _send_to(collector: OtlpCollector, **variables: str) -> None:
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **variables}
    open_tracer(given, "gateway", lambda kind, n: None)


async def _write(wires: Wires, line: str = "m,host=a v=1 1700000000000", **headers: str) -> Any:
    given = key() | headers
    return await wires.post("/write", line, given, db="d", precision="ms")


async def _wrong_password(wires: Wires) -> int:
    status, _ = await wires.post("/write", "m v=1", key(password="hunter2"), db="d")
    return int(status)


def _sent(collector: OtlpCollector) -> list[FoundSpan]:
    close_tracer()
    return sorted(collector.spans, key=lambda s: (s.kind, s.start))


def _carried(wires: Wires) -> list[str | None]:
    """The traces of all records of rows of `d.m` in the log."""
    table = wires.gateway.catalog.table("d", "m")
    assert table is not None
    codec = TableCodec(table, table.schema_id)
    found: list[str | None] = []
    for (topic, partition), _ in sorted(wires.gateway.log.records.items()):
        values = wires.gateway.log.values(topic, partition)
        mine = [v for v in values if topic == table.topic and _schema_id(v) == table.schema_id]
        for value in mine:
            stamp = traces.newest(codec.decode([value]).records.get_column("trace"))
            found.append(None if stamp is None else stamp[1])
    return found


def _schema_id(value: bytes | None) -> int:
    return int(schema_ids([value])[0])


async def test_a_request_and_its_write_are_one_trace(
    wires: Wires, collector: OtlpCollector
) -> None:
    _send_to(collector)
    await _write(wires, "m,host=a v=1 1700000000000\nm,host=b v=2 1700000000000")
    request, write = _sent(collector)
    assert (request.name, request.kind, request.parent) == ("POST /write", SERVER, "")
    assert request.attributes["http.response.status_code"] == 204
    assert request.attributes["http.route"] == "/write"
    assert request.attributes["db.namespace"] == "d"
    assert request.attributes["penstock.rows"] == 2
    assert (write.trace, write.parent, write.kind) == (request.trace, request.span, PRODUCER)
    assert write.attributes["messaging.destination.name"] == "in.d"
    assert write.attributes["db.collection.name"] == "m"
    assert write.attributes["penstock.rows"] == 2
    places = {"messaging.kafka.offset", "penstock.offsets"} & write.attributes.keys()
    assert len(places) == 1
    assert request.start <= write.start <= write.end


async def test_records_carry_the_span_of_their_write(
    wires: Wires, collector: OtlpCollector
) -> None:
    _send_to(collector)
    await _write(wires)
    await _write(wires, **{"X-Trace-Id": "order-17"})
    _, _, first, second = _sent(collector)
    assert _carried(wires) == [
        f"/{first.trace}{first.span}",
        f"order-17/{second.trace}{second.span}",
    ]


async def test_a_callers_span_is_gone_on_from(wires: Wires, collector: OtlpCollector) -> None:
    _send_to(collector)
    await _write(wires, traceparent=f"00-{TRACE}-{SPAN}-01")
    request, write = _sent(collector)
    assert (request.trace, request.parent) == (TRACE, SPAN)
    assert _carried(wires) == [f"{TRACE}/{write.trace}{write.span}"]


async def test_what_is_not_sampled_is_carried_as_without_spans(
    wires: Wires, collector: OtlpCollector
) -> None:
    _send_to(collector)
    await _write(wires, traceparent=f"00-{TRACE}-{SPAN}-00")
    _send_to(collector, OTEL_TRACES_SAMPLER="parentbased_always_off")
    await _write(wires)
    await _write(wires, **{"X-Trace-Id": "order-17"})
    assert _sent(collector) == []
    assert _carried(wires) == [None, None, "order-17"]


async def test_without_a_collector_records_are_as_ever(wires: Wires) -> None:
    await _write(wires)
    await _write(wires, traceparent=f"00-{TRACE}-{SPAN}-01")
    assert _carried(wires) == [None, TRACE]


async def test_refusals_are_no_errors_of_the_gateway(
    wires: Wires, collector: OtlpCollector
) -> None:
    _send_to(collector)
    assert await _wrong_password(wires) == 401
    (request,) = _sent(collector)
    assert request.attributes["http.response.status_code"] == 401
    assert request.error == "" and "penstock.rows" not in request.attributes
    assert "hunter2" not in str(request.attributes)
