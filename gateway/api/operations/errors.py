"""The bodies of errors: ours, and the forms around it that clients of other systems read."""

from __future__ import annotations

from gateway.api.shapes import (
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

_BAD_LINE = record({"line": INTEGER, "message": TEXT})

SHAPES: dict[str, Shape] = {
    "Error": record(
        {
            "code": {
                "type": "string",
                "pattern": "^E_[A-Z0-9_]+$",
                "description": "What is wrong; stable, and listed in docs/errors.md.",
            },
            "message": described(TEXT, "One short line."),
        },
        {
            "detail": described(TEXT, "What was found."),
            "hint": described(TEXT, "What to do."),
            "line": described(
                INTEGER, "Line of the statement, or of the body's first bad line; from 1."
            ),
            "column": described(
                either(INTEGER, TEXT),
                "Column in that line of the statement, from 1; name of a column of a bad row.",
            ),
            "row": described(INTEGER, "Index of the bad row in the request, from 0."),
            "snippet": described(TEXT, "That line, with a line of carets below."),
            "dropped": described(INTEGER, "Points that were refused; the others are written."),
            "lines": described(array(_BAD_LINE), "The first of the refused points."),
        },
        "What went wrong. Every error of this interface has this shape somewhere in it, except "
        "where clients of another system expect a text.",
    ),
    "Problem": record({"error": refer("Error")}),
    "TdengineProblem": record(
        {
            "code": described(INTEGER, "TDengine's number, or 65535."),
            "desc": TEXT,
            "error": refer("Error"),
        },
        description="An error as TDengine's clients read it.",
    ),
    "Tdengine2Problem": record(
        {
            "status": exactly("error"),
            "code": described(INTEGER, "TDengine's number, or 65535."),
            "desc": TEXT,
            "error": refer("Error"),
        },
        description="An error as clients of TDengine 2 read it.",
    ),
    "Influx1Problem": record({"error": TEXT}, description="An error as InfluxDB 1 has it."),
    "Influx2Problem": record(
        {
            "code": described(TEXT, "InfluxDB's word for the status."),
            "message": TEXT,
            "error": refer("Error"),
        },
        {"line": described(INTEGER, "The first bad line of a body; from 1.")},
        "An error as InfluxDB 2 has it.",
    ),
    "OtlpProblem": record(
        {"code": described(INTEGER, "Code of gRPC."), "message": TEXT},
        description="An error as google.rpc.Status, in the encoding of the request.",
    ),
    "RegistryProblem": record(
        {"error_code": INTEGER, "message": TEXT},
        description="An error as Confluent's Schema Registry has it.",
    ),
}
