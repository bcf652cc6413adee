"""Window events as CloudEvents 1.0: attributes, and the JSON of one event or of several.

An event's id comes from its message's, so a repeat has the id that it had. Refused here: how they
travel.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from penstock.runtime.traces import SpanContext
from services.notifier.message import NotifyMessage

_TYPES = {
    "WINDOW_OPEN": "penstock.window.open",
    "WINDOW_CLOSE": "penstock.window.close",
    "WINDOW_INVALIDATION": "penstock.window.invalidation",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: the attribute of CloudEvents' extension for distributed tracing, and W3C's header
TRACE = "traceparent"
ONE = "application/cloudevents+json; charset=utf-8"
SEVERAL = "application/cloudevents-batch+json; charset=utf-8"


@dataclass(frozen=True)
class CloudEvent:
    """`text` is the whole event as JSON; `attributes` are those of its context."""

    id: str
    text: str
    attributes: Mapping[str, str]


def cloud_events(message: NotifyMessage, context: SpanContext | None = None) -> list[CloudEvent]:
    """Return the events of *message*, in order, with the span that the target goes on from."""
    body = json.loads(message.text)
    source = "/streams/" + quote(message.name, safe=".")
    traceparent = None if context is None else context.traceparent
    return [
        _cloud_event(f"{body['messageId']}-{number}", source, event, traceparent)
        for number, event in enumerate(body["streams"][0]["events"])
    ]


def _cloud_event(
    event_id: str, source: str, event: dict[str, Any], traceparent: str | None
) -> CloudEvent:
    attributes = {
        "specversion": "1.0",
        "id": event_id,
        "source": source,
        "type": _TYPES.get(event["eventType"], "penstock.window"),
        **_optional("subject", event.get("tableName")),
        **_optional("time", _time(event.get("eventTime"))),
        **_optional("partitionkey", event.get("groupId")),
        **_optional(TRACE, traceparent),
    }
    made = {**attributes, "datacontenttype": "application/json", "data": event}
    text = json.dumps(made, separators=(",", ":"), ensure_ascii=False)
    return CloudEvent(event_id, text, attributes)


def _optional(name: str, value: Any) -> dict[str, str]:
    """An attribute, where there is a value: an empty one is against the specification."""
    return {name: str(value)} if value else {}


def _time(milliseconds: Any) -> str | None:
    """Return a time as RFC 3339 has it; none for what no such text can say."""
    if not isinstance(milliseconds, int):
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def body_of(events: Sequence[CloudEvent]) -> tuple[bytes, str]:
    """Return body and content type of a request with *events*: structured mode for one, batched
    for several.
    """
    if len(events) == 1:
        return events[0].text.encode(), ONE
    return ("[" + ",".join(event.text for event in events) + "]").encode(), SEVERAL


def request_id(events: Sequence[CloudEvent]) -> str:
    """Return the id of a request: the same for the same events."""
    if len(events) == 1:
        return events[0].id
    ids = "/".join(event.id for event in events)
    return hashlib.blake2b(ids.encode(), digest_size=16, person=b"penstock-request").hexdigest()


def trace_headers(events: Sequence[CloudEvent]) -> list[tuple[str, str]]:
    """Return the header by which a request with *events* goes on from a span: none, where they are
    of several.
    """
    found = {event.attributes.get(TRACE) for event in events}
    only = found.pop() if len(found) == 1 else None
    return [] if only is None else [(TRACE, only)]
