"""The attacks on a mesh whose endpoints speak TLS: nothing is answered in the clear, and what is
answered is no more than without TLS.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from penstock.client.connection import connect
from penstock.client.connection_options import ConnectionOptions
from penstock.mesh.running import RunningMesh
from tests.certificates import issued
from tests.security.conftest import FOREIGN, PASSWORD, SECRET, SERVICES
from tests.security.test_grants import ATTACKS
from tests.stack.endpoints_kit import mesh_without_jobs


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    made = issued(tmp_path_factory.mktemp("tls"))
    return {
        "PENSTOCK_TLS_CA": str(made.ca),
        "PENSTOCK_TLS_CERT": str(made.cert),
        "PENSTOCK_TLS_KEY": str(made.key),
    }


@pytest.fixture(scope="module")
def tls_mesh(tmp_path_factory: pytest.TempPathFactory, ca: dict[str, str]) -> Iterator[RunningMesh]:
    with mesh_without_jobs(
        tmp_path_factory.mktemp("mesh"), services=SERVICES, environment=ca
    ) as running:
        with connect(
            running.gateway_url,
            user="root",
            password=running.password,
            options=ConnectionOptions(ca=ca["PENSTOCK_TLS_CA"], timeout=150),
        ) as root:
            for database in (FOREIGN, "own"):
                root.execute(f"CREATE DATABASE {database}")
                root.execute(f"CREATE TABLE {database}.secrets (ts TIMESTAMP, who VARCHAR(32))")
            root.execute(f"INSERT INTO {FOREIGN}.secrets VALUES ('2026-03-01', '{SECRET}')")
            root.execute(f"CREATE USER stranger PASS '{PASSWORD}'")
        yield running


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(
    "key", [None, ("root", "wrong"), ("stranger", PASSWORD)], ids=["none", "wrong", "stranger"]
)
def test_grants_hold_behind_tls(
    tls_mesh: RunningMesh, ca: dict[str, str], key: tuple[str, str] | None, attack: str
) -> None:
    trusted = ssl.create_default_context(cafile=ca["PENSTOCK_TLS_CA"])
    with httpx.Client(
        base_url=tls_mesh.gateway_url, auth=key, timeout=60, verify=trusted
    ) as client:
        answer = client.post("/rest/sql", content=attack.encode())
    # many wrong passwords of one address are refused unread
    allowed = {None: (401,), ("root", "wrong"): (401, 429)}.get(key, (403,))
    assert answer.status_code in allowed, answer.text
    assert SECRET not in answer.text


def endpoints(mesh: RunningMesh) -> list[tuple[str, int]]:
    urls = [
        mesh.gateway_url,
        mesh.notifier_url,
        mesh.store_url,
        mesh.settings["PENSTOCK_FEDERATION_URL"],
    ]
    return [(u.hostname or "", u.port or 0) for u in map(urlsplit, urls)]


def test_no_endpoint_answers_in_the_clear(tls_mesh: RunningMesh) -> None:
    for place in endpoints(tls_mesh):
        with socket.create_connection(place, timeout=30) as raw:
            try:
                raw.sendall(b"GET /v1/info HTTP/1.1\r\nHost: x\r\n\r\n")
                answer = raw.recv(4096)
            except OSError:
                answer = b""
        assert b"HTTP/1.1 2" not in answer and b"penstock" not in answer.lower(), (place, answer)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_no_endpoint_speaks_old_versions(tls_mesh: RunningMesh) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname = False
    old.verify_mode = ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    for place in endpoints(tls_mesh):
        with socket.create_connection(place, timeout=30) as raw, pytest.raises(OSError):
            old.wrap_socket(raw)


def test_half_a_handshake_stops_nobody(tls_mesh: RunningMesh, ca: dict[str, str]) -> None:
    trusted = ssl.create_default_context(cafile=ca["PENSTOCK_TLS_CA"])
    begun = [
        socket.create_connection(place, timeout=30)
        for place in endpoints(tls_mesh)
        for _ in range(20)
    ]
    try:
        for raw in begun:
            raw.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        answer = httpx.post(
            f"{tls_mesh.gateway_url}/rest/sql",
            content=f"SELECT who FROM {FOREIGN}.secrets",
            auth=("root", tls_mesh.password),
            verify=trusted,
            timeout=60,
        )
        assert answer.json()["data"] == [[SECRET]]
    finally:
        for raw in begun:
            raw.close()
