"""Endpoints behind TLS, by an authority that the test makes; tokens; and the link that logs a browser
in once.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow.flight as flight
import pytest
from websockets.sync.client import connect as dial

import penstock
from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.client.table_handles import arrow_rows
from penstock.client.wire import to_stream
from penstock.errors import AuthError, PenstockError, RemoteError
from penstock.mesh.running import RunningMesh, running_mesh
from tests.certificates import issued
from tests.stack.conftest import PATIENT, eventually

SERVICES = ("kafka", "redis", "gateway", "store", "notifier")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    made = issued(tmp_path_factory.mktemp("tls"))
    return {
        "PENSTOCK_TLS_CA": str(made.ca),
        "PENSTOCK_TLS_CERT": str(made.cert),
        "PENSTOCK_TLS_KEY": str(made.key),
    }


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]) -> Iterator[RunningMesh]:
    environment = {
        **PATIENT,
        **files,
        "PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false",
        "PENSTOCK_GATEWAY_MAX_OPEN_PER_ADDRESS": "8",
    }
    with running_mesh(
        tmp_path_factory.mktemp("mesh"), services=SERVICES, environment=environment, nodes=3
    ) as running:
        yield running


@pytest.fixture(scope="module")
def ca(files: dict[str, str]) -> str:
    return files["PENSTOCK_TLS_CA"]


@pytest.fixture(scope="module")
def root(mesh: RunningMesh, ca: str) -> Iterator[Connection]:
    with connect(
        mesh.gateway_url,
        user="root",
        password=mesh.password,
        options=ConnectionOptions(ca=ca, timeout=150),
    ) as client:
        client.execute(
            "CREATE DATABASE plant; CREATE TABLE plant.t (ts TIMESTAMP, v INT); INSERT INTO plant.t VALUES (now, 1)"
        )
        yield client


def browser(ca: str, **options: object) -> httpx.Client:
    return httpx.Client(verify=ssl.create_default_context(cafile=ca), timeout=60, **options)  # type: ignore[arg-type]


def test_every_endpoint_speaks_tls_and_services_trust_each_other(
    mesh: RunningMesh, root: Connection, ca: str
) -> None:
    assert (
        mesh.gateway_url.startswith("https://")
        and mesh.notifier_url.startswith("wss://")
        and mesh.store_url.startswith("grpc+tls://")
    )
    assert root.query("SELECT count(*) FROM plant.t").rows == [(1,)]  # gateway to store
    with root.subscribe("plant.t").open() as rows, root.writer("plant.t") as writer:
        writer.write([{"ts": "2026-03-01T00:00:00Z", "v": 7}])
        writer.flush()
        assert rows.next(60).items[0]["v"] == 7


def test_nobody_answers_in_the_clear_or_to_who_does_not_trust(
    mesh: RunningMesh, root: Connection, ca: str
) -> None:
    with pytest.raises(httpx.HTTPError):
        httpx.get(mesh.gateway_url.replace("https", "http") + "/ping", timeout=10)
    with pytest.raises(RemoteError):
        connect(
            mesh.gateway_url,
            user="root",
            password=mesh.password,
            options=ConnectionOptions(timeout=10),
        )  # an authority that it does not know
    with pytest.raises(ssl.SSLError):
        dial(mesh.notifier_url + "/ws", open_timeout=10)
    with pytest.raises((OSError, EOFError, Exception), match="."):
        dial(mesh.notifier_url.replace("wss", "ws") + "/ws", open_timeout=10)
    options = flight.FlightCallOptions(timeout=5)
    for url, trusted in ((mesh.store_url, {}), (mesh.store_url.replace("grpc+tls", "grpc"), {})):
        with pytest.raises(flight.FlightError), flight.FlightClient(url, **trusted) as client:
            client.do_get(
                flight.Ticket(json.dumps({"sql": "SELECT 1"}).encode()), options
            ).read_all()


def test_nodes_of_stream_tables_speak_tls_with_clients_and_each_other(
    mesh: RunningMesh, root: Connection, ca: str
) -> None:
    table = root.ha.create(
        11, penstock.table(["ts", "v"], ["TIMESTAMP", "INT"]), "plant.stream", 1000
    )
    assert table.append([{"ts": "2026-03-01T00:00:00Z", "v": 1}]) == 1
    root.execute("INSERT INTO plant.stream VALUES (now, 2)")  # by way of the gateway
    assert mesh.node_url("NODE1").startswith("https://")
    body = to_stream(
        arrow_rows([{"ts": "2026-03-01T00:00:00Z", "v": 3}], table.schema),
        {"penstock.producer": "me", "penstock.seq": "1"},
    )
    for node in ("NODE1", "NODE2", "NODE3"):  # by way of each other
        url = f"{mesh.node_url(node)}/v1/tables/plant/stream/rows"
        with browser(ca) as client:
            assert client.post(url, content=body, auth=("root", mesh.password)).json()["rows"] == 1
        with pytest.raises(httpx.HTTPError):
            httpx.get(url, timeout=10)
        with pytest.raises(httpx.HTTPError):
            httpx.get(url.replace("https", "http"), timeout=10)
    got: list[int] = []
    root.ha.subscribe(
        "plant.stream",
        lambda m: got.extend(m.table.column("v").to_pylist()),
        "a",
        offset=0,
        server="NODE2",
        options=penstock.SubscriptionOptions(msg_as_table=True, reconnect=True),
    )
    eventually(lambda: got == [1, 2, 3])
    first = root.ha.leader(11)
    mesh.kill(first.lower())
    table.append([{"ts": "2026-03-01T00:00:00Z", "v": 4}])
    eventually(lambda: got == [1, 2, 3, 4])
    root.ha.unsubscribe("plant.stream", "a")
    root.ha.drop("plant.stream")
    mesh.wait_ready(first.lower())


def test_the_command_line_trusts_what_the_services_trust(
    mesh: RunningMesh, root: Connection, files: dict[str, str]
) -> None:
    command = [
        sys.executable,
        "-m",
        "penstock.cli",
        "sql",
        "SELECT v FROM plant.t WHERE v = 1",
        "--data-dir",
        str(mesh.layout.root),
    ]
    done = subprocess.run(
        command, env={"PATH": "/usr/bin:/bin", **files}, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["v", "-", "1"], done.stderr


def test_tokens(mesh: RunningMesh, root: Connection, ca: str) -> None:
    root.execute("CREATE USER ann PASS 'anns password'; GRANT READ ON plant.t TO ann")
    with connect(
        mesh.gateway_url, user="ann", password="anns password", options=ConnectionOptions(ca=ca)
    ) as ann:
        token = ann.token(3600)
    with connect(mesh.gateway_url, token=token, options=ConnectionOptions(ca=ca)) as ann:
        assert ann.query("SELECT current_user()").rows == [("ann",)]
        with ann.subscribe("plant.t", start="earliest") as rows:
            assert rows.next(60).items
        with pytest.raises(AuthError, match="WRITE on table plant.t"):
            ann.write("plant.t", [{"ts": 1, "v": 1}])
        options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])
        with flight.FlightClient(mesh.store_url, tls_root_certs=Path(ca).read_bytes()) as client:
            eventually(
                lambda: (
                    client.do_get(flight.Ticket(b"SELECT v FROM plant.t"), options)
                    .read_all()
                    .num_rows
                )
            )
        root.execute("REVOKE TOKENS FROM ann")
        with pytest.raises(AuthError):
            ann.query("SELECT v FROM plant.t")
    with pytest.raises(AuthError):
        connect(mesh.gateway_url, token=token, options=ConnectionOptions(ca=ca))
    for seconds in (0, 10**9):
        with pytest.raises(PenstockError, match="1 second to 366 days"):
            root.token(seconds)


def test_the_link_of_the_mesh_logs_a_browser_in_once(
    mesh: RunningMesh, root: Connection, ca: str
) -> None:
    command = [sys.executable, "-m", "penstock.cli", "login", "--data-dir", str(mesh.layout.root)]
    link = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    assert link.startswith(f"{mesh.gateway_url}/login?token=")
    with browser(ca) as first:
        answer = first.get(link)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Secure"))
        assert first.post(mesh.gateway_url + "/rest/sql", content="SELECT current_user()").json()[
            "data"
        ] == [["root"]]
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert first.post(
                mesh.gateway_url + "/rest/sql", content="SELECT 1", headers=headers
            ).status_code in (401, 403)
        first.post(mesh.gateway_url + "/v1/logout")
        assert first.post(mesh.gateway_url + "/rest/sql", content="SELECT 1").status_code == 401
    with browser(ca) as second:
        assert second.get(link).status_code == 401
        # nor is it a token for anything else
        headers = {"Authorization": "Bearer " + link.partition("token=")[2]}
        assert (
            second.post(
                mesh.gateway_url + "/rest/sql", content="SELECT 1", headers=headers
            ).status_code
            == 401
        )


def test_one_address_may_not_hold_all_connections(
    mesh: RunningMesh, root: Connection, ca: str
) -> None:
    context = ssl.create_default_context(cafile=ca)
    url = mesh.gateway_url.replace("https", "wss") + "/v1/ingest"
    held = []
    try:
        with pytest.raises(Exception, match="429"):
            for _ in range(9):
                held.append(
                    dial(
                        url,
                        ssl=context,
                        additional_headers={"Authorization": f"Bearer root:{mesh.password}"},
                    )
                )
    finally:
        for socket in held:
            socket.close()
    eventually(lambda: root.query("SELECT 1").rows)


def test_the_doctor_finds_nothing_bad(
    mesh: RunningMesh, root: Connection, files: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "penstock.cli", "doctor", "--data-dir", str(mesh.layout.root)]
    done = subprocess.run(
        command, env={"PATH": "/usr/bin:/bin", **files}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and "bad" not in done.stdout, done.stdout + done.stderr
    for words in (
        "gateway is ready",
        "no dead letters",
        "there are no streams",
        "secrets are for their owner",
    ):
        assert words in done.stdout
