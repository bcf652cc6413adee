"""Cheap attacks on the mesh in containers: without a key on its published ports, and by who may
look at containers and logs.
"""

from __future__ import annotations

import ipaddress
import json

import httpx
import pyarrow.flight as flight
import pytest
import redis
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as dial

from tests.backends import RunningStack

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]


def every_container(stack: RunningStack) -> list[str]:
    """Names of the stack's containers, those that have ended too."""
    found = stack.docker.containers.list(
        all=True, filters={"label": f"com.docker.compose.project={stack.name}"}
    )
    return [str(c.name) for c in found]


def test_no_port_is_published_beyond_loopback(stack: RunningStack) -> None:
    published = []
    for name in every_container(stack):
        ports = stack.docker.containers.get(name).attrs["NetworkSettings"]["Ports"] or {}
        published += [
            (name, binding["HostIp"]) for bindings in ports.values() for binding in bindings or []
        ]
    assert published
    assert [p for p in published if not ipaddress.ip_address(p[1]).is_loopback] == []


def test_nobody_is_answered_without_a_key(stack: RunningStack) -> None:
    asked = httpx.post(f"{stack.gateway_url}/rest/sql", content="SHOW DATABASES", timeout=30)
    assert asked.status_code == 401
    assert "E_AUTH" in asked.text
    federation = f"ws://{stack.host}:{stack.variables['STACK_FEDERATION_PORT']}/link"
    for url in (f"{stack.notifier_url}/ws", federation):
        with pytest.raises(InvalidStatus, match="401"):
            dial(url, open_timeout=30).close()
    ticket = flight.Ticket(json.dumps({"sql": "SELECT 1"}).encode())
    with (
        flight.FlightClient(stack.store_url) as client,
        pytest.raises(flight.FlightUnauthenticatedError, match="E_AUTH"),
    ):
        client.do_get(ticket, flight.FlightCallOptions(timeout=30)).read_all()
    port = int(stack.variables["STACK_REDIS_PORT"])
    with (
        redis.Redis(stack.host, port, socket_timeout=30) as server,
        pytest.raises(redis.AuthenticationError),
    ):
        server.keys("*")


def test_containers_and_their_logs_tell_no_secret(stack: RunningStack) -> None:
    secrets = {
        path.name: path.read_text(encoding="utf-8").strip()
        for path in (stack.directory / "secrets").iterdir()
    }
    assert secrets
    for name in every_container(stack):
        container = stack.docker.containers.get(name)
        inspected = json.dumps(container.attrs)
        told = container.logs().decode(errors="replace")
        for secret, value in secrets.items():
            assert value not in inspected, f"{secret} can be read by inspecting {name}"
            assert value not in told, f"{secret} is in the log of {name}"
