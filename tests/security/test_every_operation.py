"""Every operation of the gateway's OpenAPI document, so that a new one is here by itself: without a
key, with a wrong one, and with bytes that are none of what it takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from gateway.api.operation import LoginSpec, Route
from gateway.api.operations import OPERATIONS
from penstock.client.connection import Connection
from penstock.mesh.running import RunningMesh
from tests.security.conftest import FOREIGN, OWN, SECRET

#: what is answered to anybody, or asks for something else than a user's key
OPEN = {
    ("GET", "/"),
    ("GET", "/console"),
    ("GET", "/console/"),
    ("GET", "/console/{version}/{name}"),
    ("GET", "/health"),
    ("GET", "/influxdb/v1/ping"),
    ("GET", "/login"),
    ("GET", "/ping"),
    ("GET", "/ready"),
    ("GET", "/rest/login/{user}/{password}"),
    ("GET", "/ws"),
    ("POST", "/internal/ddl"),
    ("POST", "/v1/login"),
    ("POST", "/v1/logout"),
}
OF_USERS = sorted(
    route for route, operation in OPERATIONS.items() if operation.login is LoginSpec.USER
)
#: how a wrong key is sent
KEYS: dict[str, dict[str, Any]] = {
    "none": {},
    "password": {"auth": ("root", "wrong")},
    "token": {"headers": {"Authorization": "Bearer a.b.c"}},
    "token in the URL": {"params": {"token": "a.b.c"}},
    "password in the URL": {"params": {"u": "root", "p": "wrong"}},
    "cookie": {"cookies": {"penstock_session": "guess"}},
}
#: wrong keys of one address; it may only try so many in a minute
_TRIES = 15
HOSTILE = {
    "nothing": b"",
    "every byte": bytes(range(256)) * 4,
    "nulls": b"\0" * 64,
    "lists": b"[" * 10_000,
    "objects": b'{"a":' * 5_000,
    "half an object": b'{"sql": "SELECT 1',
    "half a character": b'{"sql": "\\ud83d", "schema": "\\ud83d"}',
    "numbers": b'{"sql": 1, "schema": 1e999, "seconds": NaN, "compatibility": []}',
    "varints": b"\xff" * 4096,
}


def _shape(route: Route) -> Route:
    """Return a route with the names of its parts alone."""
    method, path = route
    return method, re.sub(r"\{(\w+)[^}]*\}", r"{\1}", path)


def _path(route: Route, database: str) -> str:
    """Return the path of *route* for the table `secrets` of a database."""
    parts = {
        "db": database,
        "table": "secrets",
        "subject": f"in.{database}-secrets",
        "version": "latest",
    }
    return re.sub(r"\{(\w+)[^}]*\}", lambda part: parts.get(part[1], "1"), route[1])


def test_only_these_ask_for_no_key() -> None:
    others = {
        _shape(route)
        for route, operation in OPERATIONS.items()
        if operation.login is not LoginSpec.USER
    }
    assert others == OPEN


@pytest.mark.parametrize("key", KEYS)
def test_no_operation_answers_without_the_right_key(
    mesh: RunningMesh, victims: Connection, key: str
) -> None:
    number = list(KEYS).index(key) + 1
    for first in range(0, len(OF_USERS), _TRIES):
        address = httpx.HTTPTransport(local_address=f"127.0.{number}.{first // _TRIES + 1}")
        with httpx.Client(
            base_url=mesh.gateway_url, transport=address, timeout=60, **KEYS[key]
        ) as client:
            for route in OF_USERS[first : first + _TRIES]:
                answer = client.request(route[0], _path(route, FOREIGN), content=b"{}")
                assert answer.status_code == 401, (route, answer.text)
                assert SECRET not in answer.text


def _defined(root: Connection) -> list[Any]:
    """Return everything there is, as the owner sees it."""
    return [
        sorted(map(str, root.query(sql).rows))
        for sql in ("SHOW DATABASES", f"SHOW {FOREIGN}.TABLES", f"SHOW {OWN}.TABLES", "SHOW USERS")
    ]


def _bodies() -> Iterator[tuple[Route, str]]:
    """Every operation that takes a body, with each kind of it."""
    for route, operation in sorted(OPERATIONS.items()):
        if operation.body is not None:
            yield from ((route, kind) for kind in operation.body.content)


@pytest.mark.parametrize("encoding", [None, "gzip", "snappy", "zstd"])
def test_hostile_bytes_are_refused(
    mesh: RunningMesh, victims: Connection, encoding: str | None
) -> None:
    """Root sends them, so that nothing but the bytes is refused."""
    before = mesh.pid("gateway")
    defined = _defined(victims)
    with httpx.Client(
        base_url=mesh.gateway_url, auth=("root", mesh.password), timeout=60
    ) as client:
        for route, kind in _bodies():
            headers = {"Content-Type": kind} | ({"Content-Encoding": encoding} if encoding else {})
            for name, body in HOSTILE.items():
                try:
                    answer = client.request(
                        route[0],
                        _path(route, OWN),
                        params={"db": OWN, "bucket": OWN},
                        content=body,
                        headers=headers,
                    )
                except httpx.TransportError:
                    # a body that is not what its Content-Encoding says may end the connection
                    assert encoding is not None, (route, kind, name)
                    continue
                assert answer.status_code < 500, (route, kind, name, answer.text)
                assert "Traceback" not in answer.text and SECRET not in answer.text
    assert mesh.pid("gateway") == before
    assert _defined(victims) == defined
