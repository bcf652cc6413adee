"""How the mesh is: services, findings, counters; the health port; and these documents."""

from __future__ import annotations

from gateway.api.operation import (
    JSON,
    PLAIN,
    AnswerSpec,
    LoginSpec,
    Operation,
    Operations,
    ParameterSpec,
    json_answer,
)
from gateway.api.shapes import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Shape,
    array,
    described,
    mapping,
    nullable,
    one_of,
    record,
    refer,
)
from penstock.runtime.log_entries import LEVELS

TAG = "health"
ABOUT = "How the mesh is, and what it can be asked."
_LIMIT: Shape = {"type": "integer", "minimum": 1, "maximum": 1000}
_LEVEL = one_of(*LEVELS)
_RATE = described(nullable(NUMBER), "A second; null when there is nothing to compare with.")

SHAPES: dict[str, Shape] = {
    "Health": record(
        {
            "ready": described(BOOLEAN, "Every service is."),
            "services": array(refer("ServiceHealth")),
            "findings": array(refer("Finding")),
        }
    ),
    "ServiceHealth": record(
        {
            "name": TEXT,
            "node": INTEGER,
            "state": one_of("ready", "waiting", "offline"),
            "version": TEXT,
            "started": described(NUMBER, "Seconds since 1970."),
            "uptime": described(NUMBER, "Seconds."),
            "seen": described(NUMBER, "When it last said so; seconds since 1970."),
            "host": described(nullable(TEXT), "With ADMIN."),
            "memory": described(nullable(INTEGER), "Bytes of its process; with ADMIN."),
            "restarts": described(nullable(INTEGER), "By `penstock up`; with ADMIN."),
            "waiting": mapping(TEXT, "What for, and why; why with ADMIN."),
        }
    ),
    "Finding": record(
        {"grade": one_of("ok", "look", "bad"), "what": TEXT, "do": described(TEXT, "May be empty.")}
    ),
    "Counters": record(
        {
            "at": described(INTEGER, "Milliseconds since 1970."),
            "seconds": described(nullable(NUMBER), "That rates are over."),
            "streams": array(refer("StreamCounters")),
        }
    ),
    "StreamCounters": record(
        {
            "database": TEXT,
            "name": TEXT,
            "id": INTEGER,
            "status": TEXT,
            "message": nullable(TEXT),
            "rows_in": INTEGER,
            "rows_out": INTEGER,
            "late": INTEGER,
            "failed": INTEGER,
            "state_bytes": INTEGER,
            "lag": described(INTEGER, "Records that wait."),
            "lag_partition": described(
                nullable(TEXT), "Where most of them are: `topic:partition`; null when none wait."
            ),
            "events_waiting": INTEGER,
            "rows_in_rate": _RATE,
            "rows_out_rate": _RATE,
            "late_rate": _RATE,
            "failed_rate": _RATE,
        }
    ),
    "AuditTrail": record(
        {
            "kept": described(BOOLEAN, "This gateway writes a file; without one there are none."),
            "entries": described(array(refer("AuditEntry")), "The newest first."),
        }
    ),
    "AuditEntry": record(
        {
            "time": described(TEXT, "ISO 8601, UTC."),
            "event": TEXT,
            "service": TEXT,
            "user": described(TEXT, "Empty where nobody is known."),
            "remote": described(TEXT, "Address that a request came from; may be empty."),
            "details": described({"type": "object"}, "What else the line says."),
        }
    ),
    "Logs": record(
        {
            "logs": described(array(refer("ServiceLog")), "All that there are."),
            "entries": described(array(refer("LogEntry")), "The newest first."),
            "left_out": described(
                INTEGER, "Entries of this time that services logged faster than they send them."
            ),
        }
    ),
    "ServiceLog": record({"service": TEXT, "node": INTEGER}),
    "LogEntry": record(
        {
            "time": described(TEXT, "ISO 8601, UTC."),
            "level": _LEVEL,
            "service": TEXT,
            "node": INTEGER,
            "text": TEXT,
            "fields": described(
                {"type": "object"}, "What else the entry says, such as `trace`; long ones are cut."
            ),
            "exception": described(TEXT, "A traceback, or the end of it; mostly empty."),
        }
    ),
    "Alive": record({"alive": BOOLEAN}, {"service": TEXT}, "More on loopback only."),
    "Readiness": record(
        {"ready": BOOLEAN},
        {
            "service": TEXT,
            "room": described(TEXT, "The same under its former name."),
            "waiting": mapping(TEXT),
            "remarks": mapping(TEXT),
            "conditions": array(TEXT),
            "stuck": array(TEXT),
        },
        "More on loopback only.",
    ),
}
_DOCUMENT = described({"type": "object"}, "The document.")

OPERATIONS: Operations = {
    ("GET", "/v1/health"): Operation(
        "health",
        TAG,
        "Tell how services are, and what is wrong with streams and views",
        json_answer(refer("Health")),
    ),
    ("GET", "/v1/streams/counters"): Operation(
        "streamCounters",
        TAG,
        "Tell what streams have counted, and how much a second",
        json_answer(refer("Counters")),
    ),
    ("GET", "/v1/audit"): Operation(
        "audit",
        TAG,
        "Return the newest entries of this gateway's audit trail; for ADMIN",
        json_answer(refer("AuditTrail")),
        parameters=(ParameterSpec("limit", "Entries; 100 without it.", _LIMIT),),
        errors=(400,),
    ),
    ("GET", "/v1/logs"): Operation(
        "logs",
        TAG,
        "Return the newest entries of the services' logs, merged by time; for ADMIN",
        json_answer(refer("Logs")),
        "Services send what they log every two seconds, from level `info` on. About the newest "
        "1,000 entries of each service and node are there.",
        parameters=(
            ParameterSpec("service", "Of this service alone."),
            ParameterSpec("level", "This level and worse; `info` without it.", _LEVEL),
            ParameterSpec("trace", "What is about a request with this trace id."),
            ParameterSpec("text", "What says this somewhere, in upper or lower case."),
            ParameterSpec("since", "`10m`, `2h`, `1d`, or a time: `2026-03-01T09:00`."),
            ParameterSpec("limit", "Entries; 200 without it.", _LIMIT),
        ),
        errors=(400, 503),
    ),
    ("GET", "/v1/openapi.json"): Operation(
        "openapi", TAG, "Return this document", json_answer(_DOCUMENT)
    ),
    ("GET", "/v1/asyncapi.json"): Operation(
        "asyncapi",
        TAG,
        "Return the AsyncAPI document of WebSockets and topics",
        json_answer(_DOCUMENT),
    ),
}


def _state(operation: str, summary: str, shape: str) -> Operation:
    content = {JSON: refer(shape)}
    return Operation(
        operation,
        TAG,
        summary,
        {200: AnswerSpec("Yes.", content), 503: AnswerSpec("No.", content)},
        login=LoginSpec.NOBODY,
    )


#: of the health port, which every service has; see `penstock/runtime/health.py`
HEALTH_PORT: Operations = {
    ("GET", "/healthz"): _state("alive", "Tell if the process lives and moves", "Alive"),
    ("GET", "/readyz"): _state("ready", "Tell if the service is ready", "Readiness"),
    ("GET", "/metrics"): Operation(
        "metrics",
        TAG,
        "Return metrics for Prometheus",
        {
            200: AnswerSpec("Metrics; names are pseudonyms without the key.", {PLAIN: TEXT}),
            401: AnswerSpec("This is not the key of metrics.", {PLAIN: TEXT}),
        },
        login=LoginSpec.METRICS,
    ),
}
