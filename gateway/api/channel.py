"""What is said of one channel: a WebSocket, a topic, or a target of NOTIFY, with its messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from gateway.api.operation import JSON
from gateway.api.shapes import TEXT, Shape


class ServerSpec(Enum):
    """Where a channel is; the value is its name in the document."""

    GATEWAY = "gateway"
    NOTIFIER = "notifier"
    KAFKA = "kafka"
    SOCKET_TARGET = "socketTarget"
    WEB_TARGET = "webTarget"


@dataclass(frozen=True)
class RecordKey:
    """The key of a Kafka record; *framed*: its value has Confluent's framing."""

    description: str
    framed: bool = True


@dataclass(frozen=True)
class MessageSpec:
    """One kind of message. `avro` is the schema of a value that is no JSON."""

    name: str
    summary: str
    payload: Shape = field(default_factory=dict)
    avro: Mapping[str, Any] | None = None
    content_type: str = JSON
    headers: Shape | None = None
    key: RecordKey | None = None


@dataclass(frozen=True)
class ChannelSpec:
    """Messages of one place.

    Args:
        address: path or topic; None where a user says it.
        received: what the mesh takes.
        replies: what it answers to these.
        sent: what it sends by itself.
        parameters: names in braces of the address, or of a WebSocket's query, with descriptions.
        internal: for services alone.
    """

    name: str
    address: str | None
    server: ServerSpec
    summary: str
    description: str = ""
    received: tuple[MessageSpec, ...] = ()
    replies: tuple[MessageSpec, ...] = ()
    sent: tuple[MessageSpec, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    internal: bool = False

    @property
    def messages(self) -> tuple[MessageSpec, ...]:
        """All kinds of messages, each once."""
        every = (*self.received, *self.replies, *self.sent)
        return tuple({message.name: message for message in every}.values())


def text_record(names: Mapping[str, str]) -> Shape:
    """Return the shape of headers: texts by name, with descriptions."""
    return {
        "type": "object",
        "properties": {name: {**TEXT, "description": about} for name, about in names.items()},
    }
