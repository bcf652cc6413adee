"""Rows: written, the latest read, and the socket that many are written over."""

from __future__ import annotations

from gateway.api.operation import (
    IDEMPOTENCY,
    JSON,
    NOTICE,
    TRACE,
    ZONE,
    AnswerSpec,
    Body,
    Operation,
    Operations,
    ParameterSpec,
    json_answer,
    path_part,
)
from gateway.api.shapes import (
    ANYTHING,
    INTEGER,
    TEXT,
    Shape,
    array,
    described,
    either,
    mapping,
    one_of,
    record,
    refer,
)
from gateway.rest import ARROW

TAG = "rows"
ABOUT = "Rows of tables."
_NDJSON = "application/x-ndjson"
_NAMES = (path_part("db", "Database."), path_part("table", "Table, supertable or child table."))
#: what is wrong with rows or their table, and what may be away behind it
_ERRORS = (400, 404, 409, 413, 415, 421, 422, 502, 504)

SHAPES: dict[str, Shape] = {
    "Row": mapping(
        ANYTHING,
        "Values by column; those of a supertable have `tbname` and tags, too. Times are ISO 8601, "
        "or ticks in the precision of the database.",
    ),
    "Written": record(
        {"rows": described(INTEGER, "How many Kafka has on all in-sync replicas.")},
        {"notices": described(array(TEXT), "What may not be as it was meant.")},
    ),
    "Latest": record(
        {"precision": one_of("ms", "us", "ns"), "rows": array(mapping(ANYTHING))},
        description="Times are ticks of that precision.",
    ),
}

OPERATIONS: Operations = {
    ("POST", "/v1/tables/{db}/{table}/rows"): Operation(
        "writeRows",
        TAG,
        "Write rows",
        {200: AnswerSpec("They are written.", {JSON: refer("Written")}, (NOTICE,))},
        parameters=(*_NAMES, ZONE, IDEMPOTENCY, TRACE),
        body=Body(
            {
                JSON: either(refer("Row"), array(refer("Row"))),
                _NDJSON: described(TEXT, "One object a line."),
                ARROW: described({}, "An Arrow IPC stream."),
            }
        ),
        errors=_ERRORS,
    ),
    ("GET", "/v1/tables/{db}/{table}/last"): Operation(
        "lastRows",
        TAG,
        "Tell the latest row of child tables",
        json_answer(refer("Latest")),
        "From Redis: what was written within the last second may be missing.",
        parameters=(
            *_NAMES,
            ParameterSpec("tbname", "Only these child tables of a supertable.", array(TEXT)),
        ),
        errors=(404, 413),
    ),
    ("GET", "/v1/ingest"): Operation(
        "ingest",
        TAG,
        "Open a WebSocket for rows",
        {101: AnswerSpec("Frames of rows in, one acknowledgement a frame out; see asyncapi.json.")},
        parameters=(ParameterSpec("table", "`database.table` for frames that name none."),),
    ),
}
