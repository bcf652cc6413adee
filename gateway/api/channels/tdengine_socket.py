"""TDengine's WebSocket: actions in, answers out."""

from __future__ import annotations

from gateway.api.channel import ChannelSpec, MessageSpec, ServerSpec
from gateway.api.shapes import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    TEXT,
    Shape,
    array,
    described,
    mapping,
    nullable,
    record,
    refer,
)

_BYTES = "application/octet-stream"
_COLUMNS = {
    "fields_count": INTEGER,
    "fields_names": array(TEXT),
    "fields_types": described(array(INTEGER), "TDengine's numbers of types."),
    "fields_lengths": array(INTEGER),
    "fields_precisions": array(INTEGER),
    "fields_scales": array(INTEGER),
    "precision": described(INTEGER, "Unit of times: 0 ms, 1 us, 2 ns."),
}

SHAPES: dict[str, Shape] = {
    "TdengineAction": record(
        {"action": described(TEXT, "`conn`, `query`, `fetch`, …; docs/tdengine.md lists them.")},
        {
            "args": described(mapping(ANYTHING), "`req_id` comes back with the answer."),
            "req_id": described(INTEGER, "Where `args` has none."),
        },
    ),
    "TdengineAnswer": record(
        {
            "code": described(INTEGER, "0, or TDengine's number of an error."),
            "message": described(TEXT, "What went wrong, or may not be as it was meant."),
            "action": TEXT,
            "req_id": INTEGER,
            "timing": described(INTEGER, "Nanoseconds that it took."),
        },
        {
            "version": TEXT,
            "id": described(INTEGER, "Number of a result."),
            "result_id": INTEGER,
            "stmt_id": described(ANYTHING, "Number of a prepared statement."),
            "is_update": BOOLEAN,
            "is_insert": BOOLEAN,
            "affected_rows": INTEGER,
            "total_rows": INTEGER,
            "affected": INTEGER,
            **_COLUMNS,
            "fields": described(nullable(array(mapping(ANYTHING))), "What placeholders are for."),
            "completed": described(BOOLEAN, "There are no more rows."),
            "lengths": nullable(array(INTEGER)),
            "rows": INTEGER,
            "num_fields": INTEGER,
            "num_params": INTEGER,
            "db": TEXT,
            "info": TEXT,
            "list_instances": array(TEXT),
        },
    ),
}

CHANNELS = (
    ChannelSpec(
        "tdengine",
        "/ws",
        ServerSpec.GATEWAY,
        "Statements and rows of TDengine's clients",
        "The first message is a login (`conn`), unless the request had one.",
        received=(
            MessageSpec("TdengineAction", "An action", refer("TdengineAction")),
            MessageSpec(
                "TdengineBinaryAction",
                "An action as bytes: statements, values to bind, and asking for blocks",
                {},
                content_type=_BYTES,
            ),
        ),
        replies=(
            MessageSpec("TdengineAnswer", "An answer", refer("TdengineAnswer")),
            MessageSpec("TdengineBlock", "Rows of a result", {}, content_type=_BYTES),
        ),
    ),
)
