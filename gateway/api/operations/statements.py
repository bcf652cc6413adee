"""Statements: asked, checked, and what an editor has to know of their language."""

from __future__ import annotations

from gateway.api.operation import (
    IDEMPOTENCY,
    JSON,
    NOTICE,
    PLAIN,
    TRACE,
    ZONE,
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
    BOOLEAN,
    INTEGER,
    TEXT,
    Shape,
    array,
    described,
    either,
    mapping,
    nullable,
    one_of,
    record,
    refer,
)
from gateway.http import STATUS
from gateway.rest import ARROW, PARQUET

TAG = "statements"
ABOUT = "Statements of SQL."
#: a statement can fail in every way that there is, beside those of the guard
_ANY = tuple(sorted(set(STATUS.values())))

_COLUMN_META: Shape = {
    "type": "array",
    "description": "Name, type and size in bytes of a column.",
    "prefixItems": [TEXT, TEXT, INTEGER],
    "minItems": 3,
    "maxItems": 3,
}
_ROWS = either(array(array(ANYTHING)), array(mapping(ANYTHING)))
_NAMED_TYPE = record({"name": TEXT, "type": TEXT})

SHAPES: dict[str, Shape] = {
    "Result": record(
        {
            "code": described({"const": 0}, "The statement was run."),
            "column_meta": array(_COLUMN_META),
            "data": described(_ROWS, "Rows as lists; as objects with `row_with_meta`."),
            "rows": described(INTEGER, "How many there are."),
        },
        {
            "timing": described(INTEGER, "Nanoseconds that it took, with `timing=true`."),
            "notices": described(array(TEXT), "What may not be as it was meant."),
        },
        "Columns and rows. A statement that gives none answers one row, `affected_rows`.",
    ),
    "QueryRequest": record(
        {"sql": TEXT},
        {
            "database": nullable(described(TEXT, "For names without one.")),
            "timezone": nullable(described(TEXT, "Zone of times without one; UTC.")),
            "parameters": described(
                either(array(refer("Value")), mapping(refer("Value")), {"type": "null"}),
                "Values for `?` in order, or for `:name` by name.",
            ),
        },
    ),
    "Value": described(
        either(
            {"type": ["null", "boolean", "number", "string"]},
            record({"$bytes": described(TEXT, "In hex.")}),
            record({"$decimal": TEXT}),
            record({"$timestamp": described(TEXT, "ISO 8601.")}),
        ),
        "A parameter of a statement.",
    ),
    "CheckRequest": record(
        {"sql": described(TEXT, "Up to 262,144 characters and 100 statements.")},
        {"database": nullable(TEXT), "timezone": described(TEXT, "UTC unless it is given.")},
    ),
    "Checked": record(
        {"statements": array(refer("CheckedStatement")), "mistakes": array(refer("Mistake"))}
    ),
    "CheckedStatement": record(
        {
            "kind": described(TEXT, "Empty for what is no statement."),
            "start": described(INTEGER, "Its first character in the text."),
            "end": INTEGER,
            "columns": described(
                either(array(_NAMED_TYPE), {"type": "null"}),
                "Of a SELECT that is right; null where only its answer tells them.",
            ),
            "follows": described(
                either(
                    record({"database": TEXT, "table": TEXT, "columns": array(TEXT)}),
                    {"type": "null"},
                ),
                "The result of a stream, and its columns, where a SELECT is from a stream alone: "
                "a page follows it over /v1/follow, no query answers it.",
            ),
        }
    ),
    "Mistake": record(
        {
            "code": TEXT,
            "message": TEXT,
            "line": described(INTEGER, "From 1; 0: there is no place."),
            "column": described(INTEGER, "From 1; 0: there is no place."),
            "length": described(INTEGER, "Characters of that line to be marked."),
            "nearest": described(nullable(TEXT), "The name that was probably meant."),
            "hint": TEXT,
            "detail": TEXT,
            "statement": described(INTEGER, "Index of the statement, from 0."),
        }
    ),
    "Dialect": record(
        {
            "keywords": array(TEXT),
            "types": array(TEXT),
            "clauses": array(
                record({"name": TEXT, "of": one_of("SELECT", "CREATE STREAM"), "example": TEXT})
            ),
            "functions": array(
                record(
                    {
                        "name": TEXT,
                        "signature": TEXT,
                        "doc": TEXT,
                        "kind": one_of("scalar", "aggregate", "over", "series"),
                        "where": one_of("everywhere", "queries", "streams"),
                    }
                )
            ),
        }
    ),
    "About": record(
        {
            "version": TEXT,
            "notifier_url": TEXT,
            "store_url": TEXT,
            "federation_url": TEXT,
            "kafka_bootstrap": TEXT,
            "kafka_security": TEXT,
            "kafka_users": BOOLEAN,
        }
    ),
    "TdengineToken": record({"code": {"const": 0}, "desc": described(TEXT, "The token.")}),
}

_TDENGINE_ANSWER = json_answer(
    either(refer("Result"), refer("TdengineProblem")),
    "The result; or what is wrong with the statement, which has this status in TDengine's form.",
)
_TDENGINE_PARAMETERS = (
    ParameterSpec("conn_tz", "Time zone; before `tz`."),
    ZONE,
    ParameterSpec(
        "row_with_meta",
        "Rows as objects.",
        one_of("true", "false", "1", "0", "t", "f"),
    ),
    ParameterSpec("timing", "`true`: tell how long it took.", BOOLEAN),
    ParameterSpec("req_id", "A number that is the caller's own.", INTEGER),
    IDEMPOTENCY,
    TRACE,
)
_TEXT_BODY = Body({PLAIN: described(TEXT, "The statement. Any media type is taken for text.")})


def _tdengine(operation: str, *path: ParameterSpec) -> Operation:
    return Operation(
        operation,
        TAG,
        "Run a statement, as TDengine's REST API does",
        {
            200: AnswerSpec(
                _TDENGINE_ANSWER[200].description, _TDENGINE_ANSWER[200].content, (NOTICE,)
            )
        },
        parameters=(*path, *_TDENGINE_PARAMETERS),
        body=_TEXT_BODY,
        errors=(400, 413, 504),
        form=ErrorForm.TDENGINE,
    )


OPERATIONS: Operations = {
    ("POST", "/v1/query"): Operation(
        "query",
        TAG,
        "Run a statement",
        {
            200: AnswerSpec(
                "Its columns and rows.",
                {
                    JSON: refer("Result"),
                    ARROW: described({}, "An Arrow IPC stream, where Accept names this type."),
                    PARQUET: described({}, "A Parquet file, where Accept names this type."),
                },
                (NOTICE,),
            )
        },
        parameters=(
            ParameterSpec("db", "Database for names without one; the body's comes before it."),
            ZONE,
            IDEMPOTENCY,
            TRACE,
        ),
        body=Body({JSON: refer("QueryRequest"), PLAIN: described(TEXT, "The statement alone.")}),
        errors=_ANY,
    ),
    ("POST", "/rest/sql"): _tdengine("tdengineSql"),
    ("POST", "/rest/sql/"): _tdengine("tdengineSqlSlash"),
    ("POST", "/rest/sql/{db}"): _tdengine(
        "tdengineSqlIn", path_part("db", "Database for names without one.")
    ),
    ("GET", "/rest/login/{user}/{password}"): Operation(
        "tdengineLogin",
        TAG,
        "Give a token, as TDengine's REST API does",
        json_answer(either(refer("TdengineToken"), refer("TdengineProblem"))),
        "The token goes into `Authorization: Taosd TOKEN`. The password stands in a path, which "
        "proxies may log: use `POST /v1/tokens` where you can.",
        (path_part("user", "Name of a user."), path_part("password", "Password of that user.")),
        errors=(401, 403, 429, 503),
        form=ErrorForm.TDENGINE,
        login=LoginSpec.NOBODY,
    ),
    ("POST", "/v1/check"): Operation(
        "check",
        TAG,
        "Tell what is wrong with the statements of a text; run none",
        json_answer(refer("Checked")),
        body=Body({JSON: refer("CheckRequest")}),
        errors=(400, 413),
    ),
    ("GET", "/v1/dialect"): Operation(
        "dialect",
        TAG,
        "List keywords, types, clauses and functions of the SQL dialect",
        json_answer(refer("Dialect")),
    ),
    ("GET", "/v1/info"): Operation(
        "info",
        TAG,
        "Tell the version, and where notifier, store, links and Kafka are",
        json_answer(refer("About")),
    ),
}
