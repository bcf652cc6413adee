"""Every endpoint, tried without a key, with a wrong one, and with too few rights; and that a password
is nowhere to be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow.flight as flight
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as dial

from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.errors import AuthError, PenstockError
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import eventually
from tests.stack.endpoints_kit import PASSWORD, mesh_without_jobs


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
        client.execute("CREATE DATABASE plant")
        client.execute("CREATE STABLE plant.meters (ts TIMESTAMP, v DOUBLE) TAGS (site VARCHAR(8))")
        client.execute("CREATE TABLE plant.secrets (ts TIMESTAMP, v DOUBLE)")
        client.execute(
            "INSERT INTO plant.m1 USING plant.meters TAGS ('n') VALUES ('2026-03-01', 1.5)"
        )
        client.execute("INSERT INTO plant.secrets VALUES ('2026-03-01', 2.5)")
        client.execute(f"CREATE USER ann PASS '{PASSWORD}'")
        client.execute("GRANT READ, WRITE ON plant.meters TO ann")
        yield client


@pytest.fixture
def ann(mesh: RunningMesh, root: Connection) -> Iterator[Connection]:
    with connect(
        mesh.gateway_url, user="ann", password=PASSWORD, options=ConnectionOptions(timeout=150)
    ) as client:
        yield client


# ---------------------------------------------------------------- endpoints


def http_endpoints(table: str) -> list[tuple[str, str, str, dict[str, str]]]:
    """(method, path, body, headers) of each way into *table* over HTTP."""
    measurement = f"{table},site=n v=1 1772355600000000000"
    return [
        ("POST", "/rest/sql", f"SELECT * FROM plant.{table}", {}),
        ("POST", "/rest/sql/plant", f"INSERT INTO {table} VALUES ('2026-03-02', 1)", {}),
        ("POST", "/v1/query", f"SELECT count(*) FROM plant.{table}", {}),
        (
            "POST",
            f"/v1/tables/plant/{table}/rows",
            '{"tbname": "m1", "ts": "2026-03-02T00:00:00Z", "v": 1}',
            {"Content-Type": "application/json"},
        ),
        ("GET", f"/v1/tables/plant/{table}/last", "", {}),
        ("POST", "/influxdb/v1/write?db=plant", measurement, {}),
        ("POST", "/api/v2/write?bucket=plant", measurement, {}),
        ("POST", "/v1/drain", "", {}),
    ]


def wires(table: str) -> list[tuple[str, str, str, dict[str, str]]]:
    """The same for the ways of other databases' clients."""
    return [
        ("POST", "/opentsdb/v1/put/telnet/plant", f"{table} 1772355600 1 site=n", {}),
        (
            "POST",
            "/opentsdb/v1/put/json/plant",
            f'{{"metric": "{table}", "timestamp": 1772355600, "value": 1, "tags": {{"site": "n"}}}}',
            {},
        ),
        ("GET", f"/query?db=plant&q=SELECT+v+FROM+{table}", "", {}),
        ("POST", f"/influxdb/v1/query?db=plant&q=SELECT+max(v)+FROM+plant..{table}", "", {}),
    ]


OTHERS = [
    ("GET", "/v1/info"),
    ("GET", "/v1/dialect"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/v1/asyncapi.json"),
    ("POST", "/v1/check"),
    ("GET", "/v1/health"),
    ("GET", "/v1/audit"),
    ("GET", "/v1/logs"),
    ("GET", "/v1/streams/counters"),
    ("GET", "/v1/whoami"),
    ("GET", "/subjects"),
    ("GET", "/schemas/ids/100"),
    ("POST", "/subjects/in.plant-meters"),
    ("POST", "/subjects/in.plant-meters/versions"),
    ("POST", "/compatibility/subjects/in.plant-meters/versions"),
    ("POST", "/compatibility/subjects/in.plant-meters/versions/latest"),
    ("GET", "/config/in.plant-meters"),
    ("PUT", "/config"),
    ("DELETE", "/config"),
    ("PUT", "/config/in.plant-meters"),
    ("DELETE", "/config/in.plant-meters"),
    ("PUT", "/mode"),
    ("POST", "/v1/drain?db=plant"),
]


#: of the wires, those that are about no table
OTHER_WIRES = [
    ("POST", "/api/v1/write?db=plant"),
    ("POST", "/v1/metrics?db=plant"),
    ("GET", "/query?q=SHOW+DATABASES"),
    ("GET", "/api/v2/buckets"),
    ("GET", "/api/v2/buckets/0000000000000001"),
    ("GET", "/api/v2/orgs"),
]


@pytest.mark.parametrize(
    "key",
    [None, ("root", "wrong"), ("ann", "wrong"), ("nobody", PASSWORD)],
    ids=["none", "root", "ann", "nobody"],
)
def test_no_http_endpoint_opens_without_the_right_key(
    mesh: RunningMesh, root: Connection, key: tuple[str, str] | None
) -> None:
    endpoints = [(m, p, b, h) for m, p, b, h in http_endpoints("meters")] + [
        (m, p, "", {}) for m, p in OTHERS
    ]
    if key is None:  # with wrong keys they are asked by tests/security
        endpoints += wires("meters") + [(m, p, "", {}) for m, p in OTHER_WIRES]
    # one address may only try so many wrong keys in a minute
    for first in range(0, len(endpoints), 15):
        address = httpx.HTTPTransport(local_address=f"127.0.0.{first // 15 + 2}")
        with httpx.Client(
            base_url=mesh.gateway_url, auth=key, timeout=60, transport=address
        ) as client:
            for method, path, body, headers in endpoints[first : first + 15]:
                answer = client.request(method, path, content=body, headers=headers)
                assert answer.status_code == 401, (path, answer.text)
            assert "WWW-Authenticate" in answer.headers


def test_http_endpoints_tell_who_has_too_few_rights(mesh: RunningMesh, root: Connection) -> None:
    with httpx.Client(base_url=mesh.gateway_url, auth=("ann", PASSWORD), timeout=60) as client:
        for method, path, body, headers in http_endpoints("secrets") + wires("secrets"):
            answer = client.request(method, path, content=body, headers=headers)
            assert answer.status_code == 403, (path, answer.text)
            error = answer.json()["error"]
            if path.startswith(
                ("/influxdb/v1", "/query")
            ):  # its clients show the text that stands there
                assert "secrets" in error, error
                continue
            assert error["code"] == "E_FORBIDDEN"
            assert ("secrets" in error["message"]) == ("drain" not in path), error
    assert root.query("SELECT count(*) FROM plant.secrets").rows == [(1,)]


def test_subjects_of_tables_without_rights_are_not_shown(
    mesh: RunningMesh, root: Connection
) -> None:
    with httpx.Client(base_url=mesh.gateway_url, auth=("ann", PASSWORD), timeout=60) as client:
        assert client.get("/subjects").json() == ["in.plant-meters"]
        subject = "/subjects/in.plant-secrets/versions"
        assert client.get(subject).status_code == 404
        assert (
            httpx.get(mesh.gateway_url + subject, auth=("root", mesh.password)).status_code == 200
        )


def test_row_sockets(mesh: RunningMesh, root: Connection, ann: Connection) -> None:
    url = mesh.gateway_url.replace("http", "ws") + "/v1/ingest"
    for headers in ({}, {"Authorization": "Bearer a.b.c"}, {"Authorization": "Bearer ann:wrong"}):
        with pytest.raises(InvalidStatus, match="401"):
            dial(url, additional_headers=headers)
    with pytest.raises(InvalidStatus, match="403"):
        dial(
            url,
            additional_headers={"Authorization": f"Bearer ann:{PASSWORD}"},
            origin="http://evil.example",
        )  # type: ignore[arg-type]
    with ann.writer() as writer:
        writer.write([{"tbname": "m1", "ts": "2026-03-03T00:00:00Z", "v": 3.0}], "plant.meters")
    with pytest.raises(PenstockError) as refused, ann.writer() as writer:
        writer.write([{"ts": "2026-03-03T00:00:00Z", "v": 3.0}], "plant.secrets")
    assert "WRITE on plant.secrets" in str(refused.value)


def test_the_console_follows_with_its_users_rights(
    mesh: RunningMesh, root: Connection, ann: Connection
) -> None:
    url = mesh.gateway_url.replace("http", "ws") + "/v1/follow"
    for headers in ({}, {"Authorization": "Bearer a.b.c"}, {"Cookie": "penstock_session=x"}):
        with pytest.raises(InvalidStatus, match="401"):
            dial(url, additional_headers=headers)
    given = {"user": "ann", "password": PASSWORD}
    cookie = httpx.post(f"{mesh.gateway_url}/v1/login", json=given, timeout=60).cookies
    key = {"Cookie": f"penstock_session={cookie['penstock_session']}"}
    with pytest.raises(InvalidStatus, match="403"):
        dial(url, additional_headers=key, origin="http://evil.example")  # type: ignore[arg-type]
    with dial(url, additional_headers=key, open_timeout=60) as socket:
        for name in ("plant.secrets", "plant.nothing"):
            socket.send(json.dumps({"action": "subscribe", "id": "a", "table": name}))
            assert json.loads(socket.recv(60))["code"] == "E_FORBIDDEN"
        asked = {"action": "subscribe", "id": "b", "table": "plant.meters", "exact": True}
        socket.send(json.dumps(asked))
        assert json.loads(socket.recv(60))["type"] == "subscribed"
        root.execute("INSERT INTO plant.m1 VALUES ('2026-03-05', 5)")
        told = json.loads(socket.recv(60))
        assert (told["rows"][0]["v"], told["rows"][0]["ts"]) == (5, "1772668800000")
        with httpx.Client(base_url=mesh.gateway_url, headers=key, timeout=60) as console:
            checked = console.post("/v1/check", json={"sql": "SELECT * FROM plant.secrets"}).json()
            assert checked["mistakes"][0]["code"] == "E_FORBIDDEN"
            right = console.post("/v1/check", json={"sql": "SELECT v FROM plant.meters"}).json()
            assert right["statements"][0]["columns"] == [{"name": "v", "type": "DOUBLE"}]
            eventually(lambda: console.get("/v1/health").json()["ready"])
            services = console.get("/v1/health").json()["services"]
            assert {"store", "notifier"} <= {s["name"] for s in services}
            assert {s["memory"] for s in services} == {None}, "for who has ADMIN"
            assert console.get("/v1/streams/counters").json()["streams"] == []
            assert console.get("/v1/audit").status_code == 403
            assert console.get("/v1/logs").status_code == 403
            assert console.post("/v1/logout", json={"everywhere": True}).json() == {"ended": 1}
        with pytest.raises(ConnectionClosed):  # within some seconds, and before anything else
            socket.recv(60)


def test_the_notifier(mesh: RunningMesh, root: Connection, ann: Connection) -> None:
    url = mesh.notifier_url + "/ws"
    for headers in ({}, {"Authorization": "Bearer ann:wrong"}):
        with pytest.raises(InvalidStatus, match="401"):
            dial(url, additional_headers=headers)
    with pytest.raises(InvalidStatus, match="403"):
        dial(
            url,
            additional_headers={"Authorization": f"Bearer ann:{PASSWORD}"},
            origin="http://evil.example",
        )  # type: ignore[arg-type]
    for name in ("plant.secrets", "plant.nothing", "nowhere.t"):
        with pytest.raises(PenstockError, match=f"READ on .*{name}") as refused:
            ann.subscribe(name).open()
        assert refused.value.code == "E_FORBIDDEN"
    with ann.subscribe("plant.meters").open() as rows:
        root.execute("INSERT INTO plant.m1 VALUES ('2026-03-04', 4)")
        assert rows.next(60).items[0]["v"] == 4


@pytest.mark.usefixtures("ann")
def test_a_connection_holds_so_many_subscriptions_and_no_more(mesh: RunningMesh) -> None:
    headers = {"Authorization": f"Bearer ann:{PASSWORD}"}
    with dial(mesh.notifier_url.replace("http", "ws", 1) + "/ws", additional_headers=headers) as ws:

        def told(action: str, name: str) -> dict[str, Any]:
            ws.send(json.dumps({"action": action, "id": name, "table": "plant.meters"}))
            answer: dict[str, Any] = json.loads(ws.recv(60))
            return answer

        # as many as PENSTOCK_NOTIFIER_MAX_SUBSCRIPTIONS allows when nobody sets it
        names = [f"s{number}" for number in range(64)]
        assert {told("subscribe", name)["type"] for name in names} == {"subscribed"}
        assert "exists" in told("subscribe", "s0")["message"]
        refused = told("subscribe", "one more")
        assert (refused["type"], refused["code"]) == ("error", "E_OVERLOAD")
        assert "PENSTOCK_NOTIFIER_MAX_SUBSCRIPTIONS" in refused["hint"]
        assert told("unsubscribe", "s0")["type"] == "unsubscribed"
        assert told("subscribe", "one more")["type"] == "subscribed"


def test_a_subscription_ends_when_its_right_does(mesh: RunningMesh, root: Connection) -> None:
    root.execute(f"CREATE USER leaver PASS '{PASSWORD}'")
    root.execute("GRANT READ ON plant.meters TO leaver")
    with (
        connect(mesh.gateway_url, user="leaver", password=PASSWORD) as client,
        client.subscribe("plant.meters").open() as rows,
    ):
        root.execute("REVOKE READ ON plant.meters FROM leaver")

        def ended() -> bool:
            root.execute("INSERT INTO plant.m1 VALUES (now, 5)")
            try:
                rows.next(1)
            except (PenstockError, ConnectionClosed) as told:
                return getattr(told, "code", "") == "E_FORBIDDEN"
            return False

        eventually(ended)


def flight_call(mesh: RunningMesh, header: str | None, sql: str) -> Any:
    options = flight.FlightCallOptions(
        headers=[(b"authorization", header.encode())] if header else [], timeout=60
    )
    with flight.FlightClient(mesh.store_url) as client:
        return client.do_get(flight.Ticket(json.dumps({"sql": sql}).encode()), options).read_all()


def test_the_stores_flight(mesh: RunningMesh, root: Connection) -> None:
    for header in (None, "Bearer ann:wrong", "Bearer a.b.c", "Basic x"):
        with pytest.raises(flight.FlightUnauthenticatedError, match="E_AUTH"):
            flight_call(mesh, header, "SELECT * FROM plant.meters")
    mine = f"Bearer ann:{PASSWORD}"
    eventually(lambda: flight_call(mesh, mine, "SELECT * FROM plant.meters").num_rows > 0)
    for sql in (
        "SELECT * FROM plant.secrets",
        "SELECT * FROM plant.meters UNION SELECT * FROM plant.secrets",
        "SELECT count(*) FROM (SELECT v FROM plant.secrets)",
        "SELECT _wstart, count(*) FROM plant.secrets INTERVAL(1d)",
        "SELECT * FROM nowhere.t",
    ):
        with pytest.raises(flight.FlightUnauthorizedError, match="E_FORBIDDEN"):
            flight_call(mesh, mine, sql)
    with (
        flight.FlightClient(mesh.store_url) as client,
        pytest.raises(flight.FlightUnauthorizedError),
    ):
        list(
            client.do_action(
                "positions", flight.FlightCallOptions(headers=[(b"authorization", mine.encode())])
            )
        )


def test_the_route_between_gateways(mesh: RunningMesh, root: Connection) -> None:
    for headers in ({}, {"X-Penstock-Internal": "guess"}):
        answer = httpx.post(
            mesh.gateway_url + "/internal/ddl",
            json={"sql": "DROP DATABASE plant", "user": "root"},
            headers=headers,
        )
        assert answer.status_code == 403


# ---------------------------------------------------------------- rights

REFUSED = [
    ("SELECT * FROM plant.secrets", "READ on plant.secrets"),
    ("SELECT m.v FROM plant.meters m JOIN plant.secrets s ON m.ts = s.ts", "READ on plant.secrets"),
    ("SELECT * FROM plant.nothing", "READ on plant.nothing"),
    ("SELECT * FROM nowhere.t", "READ on nowhere.t"),
    ("INSERT INTO plant.secrets VALUES (now, 1)", "WRITE on plant.secrets"),
    ("DELETE FROM plant.secrets", "WRITE on plant.secrets"),
    ("DESCRIBE plant.secrets", "READ on plant.secrets"),
    ("SHOW CREATE TABLE plant.secrets", "READ on plant.secrets"),
    ("CREATE DATABASE mine", r"CREATE on everything \(\*\.\*\)"),
    ("CREATE TABLE plant.t (ts TIMESTAMP, v INT)", "CREATE on database plant"),
    ("ALTER TABLE plant.meters ADD COLUMN w INT", "ALTER on table plant.meters"),
    ("DROP TABLE plant.meters", "DROP on table plant.meters"),
    ("DROP DATABASE plant", "DROP on database plant"),
    (
        "CREATE STREAM plant.s INTO plant.o AS SELECT _wstart, count(*) FROM plant.meters INTERVAL(1s)",
        "CREATE on database plant",
    ),
    ("CREATE USER eve PASS 'eve eve eve'", "ADMIN on everything"),
    ("GRANT ALL ON *.* TO ann", "ADMIN on everything"),
    ("ALTER USER root PASS 'eve eve eve'", "ADMIN on everything"),
    ("DROP USER ann", "ADMIN on everything"),
]


@pytest.mark.parametrize(("sql", "words"), REFUSED)
def test_statements_name_the_right_that_is_missing(ann: Connection, sql: str, words: str) -> None:
    with pytest.raises(AuthError, match=words) as refused:
        ann.execute(sql)
    assert refused.value.code == "E_FORBIDDEN"


def test_what_is_granted_works_and_lists_show_no_more(ann: Connection) -> None:
    assert (
        ann.execute("INSERT INTO plant.m2 USING plant.meters TAGS ('s') VALUES ('2026-03-05', 5)")
        == 1
    )
    assert ann.query("SELECT count(*) FROM plant.m2").rows == [(1,)]
    assert ann.query("SELECT count(*) FROM plant.meters WHERE site = 's'").rows == [(1,)]
    assert ("plant",) in ann.query("SHOW DATABASES").rows
    assert (
        ann.query("SHOW plant.TABLES").rows
        and ("secrets",) not in ann.query("SHOW plant.TABLES").rows
    )
    assert ann.query(
        "SELECT DISTINCT table_name FROM information_schema.ins_columns"
        " WHERE table_type <> 'CHILD_TABLE'"
    ).rows == [("meters",)]
    assert ann.query("SELECT current_user()").rows == [("ann",)]
    assert [row[0] for row in ann.query("SHOW USERS").rows] == ["ann"]
    assert {row[:3] for row in ann.query("SHOW GRANTS").rows} == {
        ("ann", "user", "READ"),
        ("ann", "user", "WRITE"),
    }


def test_roles_owners_and_revoking(mesh: RunningMesh, root: Connection) -> None:
    root.execute(
        f"CREATE USER maker PASS '{PASSWORD}'; CREATE ROLE makers; GRANT CREATE ON *.* TO makers; GRANT ROLE makers TO maker"
    )
    with connect(
        mesh.gateway_url, user="maker", password=PASSWORD, options=ConnectionOptions(timeout=150)
    ) as maker:
        maker.execute(
            "CREATE DATABASE made; CREATE TABLE made.t (ts TIMESTAMP, v INT); INSERT INTO made.t VALUES (now, 1)"
        )
        assert maker.query("SELECT count(*) FROM made.t").rows == [(1,)]
        with pytest.raises(AuthError, match="READ on table plant.meters"):
            maker.query("SELECT * FROM plant.meters")
        root.execute("REVOKE ROLE makers FROM maker")
        with pytest.raises(AuthError, match="CREATE on everything"):
            maker.execute("CREATE DATABASE another")
        maker.execute("ALTER USER maker PASS 'a new password'")
        with pytest.raises(AuthError, match="authentication failure"):
            maker.query("SELECT count(*) FROM made.t")
    with connect(mesh.gateway_url, user="maker", password="a new password") as maker:
        maker.execute("DROP DATABASE made")
        root.execute("ALTER USER maker ENABLE 0")
        with pytest.raises(AuthError, match="authentication failure"):
            maker.query("SHOW DATABASES")
    root.execute("DROP USER maker; DROP ROLE makers")
    assert "maker" not in str(root.query("SHOW GRANTS").rows) + str(root.query("SHOW USERS").rows)


def test_users_outlive_the_gateway(mesh: RunningMesh, root: Connection) -> None:
    pid = mesh.kill("gateway")
    mesh.wait_ready("gateway", not_pid=pid)

    def back() -> bool:
        with connect(mesh.gateway_url, user="ann", password=PASSWORD) as client:
            return bool(client.query("SELECT count(*) FROM plant.meters").rows)

    eventually(back)


def test_no_password_and_no_hash_is_anywhere_to_be_read(
    mesh: RunningMesh, root: Connection
) -> None:

    def known() -> bool:
        try:
            root.execute(f"CREATE USER ann PASS '{PASSWORD}'")
        except PenstockError as told:  # the lease of a gateway that was killed runs out first
            return told.code == "E_USER_EXISTS"
        return False

    eventually(known)
    with pytest.raises(PenstockError) as wrong:
        root.execute(f"CREATE USER bob '{PASSWORD}'")
    shown = str(wrong.value)
    for question in (
        "SHOW USERS",
        "SHOW GRANTS",
        "SELECT * FROM information_schema.ins_users",
        "SELECT * FROM information_schema.ins_user_privileges",
    ):
        shown += str(root.query(question).table.to_pylist())
    logs = {path.name: path.read_text(errors="replace") for path in mesh.layout.logs.iterdir()}
    for name, text in {**logs, "answers": shown}.items():
        for secret in (PASSWORD, "argon2id", mesh.password):
            assert secret not in text, name
    trail = [json.loads(line) for line in logs["audit.log"].splitlines()]

    def told(event: str) -> list[dict[str, Any]]:
        return [line for line in trail if line["event"] == event]

    assert any(line["user"] == "ann" and line["remote"] == "127.0.0.1" for line in told("login"))
    assert any(line["user"] == "nobody" for line in told("login refused"))
    assert any("CREATE USER ann PASS '***'" in line["sql"] for line in told("ddl"))
    assert any(
        line["user"] == "ann" and "plant.secrets" in line["reason"] for line in told("refused")
    )
    assert any(line["code"] == "E_USER_EXISTS" for line in told("ddl failed"))
