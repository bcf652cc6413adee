"""Subscriptions over WebSocket: the notifier's `/ws`, and `/v1/follow` for the gateway's pages."""

from __future__ import annotations

from gateway.api.channel import ChannelSpec, MessageSpec, ServerSpec
from gateway.api.operations.errors import SHAPES as ERROR_SHAPES
from gateway.api.shapes import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    TEXT,
    Shape,
    array,
    described,
    exactly,
    one_of,
    record,
    refer,
)

_ID = described(TEXT, "The client's name of the subscription.")
_TOKEN = described(TEXT, "Continues exactly behind this message, as `from`.")
_ERROR = ERROR_SHAPES["Error"]["properties"]
_FORM = {
    "tables": described(array(TEXT), "Only these child tables; of the result, for events."),
    "from": described(TEXT, "`latest` (unless it is given), `earliest`, or a token."),
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": 10_000,
        "description": "Of the rows of each message only the newest so many.",
    },
    "exact": described(BOOLEAN, "Whole numbers of 64 bits and times as texts."),
}

SHAPES: dict[str, Shape] = {
    "Subscribe": {
        **record(
            {"action": exactly("subscribe"), "id": _ID},
            {
                "table": described(TEXT, "`database.name`"),
                "stream": described(TEXT, "`database.name`; its result table, or its events."),
                "what": described(one_of("rows", "events"), "`rows` unless it is given."),
                **_FORM,
            },
        ),
        "anyOf": [{"required": ["table"]}, {"required": ["stream"]}],
    },
    "SubscribeCounters": record(
        {"action": exactly("subscribe"), "id": _ID, "what": exactly("counters")}
    ),
    "Unsubscribe": record({"action": exactly("unsubscribe"), "id": _ID}),
    "LogIn": record(
        {"action": exactly("login"), "token": described(TEXT, "Of `POST /v1/tokens`.")}
    ),
    "LoggedIn": record({"type": exactly("logged_in"), "user": TEXT}),
    "Subscribed": record({"id": _ID, "type": exactly("subscribed")}, {"token": _TOKEN}),
    "Unsubscribed": record({"id": _ID, "type": exactly("unsubscribed")}),
    "SubscriptionError": record(
        {
            "id": _ID,
            "type": exactly("error"),
            "code": _ERROR["code"],
            "message": _ERROR["message"],
        },
        {"detail": _ERROR["detail"], "hint": _ERROR["hint"]},
    ),
    "Change": {
        **record(
            {"tbname": TEXT, "op": one_of("upsert", "delete", "merge")},
            description="A row, with its columns and tags. Times are ticks in the precision of "
            "the database. A merge changes only columns that are not null.",
        ),
        "additionalProperties": ANYTHING,
    },
    "RowsMessage": record(
        {"id": _ID, "type": exactly("rows"), "token": _TOKEN, "rows": array(refer("Change"))},
        {"skipped": described(INTEGER, "Older rows that `limit` left out.")},
    ),
    "EventsMessage": record(
        {
            "id": _ID,
            "type": exactly("events"),
            "token": _TOKEN,
            "events": array(refer("WindowEvent")),
        }
    ),
    "CountersMessage": record(
        {"id": _ID, "type": exactly("counters"), "counters": refer("Counters")}
    ),
}


def _message(name: str, summary: str) -> MessageSpec:
    return MessageSpec(name, summary, refer(name))


_ASKED = (
    _message("Subscribe", "Begin a subscription to rows or window events"),
    _message("Unsubscribe", "End a subscription"),
)
_REPLIES = (
    _message("Subscribed", "A subscription has begun"),
    _message("Unsubscribed", "A subscription has ended"),
    _message("SubscriptionError", "A subscription is refused, or has ended"),
)
_TOLD = (
    _message("RowsMessage", "Rows as they come"),
    _message("EventsMessage", "Window events as they come"),
)

CHANNELS = (
    ChannelSpec(
        "subscriptions",
        "/ws",
        ServerSpec.NOTIFIER,
        "Rows and window events, each exactly once by its token",
        "Errors cost only their subscription, and may come at any time. A page of a listed origin "
        "offers the subprotocols `penstock` and `bearer.TOKEN`, or `penstock` alone and then sends "
        "LogIn before anything else; without it, it is closed with 1008. So is a connection some "
        "seconds after the token or session that it came with has ended.",
        received=(*_ASKED, _message("LogIn", "Say whose a page is, as its first message")),
        replies=(*_REPLIES, _message("LoggedIn", "The page may subscribe")),
        sent=_TOLD,
    ),
    ChannelSpec(
        "follow",
        "/v1/follow",
        ServerSpec.GATEWAY,
        "The same for pages of the gateway, and counters of streams",
        "Closed with 1008 after the session has ended, with 1013 when the notifier is away, and "
        "with 1001 when the gateway stops.",
        received=(*_ASKED, _message("SubscribeCounters", "Begin a subscription to counters")),
        replies=_REPLIES,
        sent=(*_TOLD, _message("CountersMessage", "Counters of streams, each second")),
    ),
)
