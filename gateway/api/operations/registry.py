"""The Schema Registry paths: subjects, versions and schemas of tables' rows on their topics."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.api.operation import (
    AnswerSpec,
    Body,
    ErrorForm,
    Operation,
    Operations,
    ParameterSpec,
    path_part,
)
from gateway.api.shapes import (
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
from penstock.codec.compatibility import LEVELS

TAG = "schema registry"
ABOUT = (
    "Confluent's Schema Registry: with it Kafka tools decode rows on topics and check schemas."
    " Tables are its subjects; SQL alone changes them."
)
_AVRO = described({"type": "object"}, "An Avro schema.")
_MEDIA = ErrorForm.REGISTRY.value[1]

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
    "SentSchema": record(
        {"schema": described(TEXT, "An Avro schema as a text.")},
        {
            "schemaType": one_of("AVRO"),
            "references": described(array({}), "Empty: a schema stands alone."),
        },
    ),
    "CompatibilityCheck": record(
        {"is_compatible": BOOLEAN},
        {"messages": described(array(TEXT), "With `verbose`: what does not fit, and where.")},
    ),
    "CompatibilityLevel": record({"compatibilityLevel": one_of(*LEVELS)}),
    "CompatibilityChoice": record({"compatibility": one_of(*LEVELS)}),
    "RegistryMode": record({"mode": exactly("READONLY")}),
}
_ID = path_part("id", "Number that stands in a record behind its zero byte.", INTEGER)
_SUBJECT = path_part("subject", "`TOPIC-TABLE`.")
_VERSION = path_part("version", "Number from 1, `latest` or `-1`.")
_SCHEMA = Body({_MEDIA: refer("SentSchema")})
_CHOICE = Body({_MEDIA: refer("CompatibilityChoice")})
_NORMALIZE = ParameterSpec("normalize", "Any: schemas are always compared so.", BOOLEAN)
_VERBOSE = ParameterSpec("verbose", "Tell what does not fit.", BOOLEAN)
_DELETED = ParameterSpec("deleted", "Any: what is dropped is gone.", BOOLEAN)
_DELETED_ONLY = ParameterSpec("deletedOnly", "With `true` the list is empty.", BOOLEAN)
_DELETED_ONLY_TOO = ParameterSpec(
    "deleted_only", "The same, as confluent-kafka spells it.", BOOLEAN
)
_PAGE = (
    ParameterSpec("offset", "How many to leave out.", INTEGER),
    ParameterSpec("limit", "How many at most; a negative number: all.", INTEGER),
)
_LISTED = (_DELETED, _DELETED_ONLY, _DELETED_ONLY_TOO, *_PAGE)
_OF_SUBJECT = ParameterSpec("subject", "Any: an id is that of one schema.")
_PREFIX = ParameterSpec("subjectPrefix", "How the subjects begin.")
_DEFAULT = ParameterSpec(
    "defaultToGlobal", "Answer the level of all where the subject has none of its own.", BOOLEAN
)
_NO_ANSWER: Mapping[int, AnswerSpec] = {}


def _operation(
    operation: str,
    summary: str,
    shape: Shape | None,
    *parameters: ParameterSpec,
    errors: tuple[int, ...] = (),
    body: Body | None = None,
) -> Operation:
    missing = (404,) if any(one.place == "path" for one in parameters) else ()
    answers = {200: AnswerSpec("OK", {_MEDIA: shape})} if shape is not None else _NO_ANSWER
    return Operation(
        operation,
        TAG,
        summary,
        answers,
        parameters=parameters,
        body=body,
        errors=tuple(dict.fromkeys((*missing, *errors, *((400, 413) if body else ())))),
        form=ErrorForm.REGISTRY,
    )


_READS: Operations = {
    ("GET", "/schemas/types"): _operation(
        "schemaTypes", "List kinds of schemas: Avro", array(TEXT)
    ),
    ("GET", "/schemas/ids/{id}"): _operation(
        "schema", "Return the schema of an id as a text", refer("SchemaText"), _ID, _OF_SUBJECT
    ),
    ("GET", "/schemas/ids/{id}/schema"): _operation(
        "schemaAlone", "Return the schema of an id", _AVRO, _ID
    ),
    ("GET", "/schemas/ids/{id}/subjects"): _operation(
        "schemaSubjects",
        "List the subjects of an id",
        array(TEXT),
        _ID,
        _OF_SUBJECT,
        _DELETED,
        *_PAGE,
    ),
    ("GET", "/schemas/ids/{id}/versions"): _operation(
        "schemaVersions",
        "List subjects and versions of an id",
        array(refer("SubjectVersion")),
        _ID,
        _OF_SUBJECT,
        _DELETED,
        *_PAGE,
    ),
    ("GET", "/subjects"): _operation("subjects", "List subjects", array(TEXT), _PREFIX, *_LISTED),
    ("GET", "/subjects/{subject}/versions"): _operation(
        "versions", "List the versions of a subject", array(INTEGER), _SUBJECT, *_LISTED
    ),
    ("GET", "/subjects/{subject}/versions/{version}"): _operation(
        "version",
        "Return one version of a subject",
        refer("RegisteredSchema"),
        _SUBJECT,
        _VERSION,
        _DELETED,
        errors=(422,),
    ),
    ("GET", "/subjects/{subject}/versions/{version}/schema"): _operation(
        "versionSchema",
        "Return the schema of one version",
        _AVRO,
        _SUBJECT,
        _VERSION,
        _DELETED,
        errors=(422,),
    ),
}
_SENT: Operations = {
    ("POST", "/subjects/{subject}"): _operation(
        "lookUpSchema",
        "Find the version of a subject that has a schema",
        refer("RegisteredSchema"),
        _SUBJECT,
        _NORMALIZE,
        _DELETED,
        errors=(422,),
        body=_SCHEMA,
    ),
    ("POST", "/subjects/{subject}/versions"): _operation(
        "registerSchema",
        "Return the id of a schema that is there; others are refused",
        record({"id": INTEGER}),
        _SUBJECT,
        _NORMALIZE,
        errors=(409, 422),
        body=_SCHEMA,
    ),
    ("POST", "/compatibility/subjects/{subject}/versions"): _operation(
        "checkCompatibility",
        "Check a schema against the versions that the subject's level names",
        refer("CompatibilityCheck"),
        _SUBJECT,
        _NORMALIZE,
        _VERBOSE,
        errors=(422,),
        body=_SCHEMA,
    ),
    ("POST", "/compatibility/subjects/{subject}/versions/{version}"): _operation(
        "checkCompatibilityWith",
        "Check a schema against one version",
        refer("CompatibilityCheck"),
        _SUBJECT,
        _VERSION,
        _NORMALIZE,
        _VERBOSE,
        errors=(422,),
        body=_SCHEMA,
    ),
}
#: of what leads the catalog: it may be another gateway, and away
_WRITTEN = (421, 502, 504)
_SETTINGS: Operations = {
    ("GET", "/config"): _operation(
        "compatibility",
        "Tell the level of subjects that have none of their own",
        refer("CompatibilityLevel"),
    ),
    ("PUT", "/config"): _operation(
        "setCompatibility",
        "Set the level of subjects that have none of their own",
        refer("CompatibilityChoice"),
        errors=(422, *_WRITTEN),
        body=_CHOICE,
    ),
    ("DELETE", "/config"): _operation(
        "clearCompatibility",
        "Set that level back to `BACKWARD`; return what it was",
        refer("CompatibilityLevel"),
        errors=_WRITTEN,
    ),
    ("GET", "/config/{subject}"): _operation(
        "subjectCompatibility",
        "Tell the level of a subject",
        refer("CompatibilityLevel"),
        _SUBJECT,
        _DEFAULT,
    ),
    ("PUT", "/config/{subject}"): _operation(
        "setSubjectCompatibility",
        "Give a subject a level of its own",
        refer("CompatibilityChoice"),
        _SUBJECT,
        errors=(422, *_WRITTEN),
        body=_CHOICE,
    ),
    ("DELETE", "/config/{subject}"): _operation(
        "clearSubjectCompatibility",
        "Take a subject's own level away; return what it was",
        refer("CompatibilityLevel"),
        _SUBJECT,
        errors=_WRITTEN,
    ),
    ("GET", "/mode"): _operation(
        "mode", "Tell that nothing is registered here", refer("RegistryMode")
    ),
    ("GET", "/mode/{subject}"): _operation(
        "subjectMode",
        "Tell that nothing is registered under a subject",
        refer("RegistryMode"),
        _SUBJECT,
    ),
    ("PUT", "/mode"): _operation("setMode", "Refuse another mode", None, errors=(422,)),
    ("PUT", "/mode/{subject}"): _operation(
        "setSubjectMode", "Refuse another mode", None, _SUBJECT, errors=(422,)
    ),
}
OPERATIONS: Operations = {**_READS, **_SENT, **_SETTINGS}
