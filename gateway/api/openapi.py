"""The OpenAPI document of the gateway, made from the table of its operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gateway.api.operation import (
    PROTOBUF,
    AnswerSpec,
    ErrorForm,
    LoginSpec,
    Operation,
    Operations,
    ParameterSpec,
)
from gateway.api.operations import OPERATIONS, SHAPES, TAGS
from gateway.api.operations.health import HEALTH_PORT
from gateway.api.shapes import unless_empty
from gateway.forward import HEADER
from gateway.http import STATUS, TDENGINE_STATUS
from penstock.auth.cookies import COOKIE
from penstock.auth.login import PASSWORD_PARAMETER, TOKEN_PARAMETER, USER_PARAMETER

Document = dict[str, Any]

_ABOUT = """\
What the gateway of a Penstock mesh answers over HTTP. Each path that is answered with GET takes \
HEAD, too, but for `/login`. WebSockets and Kafka topics are in asyncapi.json. Errors of this \
interface have a `code` that is stable; docs/errors.md lists them."""
#: statuses with which the guard may turn a request away, before its handler sees it
_GUARD = {LoginSpec.USER: (401, 403, 429, 500, 503)}
_SECURITY_SCHEMES: dict[str, Document] = {
    "basic": {"type": "http", "scheme": "basic", "description": "A user of the mesh."},
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A token of `POST /v1/tokens`. Clients of InfluxDB may write `Token` in "
        "place of `Bearer`, and `USER:PASSWORD` for the token; TDengine's write `Taosd`.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "Of a browser that has logged in.",
    },
    "queryUser": {
        "type": "apiKey",
        "in": "query",
        "name": USER_PARAMETER,
        "description": "Name of the user, for clients of InfluxDB 1.",
    },
    "queryPassword": {
        "type": "apiKey",
        "in": "query",
        "name": PASSWORD_PARAMETER,
        "description": "Password of that user.",
    },
    "queryToken": {
        "type": "apiKey",
        "in": "query",
        "name": TOKEN_PARAMETER,
        "description": "A token of `POST /v1/tokens`, for clients of TDengine. Proxies may log it: "
        "use a header where you can.",
    },
    "metricsKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "The key of metrics; with it metrics have names in them.",
    },
    "gatewayKey": {
        "type": "apiKey",
        "in": "header",
        "name": HEADER,
        "description": "What gateways of one mesh show each other.",
    },
}
_SERVER = {
    "url": "{scheme}://{address}",
    "description": "A gateway.",
    "variables": {
        "scheme": {"enum": ["http", "https"], "default": "http"},
        "address": {"default": "127.0.0.1:7700"},
    },
}
_HEALTH_SERVER = {
    "url": "http://{address}",
    "description": "The health port of any service; each has its own.",
    "variables": {"address": {"default": "127.0.0.1:7790"}},
}


def document(version: str) -> Document:
    """Return the OpenAPI 3.1 document of a gateway of this version."""
    paths = _paths(OPERATIONS)
    for path, item in _paths(HEALTH_PORT).items():
        paths[path] = {"servers": [_HEALTH_SERVER], **item}
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Penstock",
            "version": version,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [_SERVER],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": SHAPES,
            "responses": _error_answers(),
            "securitySchemes": _SECURITY_SCHEMES,
        },
    }


def statuses_of_errors(operation: Operation) -> list[int]:
    """Return the statuses of refusals that an operation may answer with."""
    guard: Iterable[int] = _GUARD.get(operation.login, ())
    if operation.form in (ErrorForm.TDENGINE, ErrorForm.TDENGINE_2):
        # what else goes wrong has status 200 and a code there
        guard = (status for status in guard if status in TDENGINE_STATUS)
    return sorted({*guard, *operation.errors})


def _paths(operations: Operations) -> dict[str, Document]:
    paths: dict[str, Document] = {}
    for (method, path), operation in operations.items():
        paths.setdefault(path, {})[method.lower()] = _operation(operation)
    return paths


def _operation(operation: Operation) -> Document:
    form = operation.form
    answers = {str(status): _answer(one) for status, one in operation.answers.items()}
    refused = {
        str(status): {"$ref": f"#/components/responses/{_name(form, status)}"}
        for status in statuses_of_errors(operation)
    }
    made: Document = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        **unless_empty("description", operation.description),
        **unless_empty("parameters", [_parameter(one) for one in operation.parameters]),
    }
    if operation.body is not None:
        content = _content(operation.body.content)
        made["requestBody"] = {"required": operation.body.required, "content": content}
    made["responses"] = {**answers, **refused}
    made["security"] = [dict.fromkeys(schemes, []) for schemes in operation.login.value]
    return made | ({"x-internal": True} if operation.internal else {})


def _parameter(parameter: ParameterSpec) -> Document:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "required": parameter.required,
        "schema": parameter.shape,
    }


def _answer(answer: AnswerSpec) -> Document:
    return {
        "description": answer.description,
        **unless_empty("headers", {name: _header() for name in answer.headers}),
        **unless_empty("content", _content(answer.content)),
    }


def _content(content: Any) -> Document:
    return {kind: {"schema": shape} for kind, shape in content.items()}


def _header() -> Document:
    return {"schema": {"type": "string"}}


def _name(form: ErrorForm, status: int) -> str:
    return f"{form.value[0]}{status}"


def _error_answers() -> dict[str, Document]:
    """Return the answers to what is refused, each form with each status that it is used with."""
    used = {
        (operation.form, status)
        for operation in OPERATIONS.values()
        for status in statuses_of_errors(operation)
    }
    ordered = sorted(used, key=lambda one: (one[0].value, one[1]))
    return {_name(form, status): _error_answer(form, status) for form, status in ordered}


def _error_answer(form: ErrorForm, status: int) -> Document:
    shape, media = form.value
    headers = {name: _header() for name in _headers_of(status)}
    content: Document = {media: {"schema": {"$ref": f"#/components/schemas/{shape}"}}}
    if form is ErrorForm.OTLP:
        content[PROTOBUF] = {"schema": {}}
    return {
        "description": ", ".join(_codes_of(status)),
        **unless_empty("headers", headers),
        "content": content,
    }


def _headers_of(status: int) -> tuple[str, ...]:
    if status == 401:
        return ("WWW-Authenticate",)
    return ("Retry-After",) if status in (429, 503) else ()


def _codes_of(status: int) -> Iterator[str]:
    """Yield the codes that have a status."""
    yield from (f"`{code}`" for code, its in STATUS.items() if its == status)
    if status == 400:
        yield "and those of statements"
