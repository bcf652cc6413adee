"""The OpenAPI document: it names the routes that there are, and is sound in itself."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from gateway.api.openapi import statuses_of_errors
from gateway.api.operation import LoginSpec
from gateway.api.operations import OPERATIONS, SHAPES, TAGS
from gateway.api.operations.health import HEALTH_PORT
from gateway.http import STATUS
from penstock.runtime.health import Health
from tests.unit.gateway.api.conform import OPENAPI, check_shape
from tests.unit.gateway.api.kit import WholeGateway

_KEY = re.compile(r"[A-Za-z0-9._-]+")


def _operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in OPENAPI["paths"].items():
        for method, operation in item.items():
            if method != "servers":
                yield method, path, operation


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from _references(one)


async def test_every_route_is_described_and_no_other(gateway: WholeGateway) -> None:
    assert gateway.routes() == set(OPERATIONS)


async def test_who_may_ask_is_as_described(gateway: WholeGateway) -> None:
    for (method, path), operation in OPERATIONS.items():
        # a name for each part of the path; nothing that there is
        answer = await gateway.client.request(
            method, re.sub(r"\{\w+\}", "x", path), allow_redirects=False
        )
        text = await answer.text()
        if operation.login is LoginSpec.USER:
            assert answer.status == 401, (method, path, text)
            assert "WWW-Authenticate" in answer.headers
        elif operation.login is LoginSpec.GATEWAY:
            assert answer.status == 403, (method, path, text)
        elif 401 not in operation.errors:
            assert answer.status not in (401, 403), (method, path, text)
        assert answer.status != 500, text


def test_every_reference_leads_somewhere() -> None:
    found = set(_references(OPENAPI))
    assert len(found) > 50
    for reference in found:
        part: Any = OPENAPI
        for name in reference.removeprefix("#/").split("/"):
            part = part[name]
    for kind in ("schemas", "responses"):
        parts = {f"#/components/{kind}/{name}" for name in OPENAPI["components"][kind]}
        assert parts <= found, "one is not used"
        assert all(_KEY.fullmatch(name) for name in OPENAPI["components"][kind])


def test_every_part_of_a_path_is_a_parameter() -> None:
    for _, path, operation in _operations():
        declared = Counter(
            one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"
        )
        assert declared == Counter(re.findall(r"\{(\w+)\}", path)), path
        for one in operation.get("parameters", ()):
            assert one["required"] or one["in"] != "path"
            assert one["description"]


def test_operations_have_names_of_their_own_and_words() -> None:
    operations = [operation for _, _, operation in _operations()]
    names = [one["operationId"] for one in operations]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z][A-Za-z0-9]+", name) for name in names)
    assert all(one["summary"] and not one["summary"].endswith(".") for one in operations)
    assert {tag for one in operations for tag in one["tags"]} == set(TAGS)


def test_every_schema_is_one() -> None:
    for shape in SHAPES.values():
        Draft202012Validator.check_schema(shape)
    for _, _, operation in _operations():
        for one in operation.get("parameters", ()):
            Draft202012Validator.check_schema(one["schema"])


def test_every_security_scheme_is_defined_and_used() -> None:
    used = {name for _, _, one in _operations() for way in one["security"] for name in way}
    assert used == set(OPENAPI["components"]["securitySchemes"])


def test_statuses_are_those_of_errors() -> None:
    found = {status for one in OPERATIONS.values() for status in statuses_of_errors(one)}
    assert found == set(STATUS.values())
    told = json.dumps(OPENAPI["components"]["responses"])
    assert all(f"`{code}`" in told for code in STATUS)


@pytest.mark.parametrize("route", HEALTH_PORT, ids=lambda route: route[1])
def test_the_health_port_is_as_described(route: tuple[str, str]) -> None:
    described = OPENAPI["paths"][route[1]]["get"]["responses"]
    with Health("store", metrics_key="k" * 16) as health:
        port = f"http://127.0.0.1:{health.port}"
        for ready in (False, True):
            health.ready("start", ready)
            answer = httpx.get(port + route[1])
            content = described[str(answer.status_code)]["content"]
            kind = answer.headers["Content-Type"].partition(";")[0]
            assert kind in content
            if kind == "application/json":
                check_shape(content[kind]["schema"], answer.json())
        others = httpx.get(f"{port}/x").text.split()
        wrong = httpx.get(port + route[1], headers={"Authorization": "Bearer x"})
    assert set(others) == {path for _, path in HEALTH_PORT}
    assert str(wrong.status_code) in described
