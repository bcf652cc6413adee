"""TDengine's WebSocket, and what clients of TDengine 2 ask over REST."""

from __future__ import annotations

from gateway.api.operation import (
    IDEMPOTENCY,
    NOTICE,
    PLAIN,
    TRACE,
    AnswerSpec,
    Body,
    ErrorForm,
    LoginSpec,
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
    exactly,
    record,
    refer,
)

TAG = "tdengine"
ABOUT = "TDengine's WebSocket, and REST of TDengine 2. REST of TDengine 3 is under statements."
_COLUMN_META: Shape = {
    "type": "array",
    "description": "Name, number of the type and size in bytes of a column.",
    "prefixItems": [TEXT, INTEGER, INTEGER],
    "minItems": 3,
    "maxItems": 3,
}

SHAPES: dict[str, Shape] = {
    "Tdengine2Result": record(
        {
            "status": exactly("succ"),
            "head": array(TEXT),
            "column_meta": array(_COLUMN_META),
            "data": array(array(ANYTHING)),
            "rows": INTEGER,
        },
        description="A statement that gives no rows answers one row, `affected_rows`.",
    ),
}
_ANSWER = json_answer(either(refer("Tdengine2Result"), refer("Tdengine2Problem")))[200]
_BODY = Body({PLAIN: described(TEXT, "The statement. Any media type is taken for text.")})
_DATABASE = path_part("db", "Database for names without one.")


def _statement(operation: str, times: str, *path: ParameterSpec) -> Operation:
    return Operation(
        operation,
        TAG,
        f"Run a statement, as TDengine 2 does; times are {times}",
        {200: AnswerSpec(_ANSWER.description, _ANSWER.content, (NOTICE,))},
        parameters=(*path, IDEMPOTENCY, TRACE),
        body=_BODY,
        errors=(413, 504),
        form=ErrorForm.TDENGINE_2,
    )


OPERATIONS: Operations = {
    ("POST", "/rest/sqlt"): _statement("tdengine2Ticks", "numbers"),
    ("POST", "/rest/sqlt/{db}"): _statement("tdengine2TicksIn", "numbers", _DATABASE),
    ("POST", "/rest/sqlutc"): _statement("tdengine2Utc", "texts in UTC"),
    ("POST", "/rest/sqlutc/{db}"): _statement("tdengine2UtcIn", "texts in UTC", _DATABASE),
    ("GET", "/ws"): Operation(
        "tdengineSocket",
        TAG,
        "Open TDengine's WebSocket",
        {101: AnswerSpec("Actions in, an answer to most of them out; see asyncapi.json.")},
        "A client that sends no login with this request sends it with its first message.",
        errors=(400, 401, 403, 429, 500, 503),
        login=LoginSpec.OPTIONAL_USER,
    ),
}
