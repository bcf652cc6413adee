"""The Schema Registry paths: subjects, versions and schemas of tables' rows on their topics."""

from __future__ import annotations

from gateway.api.operation import (
    AnswerSpec,
    ErrorForm,
    Operation,
    Operations,
    ParameterSpec,
    path_part,
)
from gateway.api.shapes import INTEGER, TEXT, Shape, array, described, exactly, record, refer

TAG = "schema registry"
ABOUT = "Confluent's Schema Registry, to read: with it Kafka tools decode rows on topics."
_AVRO = described({"type": "object"}, "An Avro schema.")

SHAPES: dict[str, Shape] = {
    "SchemaText": record({"schema": described(TEXT, "An Avro schema as a text.")}),
    "SubjectVersion": record({"subject": TEXT, "version": INTEGER}),
    "RegisteredSchema": record(
        {
            "subject": TEXT,
            "version": described(INTEGER, "From 1."),
            "id": INTEGER,
            "schema": described(TEXT, "An Avro schema as a text."),
        }
    ),
}
_ID = path_part("id", "Number that stands in a record behind its zero byte.", INTEGER)
_SUBJECT = path_part("subject", "`TOPIC-TABLE`.")
_VERSION = path_part("version", "Number from 1, `latest` or `-1`.")


def _get(operation: str, summary: str, shape: Shape, *path: ParameterSpec) -> Operation:
    return Operation(
        operation,
        TAG,
        summary,
        {200: AnswerSpec("OK", {ErrorForm.REGISTRY.value[1]: shape})},
        parameters=path,
        errors=(404,) if path else (),
        form=ErrorForm.REGISTRY,
    )


OPERATIONS: Operations = {
    ("GET", "/schemas/types"): _get("schemaTypes", "List kinds of schemas: Avro", array(TEXT)),
    ("GET", "/schemas/ids/{id}"): _get(
        "schema", "Return the schema of an id as a text", refer("SchemaText"), _ID
    ),
    ("GET", "/schemas/ids/{id}/schema"): _get(
        "schemaAlone", "Return the schema of an id", _AVRO, _ID
    ),
    ("GET", "/schemas/ids/{id}/subjects"): _get(
        "schemaSubjects", "List the subjects of an id", array(TEXT), _ID
    ),
    ("GET", "/schemas/ids/{id}/versions"): _get(
        "schemaVersions",
        "List subjects and versions of an id",
        array(refer("SubjectVersion")),
        _ID,
    ),
    ("GET", "/subjects"): _get("subjects", "List subjects", array(TEXT)),
    ("GET", "/subjects/{subject}/versions"): _get(
        "versions", "List the versions of a subject", array(INTEGER), _SUBJECT
    ),
    ("GET", "/subjects/{subject}/versions/{version}"): _get(
        "version", "Return one version of a subject", refer("RegisteredSchema"), _SUBJECT, _VERSION
    ),
    ("GET", "/subjects/{subject}/versions/{version}/schema"): _get(
        "versionSchema", "Return the schema of one version", _AVRO, _SUBJECT, _VERSION
    ),
    ("GET", "/config"): _get(
        "compatibility",
        "Tell how versions of a subject fit together",
        record({"compatibilityLevel": exactly("BACKWARD")}),
    ),
    ("GET", "/mode"): _get(
        "mode", "Tell that nothing is registered here", record({"mode": exactly("READONLY")})
    ),
}
