"""Databases behind the wires of others: what SQL does not show, they do not show either."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as dial

from penstock.client.connection import Connection
from penstock.mesh.running import RunningMesh
from tests.security.conftest import FOREIGN, OWN, SECRET, Attacker

#: method, path and body
ATTACKS = [
    ("GET", f"/query?db={FOREIGN}&q=SELECT+who+FROM+secrets", ""),
    ("GET", f"/query?db={OWN}&q=SELECT+last(who)+FROM+{FOREIGN}..secrets", ""),
    ("GET", f"/query?db={OWN}&q=SHOW+MEASUREMENTS+ON+{FOREIGN}", ""),
    ("GET", f"/query?q=SHOW+TAG+VALUES+ON+{FOREIGN}+FROM+secrets+WITH+KEY+%3D+who", ""),
    ("GET", f"/query?q=SHOW+RETENTION+POLICIES+ON+{FOREIGN}", ""),
    ("POST", f"/query?q=DROP+DATABASE+{FOREIGN}", ""),
    ("POST", "/query?q=CREATE+DATABASE+mallory", ""),
    ("POST", "/api/v2/buckets", '{"name": "mallory"}'),
    ("POST", f"/write?db={FOREIGN}", "secrets who=1"),
    ("POST", f"/api/v2/write?bucket={FOREIGN}", "made who=1"),
    ("POST", f"/opentsdb/v1/put/telnet/{FOREIGN}", "secrets 1772323200 1 who=x"),
    ("POST", f"/opentsdb/v1/put/json/{FOREIGN}", "[]"),
    ("POST", f"/api/v1/write?db={FOREIGN}", "x"),
    ("POST", f"/v1/metrics?db={FOREIGN}", "{}"),
    ("POST", f"/rest/sqlt/{FOREIGN}", "SELECT who FROM secrets"),
    ("POST", f"/rest/sqlutc/{OWN}", f"INSERT INTO {FOREIGN}.secrets VALUES (NOW, 'x')"),
]


@pytest.mark.parametrize(("method", "path", "body"), ATTACKS)
def test_a_foreign_database_stays_closed(
    anyone: Attacker, victims: Connection, method: str, path: str, body: str
) -> None:
    with anyone.http() as client:
        answer = client.request(method, path, content=body.encode())
    assert answer.status_code == (401 if anyone.password is None else 403), answer.text
    assert SECRET not in answer.text
    assert victims.query(f"SELECT who FROM {FOREIGN}.secrets").rows == [(SECRET,)]
    assert ("mallory",) not in victims.query("SHOW DATABASES").rows


def test_a_wrong_key_opens_nothing(mesh: RunningMesh, victims: Connection) -> None:
    # once for each path: of wrong keys there may only be so many in a minute
    paths = {path.partition("?")[0]: path for _, path, _ in ATTACKS}
    for path in (*paths.values(), "/api/v2/orgs"):
        method = "GET" if path == "/api/v2/orgs" else "POST"
        answer = httpx.request(method, mesh.gateway_url + path, auth=("wires", "wrong"))
        assert answer.status_code == 401, answer.text


def test_lists_leave_out_what_is_not_ones_own(anyone: Attacker) -> None:
    with anyone.http() as client:
        for path in ("/query?q=SHOW+DATABASES", "/api/v2/buckets"):
            answer = client.get(path)
            assert answer.status_code == (401 if anyone.password is None else 200)
            assert FOREIGN not in answer.text, path


def _ask(socket: ClientConnection, action: str, **args: Any) -> dict[str, Any]:
    socket.send(json.dumps({"action": action, "args": {"req_id": 1, **args}}))
    reply: dict[str, Any] = json.loads(socket.recv(60))
    assert SECRET not in str(reply)
    return reply


def test_tdengines_socket_opens_no_foreign_database(anyone: Attacker, victims: Connection) -> None:
    """Who logs in, or does not, gets as much as over REST."""
    url = anyone.mesh.gateway_url.replace("http", "ws", 1) + "/ws"
    with dial(url, open_timeout=60) as socket:
        logged_in = _ask(socket, "conn", user=anyone.name, password=anyone.password or "guess")
        assert (logged_in["code"] == 0) is (anyone.password is not None)
        refused = 0x2644 if anyone.password is not None else 0x0357
        for sql in (
            f"SELECT who FROM {FOREIGN}.secrets",
            f"INSERT INTO {FOREIGN}.secrets VALUES (NOW, 'x')",
            "CREATE DATABASE mallory",
        ):
            assert _ask(socket, "query", sql=sql)["code"] == refused, sql
        number = _ask(socket, "stmt2_init").get("stmt_id", 1)
        text = f"INSERT INTO {FOREIGN}.secrets VALUES (?, ?)"
        told = _ask(socket, "stmt2_prepare", stmt_id=number, sql=text, get_fields=True)
        assert told["code"] == refused
        assert _ask(socket, "fetch", id=1)["code"] != 0
    assert victims.query(f"SELECT who FROM {FOREIGN}.secrets").rows == [(SECRET,)]
