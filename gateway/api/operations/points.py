"""Points of other systems: InfluxDB's line protocol, OpenTSDB's put, Prometheus remote write,
OpenTelemetry metrics.
"""

from __future__ import annotations

from gateway.api.operation import (
    JSON,
    NOTICE,
    PLAIN,
    PROTOBUF,
    TRACE,
    WRITTEN,
    AnswerSpec,
    Body,
    ErrorForm,
    Operation,
    Operations,
    ParameterSpec,
    path_part,
)
from gateway.api.shapes import (
    NUMBER,
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
from gateway.wires.influxql.times import EPOCHS
from gateway.wires.otlp import DATABASE_HEADER

TAG = "points"
ABOUT = (
    "Points as InfluxDB, OpenTSDB, Prometheus and OpenTelemetry send them. Tables are made as they"
    " come."
)
_LINES = Body({PLAIN: described(TEXT, "Line protocol.")})
_ERRORS = (400, 404, 409, 413, 421, 422, 502, 504)
_PRECISION = ParameterSpec("precision", "Unit of times; ns.", one_of(*EPOCHS))
_DATABASE = ParameterSpec("db", "Database.", required=True)
_EITHER_DATABASE = (
    ParameterSpec("db", "Database."),
    ParameterSpec(DATABASE_HEADER, "Database, where `db` does not say it.", place="header"),
)

SHAPES: dict[str, Shape] = {
    "OpenTsdbPoint": record(
        {
            "metric": TEXT,
            "timestamp": described(either(NUMBER, TEXT), "In seconds or milliseconds."),
            "value": either(NUMBER, TEXT),
        },
        {"tags": mapping(either(NUMBER, TEXT))},
    ),
    "OtlpSuccess": record(
        {},
        {
            "partialSuccess": record(
                {},
                {
                    "rejectedDataPoints": described(TEXT, "How many were not written."),
                    "errorMessage": TEXT,
                },
            )
        },
        "ExportMetricsServiceResponse.",
    ),
}


def _influx(operation: str, form: ErrorForm, *parameters: ParameterSpec) -> Operation:
    return Operation(
        operation,
        TAG,
        f"Write line protocol, as InfluxDB {1 if form is ErrorForm.INFLUX_1 else 2} does",
        WRITTEN,
        "Bad lines are refused with their numbers; the others are written.",
        parameters=(*parameters, _PRECISION, TRACE),
        body=_LINES,
        errors=_ERRORS,
        form=form,
    )


def _influx_1(operation: str) -> Operation:
    return _influx(
        operation,
        ErrorForm.INFLUX_1,
        _DATABASE,
        ParameterSpec("rp", "Retention policy; any, as databases have their own."),
        ParameterSpec("consistency", "Any: writes are always on all in-sync replicas."),
    )


def _influx_2(operation: str) -> Operation:
    return _influx(
        operation,
        ErrorForm.INFLUX_2,
        ParameterSpec("bucket", "Database; what stands behind a `/` is ignored.", required=True),
        ParameterSpec("org", "Any: there is one organisation."),
    )


def _open_tsdb(operation: str, body: Body, what: str) -> Operation:
    return Operation(
        operation,
        TAG,
        f"Write {what}, as OpenTSDB's put does",
        WRITTEN,
        parameters=(path_part("db", "Database."), TRACE),
        body=body,
        errors=_ERRORS,
    )


OPERATIONS: Operations = {
    ("POST", "/write"): _influx_1("influxWrite"),
    ("POST", "/influxdb/v1/write"): _influx_1("influxWriteV1"),
    ("POST", "/api/v2/write"): _influx_2("influxWriteV2"),
    ("POST", "/influxdb/api/v2/write"): _influx_2("influxWriteV2Prefixed"),
    ("POST", "/opentsdb/v1/put/json/{db}"): _open_tsdb(
        "openTsdbPutJson",
        Body({JSON: either(refer("OpenTsdbPoint"), array(refer("OpenTsdbPoint")))}),
        "points as JSON",
    ),
    ("POST", "/opentsdb/v1/put/telnet/{db}"): _open_tsdb(
        "openTsdbPutTelnet",
        Body({PLAIN: described(TEXT, "Lines `metric time value tag=value …`.")}),
        "points as lines",
    ),
    ("POST", "/api/v1/write"): Operation(
        "prometheusWrite",
        TAG,
        "Write samples, as Prometheus remote write does",
        WRITTEN,
        parameters=(_DATABASE, TRACE),
        body=Body(
            {PROTOBUF: described({}, "`prometheus.WriteRequest` of version 1, packed by snappy.")}
        ),
        errors=(*_ERRORS, 415),
    ),
    ("POST", "/v1/metrics"): Operation(
        "otlpMetrics",
        TAG,
        "Write metrics of OpenTelemetry, as OTLP over HTTP does",
        {
            200: AnswerSpec(
                "Kafka has all data points that were not rejected.",
                {JSON: refer("OtlpSuccess"), PROTOBUF: {}},
                headers=(NOTICE,),
            )
        },
        "Gauges, sums and histograms. The body may be packed by gzip.",
        parameters=(*_EITHER_DATABASE, TRACE),
        body=Body(
            {
                PROTOBUF: described({}, "`ExportMetricsServiceRequest`."),
                JSON: described({"type": "object"}, "The same as JSON."),
            }
        ),
        errors=(*_ERRORS, 415),
        form=ErrorForm.OTLP,
    ),
}
