"""The gateway's WebSocket for rows: frames in, one acknowledgement a frame out."""

from __future__ import annotations

from gateway.api.channel import ChannelSpec, MessageSpec, ServerSpec
from gateway.api.shapes import (
    ANYTHING,
    INTEGER,
    TEXT,
    Shape,
    array,
    described,
    mapping,
    record,
    refer,
)
from gateway.rest import ARROW

_SEQUENCE = described(ANYTHING, "The frame's own `seq`.")

SHAPES: dict[str, Shape] = {
    "Window": record(
        {
            "window": described(INTEGER, "Frames that may be unanswered at a time."),
            "max_frame": described(INTEGER, "Bytes of a frame."),
        }
    ),
    "RowFrame": record(
        {"rows": array(mapping(ANYTHING))},
        {
            "seq": described(ANYTHING, "Comes back with the answer."),
            "table": described(TEXT, "`database.table`; that of the address without it."),
            "key": described(ANYTHING, "The same frame under the same key counts once."),
        },
    ),
    "RowAck": record(
        {"ack": _SEQUENCE, "rows": described(INTEGER, "Kafka has them on all in-sync replicas.")}
    ),
    "RowNack": record({"nack": _SEQUENCE, "error": refer("Error")}),
}

_WINDOW = MessageSpec("Window", "The first message: limits", refer("Window"))
_TEXT_FRAME = MessageSpec("RowFrame", "Rows as JSON", refer("RowFrame"))
_ARROW_FRAME = MessageSpec(
    "ArrowFrame",
    "Rows as an Arrow IPC stream, with `penstock.seq`, `penstock.table` and perhaps "
    "`penstock.key` in the metadata of its schema",
    {},
    content_type=ARROW,
)
_ACK = MessageSpec("RowAck", "A frame's rows are written", refer("RowAck"))
_NACK = MessageSpec("RowNack", "A frame's rows are refused", refer("RowNack"))

CHANNELS = (
    ChannelSpec(
        "ingest",
        "/v1/ingest",
        ServerSpec.GATEWAY,
        "Rows over a WebSocket",
        "With so many frames unanswered as the first message says nothing more is read.",
        received=(_TEXT_FRAME, _ARROW_FRAME),
        replies=(_ACK, _NACK),
        sent=(_WINDOW,),
        query={"table": "`database.table` for frames that name none."},
    ),
)
