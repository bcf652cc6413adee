"""A hostile peer on `/link`: without a key, with few rights, and with frames that are none. Others'
links go on.
"""

from __future__ import annotations

import base64
import json
import socket
from typing import Any

import pyarrow as pa
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as dial

from penstock.client.connection import Connection
from penstock.link.frames import pack
from penstock.mesh.running import RunningMesh
from tests.security.conftest import FOREIGN, OWN, PASSWORD, SECRET, Attacker
from tests.stack.federation_kit import link_to

#: frames that no honest peer sends: texts, then bytes
TEXTS = [
    "",
    "nonsense",
    "[]",
    "1",
    "null",
    "{}",
    '"x"',
    "[" * 100_000,
    '{"ch": 1e999}',
    '{"ch": "x"}',
    '{"ch": {}}',
    '{"ch": -1}',
    '{"ch": 1, "op": []}',
    '{"ch": 1, "op": {"a": 1}}',
    '{"ch": 1, "op": "__init__"}',
    '{"ch": 1, "op": "query"}',
    '{"ch": 1, "op": "query", "sql": 7}',
    '{"ch": 1, "op": "query", "sql": "SELECT 1", "credit": "x"}',
    '{"ch": 1, "op": "describe", "table": {"a": []}}',
    '{"ch": 1, "op": "subscribe", "sql": "SELECT", "from": "x"}',
    '{"ch": 1, "op": "append", "table": "\\ud800", "database": "own", "producer": 7}',
    '{"ch": 1, "op": "credit", "n": 1e999}',
    '{"ch": 99, "op": "credit", "n": 5}',
    '{"ch": 99, "op": "close"}',
    '{"ch": ' + "9" * 10_000 + "}",
    '{"ch": 1, "delete": {}}',
]
HEAD = b'{"ch": 1, "seq": 1}'
FRAMES = [
    b"",
    b"\0",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f" + HEAD,
    b"\0\0\0\0",
    len(HEAD).to_bytes(4, "little") + HEAD,
    len(HEAD).to_bytes(4, "little") + HEAD + b"nonsense",
    (4).to_bytes(4, "little") + b"\xff\xfe\x00\x01",
    (10**6).to_bytes(4, "little"),
    pack({"ch": 77, "seq": 1}, pa.table({"a": [1]})),
    pack({"ch": "x"}, pa.table({"a": [1]})),
    pack({}, pa.table({"a": [1]})),
]


def address(mesh: RunningMesh) -> str:
    return mesh.settings["PENSTOCK_FEDERATION_URL"] + "/link"


def key_of(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def opened(attacker: Attacker) -> ClientConnection:
    return dial(
        address(attacker.mesh),
        additional_headers=key_of(attacker.name, attacker.password or ""),
        open_timeout=60,
    )


def asked(link: ClientConnection, request: dict[str, Any]) -> dict[str, Any]:
    """Send *request* and return the first answer on its channel."""
    link.send(json.dumps(request))
    while True:
        said = link.recv(timeout=60)
        if isinstance(said, str) and json.loads(said).get("ch") == request["ch"]:
            answer: dict[str, Any] = json.loads(said)
            return answer


@pytest.mark.parametrize(
    "headers",
    [{}, key_of("root", "wrong"), key_of("nobody", PASSWORD), {"Authorization": "Bearer a.b.c"}],
)
def test_nobody_opens_a_link_without_a_key(
    mesh: RunningMesh, victims: Connection, headers: dict[str, str]
) -> None:
    with pytest.raises(InvalidStatus, match="401"):
        dial(address(mesh), additional_headers=headers, open_timeout=60)


def test_pages_other_paths_and_other_versions_are_refused(
    mesh: RunningMesh, victims: Connection
) -> None:
    key = key_of("stranger", PASSWORD)
    with pytest.raises(InvalidStatus, match="403"):
        dial(address(mesh), additional_headers=key, origin="http://evil.example", open_timeout=60)  # type: ignore[arg-type]
    with pytest.raises(InvalidStatus, match="404"):
        dial(address(mesh) + "/../link2", additional_headers=key, open_timeout=60)
    with pytest.raises(InvalidStatus, match="426"):
        dial(address(mesh), additional_headers={**key, "X-Penstock-Link": "99"}, open_timeout=60)


def test_huge_headers_end_their_own_connection(mesh: RunningMesh, victims: Connection) -> None:
    host, _, port = mesh.settings["PENSTOCK_FEDERATION_URL"].rpartition("//")[2].partition(":")
    for head in (b"X: " + b"a" * (8 << 20), b"X: a\r\n" * 200_000, b"\0" * 100_000):
        with socket.create_connection((host, int(port)), timeout=60) as raw:
            try:
                raw.sendall(b"GET /link HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n")
                answer = raw.recv(4096)
            except OSError:
                answer = b""
            assert b" 101 " not in answer
    with link_to(mesh) as link:
        assert link.query(f"SELECT who FROM {FOREIGN}.secrets").to_pylist() == [{"who": SECRET}]


def test_frames_that_are_none_cost_their_own_link_at_most(stranger: Attacker) -> None:
    mesh = stranger.mesh
    pid = mesh.state()["services"]["federation"]["pid"]
    with link_to(mesh) as honest:
        for frame in [*TEXTS, *FRAMES]:
            with opened(stranger) as link:
                try:
                    link.send(frame)
                    assert SECRET not in str(asked(link, {"ch": 5, "op": "information"}))
                except ConnectionClosed:
                    pass
            assert honest.query(f"SELECT who FROM {FOREIGN}.secrets").to_pylist() == [
                {"who": SECRET}
            ], frame[:50]
    assert mesh.state()["services"]["federation"]["pid"] == pid


@pytest.mark.parametrize("who", ["stranger", "reader", "writer", "creator"])
def test_a_link_has_the_rights_of_its_user(
    request: pytest.FixtureRequest, victims: Connection, who: str
) -> None:
    attacker: Attacker = request.getfixturevalue(who)
    attacks: list[dict[str, Any]] = [
        {"op": "query", "sql": f"SELECT who FROM {FOREIGN}.secrets"},
        {"op": "query", "sql": "SELECT who FROM secrets", "database": FOREIGN},
        {"op": "query", "sql": f"SELECT who FROM (SELECT who FROM {FOREIGN}.secrets)"},
        {"op": "describe", "table": "secrets", "database": FOREIGN},
        {"op": "subscribe", "sql": f"SELECT * FROM {FOREIGN}.secrets", "from": "earliest"},
        {"op": "append", "table": "secrets", "database": FOREIGN, "producer": "p"},
    ]
    if who != "writer":
        attacks.append({"op": "append", "table": "secrets", "database": OWN, "producer": "p"})
    if who != "reader":
        attacks.append({"op": "query", "sql": f"SELECT who FROM {OWN}.secrets"})
    with opened(attacker) as link:
        for number, attack in enumerate(attacks):
            answer = asked(link, {"ch": number, **attack})
            assert (answer["type"], answer["code"]) == ("error", "E_FORBIDDEN"), (attack, answer)
        assert FOREIGN not in str(asked(link, {"ch": 50, "op": "information"}))
        assert (
            asked(link, {"ch": 51, "op": "query", "sql": "SELECT 1", "as_user": "root"})["code"]
            == "E_REQUEST"
        )


def test_channels_and_credit_are_bounded(stranger: Attacker) -> None:
    with opened(stranger) as link:
        assert asked(link, {"ch": 1, "op": "information", "credit": -(10**30)})["type"] == "answer"
        assert asked(link, {"ch": 2, "op": "information", "credit": 10**30})["type"] == "answer"
