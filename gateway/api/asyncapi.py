"""The AsyncAPI document of WebSockets, topics and notifications, made from the table of channels.

The application it describes is the mesh: it receives what clients send.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gateway.api.channel import ChannelSpec, MessageSpec, RecordKey, ServerSpec
from gateway.api.channels import CHANNELS, SHAPES
from gateway.api.shapes import unless_empty
from penstock.auth.cookies import COOKIE

Document = dict[str, Any]

_ABOUT = """\
WebSockets, Kafka topics and notifications of a Penstock mesh. The mesh is the application: it \
receives what clients send, and sends what they get. HTTP is in openapi.json. Values of records \
have Confluent's framing: a zero byte, four bytes of schema id, an Avro body."""
_AVRO_FORMAT = "application/vnd.apache.avro+json;version=1.9.0"
_BINDING = "0.5.0"
_SOCKET_BINDING = "0.1.0"
_SCHEMES: dict[str, Document] = {
    "basic": {"type": "http", "scheme": "basic", "description": "A user of the mesh."},
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A token of `POST /v1/tokens`.",
    },
    "session": {
        "type": "httpApiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "Of a browser that has logged in.",
    },
    "scram": {"type": "scramSha256", "description": "A user of the mesh, by SCRAM-SHA-256."},
}


def document(version: str) -> Document:
    """Return the AsyncAPI 3.0 document of a mesh of this version."""
    messages = {message.name: message for one in CHANNELS for message in one.messages}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Penstock",
            "version": version,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": _servers(),
        "channels": {one.name: _channel(one) for one in CHANNELS},
        "operations": {name: made for one in CHANNELS for name, made in _operations(one).items()},
        "components": {
            "schemas": SHAPES,
            "messages": {name: _message(message) for name, message in messages.items()},
            "securitySchemes": _SCHEMES,
        },
    }


def _servers() -> Document:
    user = ("basic", "bearer")
    return {
        ServerSpec.GATEWAY.value: _server("ws", "127.0.0.1:7700", "A gateway.", *user, "session"),
        ServerSpec.NOTIFIER.value: _server("ws", "127.0.0.1:7701", "A notifier.", *user, "session"),
        ServerSpec.KAFKA.value: _server("kafka", "127.0.0.1:7703", "The mesh's Kafka.", "scram"),
        ServerSpec.SOCKET_TARGET.value: _server(
            "ws", "localhost:8080", "Where `NOTIFY ('ws://…')` or `wss://…` points to."
        ),
        ServerSpec.WEB_TARGET.value: _server(
            "http", "localhost:8080", "Where `NOTIFY ('http://…')` or `https://…` points to."
        ),
    }


def _server(protocol: str, address: str, about: str, *schemes: str) -> Document:
    made: Document = {
        "host": "{address}",
        "protocol": protocol,
        "description": about,
        "variables": {"address": {"default": address}},
    }
    if schemes:
        made["security"] = [_refer("components", "securitySchemes", name) for name in schemes]
    return made


def _channel(channel: ChannelSpec) -> Document:
    made: Document = {
        "address": channel.address,
        "title": channel.summary,
        **unless_empty("description", channel.description),
        "servers": [_refer("servers", channel.server.value)],
        "messages": {
            message.name: _refer("components", "messages", message.name)
            for message in channel.messages
        },
        **unless_empty(
            "parameters",
            {name: {"description": about} for name, about in channel.parameters.items()},
        ),
        **unless_empty("bindings", _socket_binding(channel)),
    }
    return made | ({"x-internal": True} if channel.internal else {})


def _socket_binding(channel: ChannelSpec) -> Document:
    if channel.server not in (ServerSpec.GATEWAY, ServerSpec.NOTIFIER):
        return {}
    query = {
        name: {"type": "string", "description": about} for name, about in channel.query.items()
    }
    shape = {"query": {"type": "object", "properties": query}} if query else {}
    return {"ws": {"method": "GET", **shape, "bindingVersion": _SOCKET_BINDING}}


def _operations(channel: ChannelSpec) -> Document:
    made: Document = {}
    if channel.received:
        name = f"{channel.name}Receive"
        made[name] = _operation("receive", channel, channel.received)
        if channel.replies:
            made[name]["reply"] = {
                "channel": _refer("channels", channel.name),
                "messages": _messages(channel, channel.replies),
            }
    if channel.sent:
        made[f"{channel.name}Send"] = _operation("send", channel, channel.sent)
    return made


def _operation(action: str, channel: ChannelSpec, messages: Iterable[MessageSpec]) -> Document:
    made: Document = {
        "action": action,
        "channel": _refer("channels", channel.name),
        "summary": channel.summary,
        "messages": _messages(channel, messages),
    }
    if channel.server is ServerSpec.WEB_TARGET:
        made["bindings"] = {"http": {"method": "POST", "bindingVersion": "0.3.0"}}
    return made


def _messages(channel: ChannelSpec, messages: Iterable[MessageSpec]) -> list[Document]:
    return [_refer("channels", channel.name, "messages", one.name) for one in messages]


def _message(message: MessageSpec) -> Document:
    payload: Document = message.payload
    if message.avro is not None:
        payload = {"schemaFormat": _AVRO_FORMAT, "schema": dict(message.avro)}
    return {
        "title": message.summary,
        "contentType": message.content_type,
        **unless_empty("headers", message.headers),
        "payload": payload,
        **unless_empty("bindings", _record_binding(message.key)),
    }


def _record_binding(key: RecordKey | None) -> Document:
    if key is None:
        return {}
    framing: Document = {}
    if key.framed:
        framing = {"schemaIdLocation": "payload", "schemaIdPayloadEncoding": "confluent"}
    shape = {"type": "string", "description": key.description}
    return {"kafka": {"key": shape, **framing, "bindingVersion": _BINDING}}


def _refer(*place: str) -> Document:
    return {"$ref": "#/" + "/".join(place)}
