"""The AsyncAPI document: sound in itself, and as the messages that are sent."""

from __future__ import annotations

import json
import re
from typing import Any

import fastavro
from jsonschema import Draft7Validator

import schemas
from gateway.api.channel import ServerSpec
from gateway.api.channels import CHANNELS, SHAPES
from gateway.api.operations import OPERATIONS
from penstock import names
from services.notifier.cloud_events import cloud_events
from services.notifier.message import pack
from tests.unit.gateway.api.conform import ASYNCAPI, check_message
from tests.unit.gateway.api.kit import KEY, WholeGateway
from tests.unit.services.notifier.kit import entry, record

_EVENT = {
    "tableName": "t_a6",
    "eventType": "WINDOW_CLOSE",
    "eventTime": 1733284887197,
    "windowId": "4530534543656688051",
    "windowType": "Time",
    "groupId": "53135",
    "tags": {"tbname": "d1001"},
    "windowStart": 1733284800000,
    "windowEnd": 1733284860000,
    "result": {"_wstart": 1733284800000, "c": 1},
}


def _references(part: Any) -> list[str]:
    if isinstance(part, dict):
        own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return own + _references(list(part.values()))
    return [found for one in part for found in _references(one)] if isinstance(part, list) else []


def test_every_reference_leads_somewhere() -> None:
    found = set(_references(ASYNCAPI))
    assert len(found) > 50
    for reference in found:
        part: Any = ASYNCAPI
        for name in reference.removeprefix("#/").split("/"):
            part = part[name]
    assert {f"#/components/schemas/{name}" for name in SHAPES} <= found, "one is not used"


def test_channels_declare_what_stands_in_their_addresses() -> None:
    assert len({one.name for one in CHANNELS}) == len(CHANNELS)
    for one in CHANNELS:
        assert re.findall(r"\{(\w+)\}", one.address or "") == list(one.parameters)
        assert one.messages


def test_every_schema_is_one() -> None:
    for shape in SHAPES.values():
        Draft7Validator.check_schema(shape)


def test_every_socket_of_the_gateway_is_a_channel_and_no_other_route() -> None:
    sockets = {path for (_, path), one in OPERATIONS.items() if 101 in one.answers}
    assert sockets == {one.address for one in CHANNELS if one.server is ServerSpec.GATEWAY}


def test_every_topic_and_avro_schema_is_there() -> None:
    addresses = {one.address for one in CHANNELS if one.server is ServerSpec.KAFKA}
    assert set(names.BUILT_IN_TOPICS) <= addresses
    assert names.ingest_topic("{database}") in addresses
    embedded = [m.avro for one in CHANNELS for m in one.messages if m.avro is not None]
    for schema in embedded:
        fastavro.parse_schema(json.loads(json.dumps(schema)))
    for name in schemas.BUILT_IN_IDS:
        assert schemas.load(name) in embedded, name


def test_notifications_are_as_described() -> None:
    made = pack(entry(), record([_EVENT, _EVENT]), 0, 9, now=1733284887203)
    assert made is not None
    check_message("NotifyMessage", json.loads(made.text))
    events = [json.loads(one.text) for one in cloud_events(made)]
    check_message("CloudEvents", events)
    for one in events:
        check_message("CloudEvent", one)


async def test_frames_of_rows_are_answered_as_described(gateway: WholeGateway) -> None:
    gateway.memory.define("CREATE DATABASE plant PARTITIONS 1", None)
    gateway.memory.define("CREATE TABLE plant.t (ts TIMESTAMP, v DOUBLE)", None)
    async with gateway.client.ws_connect("/v1/ingest", headers=KEY) as socket:
        check_message("Window", await socket.receive_json(timeout=60))
        for rows, answer in (([{"ts": 1772355600000, "v": 1}], "RowAck"), ([{"v": 1}], "RowNack")):
            frame = {"seq": 1, "table": "plant.t", "rows": rows}
            check_message("RowFrame", frame)
            await socket.send_json(frame)
            check_message(answer, await socket.receive_json(timeout=60))


async def test_counters_are_followed_as_described(gateway: WholeGateway) -> None:
    asked = {"action": "subscribe", "id": "c", "what": "counters"}
    check_message("SubscribeCounters", asked)
    async with gateway.client.ws_connect("/v1/follow", headers=KEY) as socket:
        await socket.send_json(asked)
        check_message("Subscribed", await socket.receive_json(timeout=60))
        check_message("CountersMessage", await socket.receive_json(timeout=60))
        await socket.send_json(asked)
        told = await socket.receive_json(timeout=60)
        while told["type"] == "counters":
            told = await socket.receive_json(timeout=60)
        check_message("SubscriptionError", told)
