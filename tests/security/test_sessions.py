"""Tokens and sessions on a mesh: what they can make, what they cannot, and that a log-out ends
them.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterator

import httpx
import jwt
import pytest

from penstock.cli.login_link import login_link
from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.mesh.running import RunningMesh
from tests.stack.endpoints_kit import PASSWORD, mesh_without_jobs

COOKIE = "penstock_session"


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with mesh_without_jobs(tmp_path_factory.mktemp("mesh")) as running:
        yield running


@pytest.fixture(scope="module")
def root(mesh: RunningMesh) -> Iterator[Connection]:
    with connect(
        mesh.gateway_url,
        user="root",
        password=mesh.password,
        options=ConnectionOptions(timeout=150),
    ) as client:
        client.execute(f"CREATE USER ann PASS '{PASSWORD}'")
        yield client


def token_of(mesh: RunningMesh, seconds: int) -> str:
    answer = httpx.post(
        f"{mesh.gateway_url}/v1/tokens", auth=("ann", PASSWORD), json={"seconds": seconds}
    )
    return str(answer.json()["token"])


def sql(mesh: RunningMesh, text: str, token: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.post(f"{mesh.gateway_url}/v1/query", content=text, headers=headers, timeout=60)


def test_a_short_token_makes_no_longer_one(mesh: RunningMesh, root: Connection) -> None:
    headers = {"Authorization": f"Bearer {token_of(mesh, 60)}"}
    url = f"{mesh.gateway_url}/v1/tokens"
    long = httpx.post(url, headers=headers, json={"seconds": 366 * 86_400})
    assert long.status_code == 403 and long.json()["error"]["code"] == "E_FORBIDDEN"
    answer = httpx.post(url, headers=headers)
    assert answer.status_code == 200 and answer.json()["expires"] <= time.time() + 60
    assert sql(mesh, "SHOW DATABASES", answer.json()["token"]).status_code == 200


@pytest.mark.parametrize("name", ["ann", "ANN"])
def test_a_token_does_not_change_its_owners_password(
    mesh: RunningMesh, root: Connection, name: str
) -> None:
    answer = sql(mesh, f"ALTER USER {name} PASS 'somebody elses now'", token_of(mesh, 60))
    assert answer.status_code == 403 and answer.json()["error"]["code"] == "E_FORBIDDEN", (
        answer.text
    )
    with connect(mesh.gateway_url, user="ann", password=PASSWORD) as client:
        client.execute(f"ALTER USER {name} PASS '{PASSWORD}'")


def test_whoever_knows_roots_password_signs_nothing(mesh: RunningMesh) -> None:
    claims = {
        "iss": "penstock",
        "sub": "root",
        "mrk": "",
        "aud": "access",
        "jti": "1",
        "exp": int(time.time()) + 60,
    }
    key = hmac.digest(mesh.password.encode(), b"penstock tokens", "sha256")
    for signed_with in (key, mesh.password.encode() * 2):
        assert (
            sql(
                mesh, "SHOW DATABASES", jwt.encode(claims, signed_with, algorithm="HS256")
            ).status_code
            == 401
        )
    assert mesh.layout.token_key.stat().st_mode & 0o077 == 0


def test_a_session_ends_with_the_log_out_also_for_who_kept_the_cookie(mesh: RunningMesh) -> None:
    link = login_link(mesh.layout, mesh.gateway_url)
    assert httpx.head(link).status_code == 405
    entered = httpx.get(link)
    assert entered.status_code == 303
    assert httpx.get(link).status_code == 401  # it was opened before
    cookies = {COOKIE: entered.cookies[COOKIE]}
    assert httpx.get(f"{mesh.gateway_url}/v1/info", cookies=cookies).status_code == 200
    # a session is no token of any service
    assert sql(mesh, "SHOW DATABASES", cookies[COOKIE]).status_code == 401
    long = httpx.post(f"{mesh.gateway_url}/v1/tokens", cookies=cookies, json={"seconds": 86_400})
    assert long.status_code == 403
    assert httpx.post(f"{mesh.gateway_url}/v1/logout", cookies=cookies).status_code == 200
    assert httpx.get(f"{mesh.gateway_url}/v1/info", cookies=cookies).status_code == 401
    pid = mesh.kill("gateway")
    mesh.wait_ready("gateway", not_pid=pid)
    assert httpx.get(f"{mesh.gateway_url}/v1/info", cookies=cookies).status_code == 401
