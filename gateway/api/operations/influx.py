"""What InfluxDB's clients ask: InfluxQL, buckets, organisations, and if the server is there."""

from __future__ import annotations

from gateway.api.operation import (
    JSON,
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
    exactly,
    mapping,
    one_of,
    record,
    refer,
)
from gateway.wires.influxql.times import EPOCHS

TAG = "influxdb"
ABOUT = "What InfluxDB's clients ask. A database is a bucket; a table is a measurement."
_FORM = "application/x-www-form-urlencoded"
_ERRORS = (400, 413, 502, 504)
_ASKED = (
    ParameterSpec("q", "Statements of InfluxQL."),
    ParameterSpec("db", "Database for names without one."),
    ParameterSpec("epoch", "Unit of times in the answer; texts without it.", one_of(*EPOCHS)),
    ParameterSpec("params", "Values for $name in the statements, as an object of JSON."),
)
_LINKS = record({"self": TEXT})

SHAPES: dict[str, Shape] = {
    "InfluxSeries": record(
        {"name": TEXT, "columns": array(TEXT), "values": array(array(ANYTHING))},
        {"tags": mapping(TEXT)},
    ),
    "InfluxResults": record(
        {
            "results": array(
                record(
                    {"statement_id": INTEGER},
                    {
                        "series": array(refer("InfluxSeries")),
                        "error": described(TEXT, "Why this statement was not run."),
                    },
                )
            )
        }
    ),
    "InfluxForm": record({}, {one.name: described(one.shape, one.description) for one in _ASKED}),
    "Bucket": record(
        {
            "id": TEXT,
            "orgID": TEXT,
            "type": exactly("user"),
            "name": TEXT,
            "retentionRules": array(record({"type": exactly("expire"), "everySeconds": INTEGER})),
        }
    ),
    "WantedBucket": record(
        {"name": TEXT},
        {
            "retentionRules": described(
                array(record({"everySeconds": INTEGER}, {"type": exactly("expire")})),
                "One at most; KEEP in whole days, rounded up. 0 seconds: for ever.",
            ),
            "orgID": described(TEXT, "Any: there is one organisation."),
            "description": described(TEXT, "Read and not kept."),
        },
    ),
    "Buckets": record({"links": _LINKS, "buckets": array(refer("Bucket"))}),
    "Organisations": record({"links": _LINKS, "orgs": array(record({"id": TEXT, "name": TEXT}))}),
    "InfluxHealth": record({"name": TEXT, "status": exactly("pass"), "message": TEXT}),
    "InfluxReady": record({"status": exactly("ready"), "started": TEXT, "up": TEXT}),
}


def _query(operation: str, body: Body | None = None) -> Operation:
    return Operation(
        operation,
        TAG,
        "Ask in InfluxQL, as InfluxDB 1 is asked",
        json_answer(refer("InfluxResults"), "Results, among them what is wrong with a statement."),
        parameters=_ASKED,
        body=body,
        errors=_ERRORS,
        form=ErrorForm.INFLUX_1,
    )


def _ping(operation: str) -> Operation:
    return Operation(
        operation,
        TAG,
        "Tell that the server is there",
        {204: AnswerSpec("It is.", headers=("X-Influxdb-Version",))},
        login=LoginSpec.NOBODY,
    )


_QUERY_FORM = Body({_FORM: refer("InfluxForm")}, required=False)

OPERATIONS: Operations = {
    ("GET", "/query"): _query("influxQuery"),
    ("POST", "/query"): _query("influxQueryForm", _QUERY_FORM),
    ("GET", "/influxdb/v1/query"): _query("influxQueryV1"),
    ("POST", "/influxdb/v1/query"): _query("influxQueryFormV1", _QUERY_FORM),
    ("GET", "/api/v2/buckets"): Operation(
        "influxBuckets",
        TAG,
        "List databases as buckets",
        json_answer(refer("Buckets")),
        parameters=(
            ParameterSpec("name", "Only the one of this name."),
            ParameterSpec("id", "Only the one of this id."),
            ParameterSpec("offset", "Leave out so many; 0.", INTEGER),
            ParameterSpec("limit", "At most so many, up to 100; 20.", INTEGER),
            ParameterSpec("org", "Any: there is one organisation."),
            ParameterSpec("orgID", "Any: there is one organisation."),
        ),
        form=ErrorForm.INFLUX_2,
    ),
    ("POST", "/api/v2/buckets"): Operation(
        "influxMakeBucket",
        TAG,
        "Make a database, as a bucket",
        {201: AnswerSpec("It is made.", {JSON: refer("Bucket")})},
        body=Body({JSON: refer("WantedBucket")}),
        errors=(400, 403, 409, 413, 504),
        form=ErrorForm.INFLUX_2,
    ),
    ("GET", "/api/v2/buckets/{id}"): Operation(
        "influxBucket",
        TAG,
        "Tell of one database as a bucket",
        json_answer(refer("Bucket")),
        parameters=(path_part("id", "Id of the bucket."),),
        errors=(404,),
        form=ErrorForm.INFLUX_2,
    ),
    ("GET", "/api/v2/orgs"): Operation(
        "influxOrganisations",
        TAG,
        "List the only organisation, under the name that is asked for",
        json_answer(refer("Organisations")),
        parameters=(
            ParameterSpec("org", "Its name in the answer."),
            ParameterSpec("orgID", "Any other than its own finds nothing."),
        ),
        form=ErrorForm.INFLUX_2,
    ),
    ("GET", "/ping"): _ping("influxPing"),
    ("GET", "/influxdb/v1/ping"): _ping("influxPingV1"),
    ("GET", "/health"): Operation(
        "influxHealth",
        TAG,
        "Tell that the server takes queries and writes, as InfluxDB 2 does",
        json_answer(refer("InfluxHealth")),
        login=LoginSpec.NOBODY,
    ),
    ("GET", "/ready"): Operation(
        "influxReady",
        TAG,
        "Tell since when the server runs, as InfluxDB 2 does",
        json_answer(refer("InfluxReady")),
        login=LoginSpec.NOBODY,
    ),
}
