"""Sockets of a mesh: every channel of the AsyncAPI document, and the PostgreSQL wire, which is in no
document. Mutated bytes go to them in `test_mutated_bytes`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as dial
from websockets.typing import Origin, Subprotocol

from gateway.api.channel import ServerSpec
from gateway.api.channels import CHANNELS
from gateway.wires.tdengine.socket import MOST_UNKNOWN
from penstock.client.connection import Connection
from penstock.mesh.running import RunningMesh
from tests.security.conftest import FOREIGN, OWN, PAGE, SECRET, Attacker
from tests.stack.postgres_kit import PgClient

#: sockets that somebody can connect to; those that we connect to are in `test_outbound`
SOCKETS = {
    (ServerSpec.GATEWAY, "/v1/ingest"),
    (ServerSpec.GATEWAY, "/v1/follow"),
    (ServerSpec.GATEWAY, "/ws"),
    (ServerSpec.NOTIFIER, "/ws"),
}


def _dial(mesh: RunningMesh, server: ServerSpec, path: str, **more: Any) -> ClientConnection:
    urls = {ServerSpec.GATEWAY: mesh.gateway_url, ServerSpec.NOTIFIER: mesh.notifier_url}
    return dial(urls[server].replace("http", "ws", 1) + path, open_timeout=60, **more)


def _page(mesh: RunningMesh, *offered: str, origin: str = PAGE) -> ClientConnection:
    """Connect as a page of a browser does."""
    protocols = [Subprotocol(name) for name in offered]
    return _dial(
        mesh, ServerSpec.NOTIFIER, "/ws", origin=Origin(origin), subprotocols=protocols or None
    )


def test_these_are_all_sockets() -> None:
    found = {
        (channel.server, channel.address)
        for channel in CHANNELS
        if channel.server in (ServerSpec.GATEWAY, ServerSpec.NOTIFIER)
    }
    assert found == SOCKETS


@pytest.mark.parametrize(("server", "path"), sorted(SOCKETS, key=str))
def test_a_wrong_key_opens_no_socket(
    mesh: RunningMesh, victims: Connection, server: ServerSpec, path: str
) -> None:
    wrong = ["Bearer a.b.c", "Bearer sockets:wrong", "Basic eDp5", "Negotiate x"]
    for header in wrong:
        with pytest.raises(InvalidStatus, match="401"):
            _dial(mesh, server, path, additional_headers={"Authorization": header})
    if (server, path) != (ServerSpec.GATEWAY, "/ws"):  # there the first message logs in
        with pytest.raises(InvalidStatus, match="401"):
            _dial(mesh, server, path)
    with pytest.raises(InvalidStatus, match="403"):
        _dial(mesh, server, path, origin=Origin("https://evil.example"))


# ---------------------------------------------------------------- TDengine


def test_a_large_message_before_the_login_ends_the_connection(mesh: RunningMesh) -> None:
    """Else an address could have the gateway hold megabytes for each of its connections."""
    with _dial(mesh, ServerSpec.GATEWAY, "/ws") as socket:
        with pytest.raises(ConnectionClosed) as closed:
            socket.send("x" * (4 * MOST_UNKNOWN))
            socket.recv(60)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (
            1009,
            "log in before you send this much",
        )


# ---------------------------------------------------------------- pages at the notifier


def _token(attacker: Attacker, seconds: int = 60) -> str:
    with attacker.http() as client:
        return str(client.post("/v1/tokens", json={"seconds": seconds}).json()["token"])


def test_a_page_sees_what_its_token_may_and_no_more(
    reader: Attacker, stranger: Attacker, victims: Connection
) -> None:
    for attacker, allowed in ((reader, True), (stranger, False)):
        with _page(attacker.mesh, "penstock", f"bearer.{_token(attacker)}") as socket:
            for database in (FOREIGN, OWN):
                asked = {"action": "subscribe", "id": "a", "table": f"{database}.secrets"}
                socket.send(json.dumps(asked | {"from": "earliest"}))
                told = json.loads(socket.recv(60))
                mine = allowed and database == OWN
                assert told["type" if mine else "code"] == (
                    "subscribed" if mine else "E_FORBIDDEN"
                ), told
                assert SECRET not in str(told)


def test_a_page_without_a_good_token_stays_out(reader: Attacker) -> None:
    for offered in (("penstock", "bearer.a.b.c"), ("bearer.guess",), ("other",), ()):
        with pytest.raises(InvalidStatus, match="401"):
            _page(reader.mesh, *offered)
    with pytest.raises(InvalidStatus, match="403"):
        _page(reader.mesh, "penstock", f"bearer.{_token(reader)}", origin="https://evil.example")
    for first in ('{"action": "login", "token": "a.b.c"}', "[" * 100_000, "\0"):
        with _page(reader.mesh, "penstock") as socket:
            socket.send(first)
            assert json.loads(socket.recv(60))["code"] == "E_AUTH"
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(60)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008


def test_a_page_is_closed_when_its_token_ends(reader: Attacker) -> None:
    with _page(reader.mesh, "penstock", f"bearer.{_token(reader, seconds=2)}") as socket:
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(60)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (
            1008,
            "the token has expired",
        )


# ---------------------------------------------------------------- PostgreSQL


def _pg(attacker: Attacker, password: str | None = None) -> PgClient:
    port = attacker.mesh.state()["ports"]["postgres"]
    return PgClient(port, attacker.name, password or attacker.password or "guess")


def test_the_postgresql_wire_opens_no_foreign_database(
    anyone: Attacker, victims: Connection
) -> None:
    client = _pg(anyone)
    if anyone.password is None:
        assert client.begun.ended and client.begun.error["C"] == "28P01"
        return
    for sql in (
        f"SELECT who FROM {FOREIGN}.secrets",
        f"SELECT who FROM {FOREIGN}.nothing",
        f"SELECT (SELECT count(*) FROM {FOREIGN}.secrets) FROM pg_catalog.pg_class",
        f"EXPLAIN SELECT who FROM {FOREIGN}.secrets",
        f"INSERT INTO {FOREIGN}.secrets VALUES (NOW, 'x')",
        "CREATE DATABASE mallory",
        "SELECT * FROM pg_catalog.pg_read_file('/etc/passwd')",
        "COPY (SELECT 1) TO PROGRAM 'true'",
    ):
        reply = client.query(sql)
        assert reply.error and not reply.rows, (sql, reply)
        assert SECRET not in str(reply)
    for sql in (
        "SELECT relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        f" ON n.oid = c.relnamespace WHERE nspname = '{FOREIGN}'",
        f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{FOREIGN}'",
        f"SELECT usename FROM pg_user WHERE usename NOT IN ('{anyone.name}', 'root')",
    ):
        reply = client.query(sql)
        assert (reply.error, reply.rows) == ({}, []), sql
    client.close()
    assert victims.query(f"SELECT who FROM {FOREIGN}.secrets").rows == [(SECRET,)]
    assert ("mallory",) not in victims.query("SHOW DATABASES").rows


def test_a_wrong_password_opens_no_postgresql(reader: Attacker, stranger: Attacker) -> None:
    for password in ("wrong", "a.b.c", _token(stranger), "\ud7ff"):
        begun = _pg(reader, password).begun
        assert begun.ended and begun.error["C"] == "28P01" and begun.kinds == "E"
