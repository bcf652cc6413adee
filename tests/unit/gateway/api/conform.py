"""Answers and messages, compared with the documents that describe them.

A field that no shape has is a fault here: what is answered is described.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from aiohttp import web
from jsonschema import Draft202012Validator

from gateway.api import asyncapi, openapi

OPENAPI = openapi.document("1")
ASYNCAPI = asyncapi.document("1")
#: parts of a URL that log in, anywhere
_KEYS = {"u", "p", "token"}


def _closed(shape: Any) -> Any:
    """Return *shape* with no other fields than it names."""
    if isinstance(shape, list):
        return [_closed(one) for one in shape]
    if not isinstance(shape, dict):
        return shape
    made = {name: _closed(one) for name, one in shape.items()}
    if isinstance(shape.get("properties"), dict):
        made.setdefault("additionalProperties", False)
    return made


@cache
def _components(document: str) -> Any:
    return _closed({"openapi": OPENAPI, "asyncapi": ASYNCAPI}[document]["components"]["schemas"])


def check_shape(shape: Any, value: Any, document: str = "openapi") -> None:
    """Raise AssertionError when *value* is not of *shape*."""
    whole = {"allOf": [_closed(shape)], "components": {"schemas": _components(document)}}
    faults = list(Draft202012Validator(whole).iter_errors(value))
    assert not faults, "\n".join(f"{list(f.absolute_path)}: {f.message}" for f in faults)


def check_message(name: str, value: Any) -> None:
    """Raise AssertionError when *value* is no message of this name."""
    check_shape(ASYNCAPI["components"]["messages"][name]["payload"], value, "asyncapi")


@web.middleware
async def conform(request: web.Request, handler: Any) -> web.StreamResponse:
    """Answer what *handler* does, or 500 with what of it is not as the document says."""
    try:
        answer = await handler(request)
    except web.HTTPException as raised:
        answer = raised
    try:
        check_answer(request, answer)
    except AssertionError as wrong:
        return web.Response(status=500, text=f"{request.method} {request.path}: {wrong}")
    if isinstance(answer, web.HTTPException):
        raise answer
    return answer


def check_answer(request: web.Request, answer: web.StreamResponse) -> None:
    """Raise AssertionError when an answer is none that the document allows."""
    resource = request.match_info.route.resource
    if resource is None:
        return
    method = "get" if request.method == "HEAD" else request.method.lower()
    operation = OPENAPI["paths"][resource.canonical][method]
    said = operation["responses"].get(str(answer.status))
    assert said is not None, f"status {answer.status} is not described: {_text(answer)}"
    if "$ref" in said:
        said = OPENAPI["components"]["responses"][said["$ref"].rpartition("/")[2]]
    if answer.status < 300:
        known = {one["name"] for one in operation.get("parameters", ())}
        assert set(request.query) <= known | _KEYS
    _check_body(answer, said.get("content", {}))


def _check_body(answer: web.StreamResponse, content: dict[str, Any]) -> None:
    body = answer.body if isinstance(answer, web.Response) else None
    # what stands in a redirect is for nobody
    if not body or "*/*" in content or 300 <= answer.status < 400:
        return
    assert answer.content_type in content, f"{answer.content_type} is not described"
    if answer.content_type.endswith("json"):
        check_shape(content[answer.content_type]["schema"], json.loads(bytes(body)))


def _text(answer: web.StreamResponse) -> str:
    return str(answer.text)[:500] if isinstance(answer, web.Response) else ""
