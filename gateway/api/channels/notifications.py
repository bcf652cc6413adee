"""What targets of NOTIFY get: window events in messages of WebSockets, and as CloudEvents."""

from __future__ import annotations

from gateway.api.channel import ChannelSpec, MessageSpec, RecordKey, ServerSpec, text_record
from gateway.api.shapes import (
    ANYTHING,
    INTEGER,
    TEXT,
    Shape,
    array,
    described,
    exactly,
    mapping,
    one_of,
    record,
    refer,
)

_KINDS = ("WINDOW_OPEN", "WINDOW_CLOSE", "WINDOW_INVALIDATION")
_TICKS = described(INTEGER, "In ticks of the source's precision.")
_ONE = "application/cloudevents+json; charset=utf-8"
_SEVERAL = "application/cloudevents-batch+json; charset=utf-8"

SHAPES: dict[str, Shape] = {
    "WindowEvent": record(
        {
            "tableName": described(TEXT, "Child table of the result."),
            "eventType": one_of(*_KINDS),
            "eventTime": described(INTEGER, "Milliseconds since 1970."),
            "windowId": described(TEXT, "The same for all events of a window."),
            "windowType": one_of("Time", "Session", "State", "Event", "Count"),
            "groupId": TEXT,
            "tags": mapping(ANYTHING, "Keys of PARTITION BY."),
            "windowStart": _TICKS,
        },
        {
            "windowEnd": described(INTEGER, "Of all but WINDOW_OPEN, in the same ticks."),
            "result": mapping(ANYTHING, "The result's row, of WINDOW_CLOSE."),
            "prevState": described(ANYTHING, "Of STATE_WINDOW: the state before."),
            "curState": described(ANYTHING, "Of STATE_WINDOW: the state of the window."),
            "nextState": described(ANYTHING, "Of STATE_WINDOW: the state after."),
            "triggerCondition": record(
                {
                    "conditionIndex": described(INTEGER, "0: START WITH, 1: END WITH."),
                    "fieldValue": mapping(ANYTHING),
                },
                description="Of EVENT_WINDOW: what opened or closed it.",
            ),
            "traceId": described(TEXT, "Of the write that caused the event."),
        },
    ),
    "NotifyMessage": record(
        {
            "messageId": described(TEXT, "The same when it comes again."),
            "timestamp": described(INTEGER, "Milliseconds since 1970."),
            "streams": array(
                record({"streamName": TEXT, "events": array(refer("WindowEvent"))}),
            ),
        }
    ),
    "CloudEvent": record(
        {
            "specversion": exactly("1.0"),
            "id": described(TEXT, "The same when it comes again."),
            "source": described(TEXT, "`/streams/database.stream`"),
            "type": one_of(
                "penstock.window.open", "penstock.window.close", "penstock.window.invalidation"
            ),
            "datacontenttype": exactly("application/json"),
            "data": refer("WindowEvent"),
        },
        {
            "subject": described(TEXT, "Child table of the result."),
            "time": described({"type": "string", "format": "date-time"}, "When it happened."),
            "partitionkey": described(TEXT, "Group of the window."),
            "traceparent": described(TEXT, "Span of the delivery, where the write is sampled."),
        },
        "A window event as CloudEvents 1.0 has it.",
    ),
}

_SIGNATURE = text_record(
    {
        "webhook-id": "With SIGNED_BY: id of the request, the same when it comes again.",
        "webhook-timestamp": "With SIGNED_BY: seconds since 1970.",
        "webhook-signature": "With SIGNED_BY: `v1,` and HMAC-SHA-256 of id, time and body.",
    }
)
_ATTRIBUTES = text_record(
    {
        "content-type": f"`{_ONE}`",
        **{
            f"ce_{name}": f"The event's `{name}`."
            for name in (
                "specversion",
                "id",
                "source",
                "type",
                "subject",
                "time",
                "partitionkey",
                "traceparent",
            )
        },
    }
)

CHANNELS = (
    ChannelSpec(
        "notifySocket",
        None,
        ServerSpec.SOCKET_TARGET,
        "Window events to an address of NOTIFY, over a WebSocket that the mesh opens",
        "A message is confirmed by the pong to the ping behind it; what was not comes again.",
        sent=(MessageSpec("NotifyMessage", "Events of one stream", refer("NotifyMessage")),),
    ),
    ChannelSpec(
        "notifyWebhook",
        None,
        ServerSpec.WEB_TARGET,
        "Window events to an address of NOTIFY, in POST requests",
        "Any status from 200 to 299 confirms all events of a request; others come again.",
        sent=(
            MessageSpec(
                "CloudEvent",
                "One event",
                refer("CloudEvent"),
                content_type=_ONE,
                headers=_SIGNATURE,
            ),
            MessageSpec(
                "CloudEvents",
                "Several events, in order",
                array(refer("CloudEvent")),
                content_type=_SEVERAL,
                headers=_SIGNATURE,
            ),
        ),
    ),
    ChannelSpec(
        "notifyTopic",
        "{topic}",
        ServerSpec.KAFKA,
        "Window events into a topic that NOTIFY names",
        sent=(
            MessageSpec(
                "CloudEventRecord",
                "One event",
                refer("CloudEvent"),
                content_type=_ONE,
                headers=_ATTRIBUTES,
                key=RecordKey("Group of the window.", framed=False),
            ),
        ),
        parameters={"topic": "As in `NOTIFY ('kafka://topic')`."},
    ),
)
