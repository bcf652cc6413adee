"""Attacks through outbound connections: a user with CREATE on one database, and root, against the
mesh itself and its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

import penstock
from penstock import names
from penstock.client.connection import Connection
from penstock.errors import PenstockError
from penstock.mesh.proxy import Proxy
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import eventually
from tests.stack.names import unique

PASSWORD = "correct horse battery"
COLUMNS = "(ts TIMESTAMP, id INT)"


@pytest.fixture
def root(mesh: RunningMesh) -> Iterator[Connection]:
    database = unique("out")
    with penstock.connect(
        mesh.gateway_url, password=mesh.password, database=database
    ) as connection:
        connection.execute(f"CREATE DATABASE {database}")
        yield connection
        connection.execute(f"DROP DATABASE {database}")


@pytest.fixture
def ann(mesh: RunningMesh, root: Connection) -> Iterator[Connection]:
    """A user with CREATE on one database, and nothing else."""
    user = unique("ann")
    root.execute(
        f"CREATE USER {user} PASS '{PASSWORD}'; GRANT READ, WRITE, CREATE ON {root.database}.* TO {user}"
    )
    with penstock.connect(
        mesh.gateway_url, user=user, password=PASSWORD, database=root.database
    ) as connection:
        eventually(lambda: connection.query("SHOW DATABASES").rows != [])
        yield connection
    root.execute(f"DROP USER {user}")


def kafka(brokers: str, **more: str) -> str:
    settings = {
        "type": "kafka",
        "brokers": brokers,
        "topic": "penstock_catalog",
        "data_format": "JSONEachRow",
        **more,
    }
    return f"CREATE EXTERNAL STREAM x {COLUMNS} SETTINGS " + ", ".join(
        f"{k}='{v}'" for k, v in settings.items()
    )


def ports(mesh: RunningMesh) -> dict[str, int]:
    """Ports of the mesh that others of its processes listen on."""
    settings = mesh.settings
    found = {
        name: urlsplit(settings[f"PENSTOCK_{name}_URL"]).port or 0
        for name in ("GATEWAY", "NOTIFIER", "STORE", "REDIS")
    }
    return found | {
        "KAFKA": int(mesh.kafka_bootstrap.rpartition(":")[2]),
        "FEDERATION": urlsplit(mesh.federation_url).port or 0,
    }


def refused(client: Connection, statement: str, code: str = "E_EXTERNAL_HOST") -> PenstockError:
    with pytest.raises(PenstockError) as found:
        client.execute(statement)
    assert found.value.code == code, found.value
    return found.value


@pytest.mark.parametrize(
    "form",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
    ],
)
def test_nobody_reads_the_meshs_own_kafka(
    mesh: RunningMesh, root: Connection, ann: Connection, form: str
) -> None:
    for client in (root, ann):
        for name, port in ports(mesh).items():
            refused(client, kafka(f"{form}:{port}"))
            avro = {"data_format": "Avro", "kafka_schema_registry_url": f"http://{form}:{port}"}
            refused(client, kafka("192.0.2.1:9092", **avro))
            if name != "KAFKA":
                refused(
                    client,
                    f"CREATE EXTERNAL STREAM x SETTINGS type='penstock', hosts='{form}:{port}', stream='a'",
                )


def test_a_way_round_to_the_meshs_own_federation_service_is_known_by_where_the_link_comes_from(
    mesh: RunningMesh, root: Connection
) -> None:
    root.execute("CREATE TABLE t (ts TIMESTAMP, v INT)")
    with Proxy(urlsplit(mesh.federation_url).port or 0) as proxy:
        login = f"db='{root.database}', user='root', password='{mesh.password}'"
        refused(
            root,
            f"CREATE EXTERNAL STREAM x SETTINGS type='penstock', hosts='127.0.0.1:{proxy.port}', {login}, stream='t'",
        )


def test_a_way_round_to_the_meshs_own_kafka_is_known_by_its_cluster(
    mesh: RunningMesh, root: Connection
) -> None:
    """A port that passes everything on, as a name or a NAT would."""
    with Proxy(int(mesh.kafka_bootstrap.rpartition(":")[2])) as proxy:
        login = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-256",
            "username": "root",
            "password": mesh.password,
        }
        assert "own Kafka" in refused(root, kafka(f"127.0.0.1:{proxy.port}", **login)).detail


def test_topics_of_a_mesh_are_not_read_as_foreign_ones(root: Connection) -> None:
    refused(root, kafka("192.0.2.1:9092", topic="penstock.catalog"), "E_BAD_OPTION")


def test_a_user_without_admin_goes_nowhere(root: Connection, ann: Connection) -> None:
    for statement in (
        kafka("192.0.2.1:9092"),
        kafka("kafka.example.com:9092"),
        "CREATE EXTERNAL STREAM x SETTINGS type='penstock', hosts='192.0.2.1:7707', stream='a'",
    ):
        error = refused(ann, statement)
        assert "PENSTOCK_EXTERNAL_ALLOW" in error.hint and not error.detail
    refused(ann, kafka("192.0.2.1:9092", ssl_ca_cert_file="/etc/passwd"), "E_FORBIDDEN")
    root.execute("CREATE TABLE t (ts TIMESTAMP, v INT)")
    stream = "CREATE STREAM s INTO r AS SELECT _wstart, count(*) c FROM t INTERVAL(1s) NOTIFY ('{}') ON ('WINDOW_CLOSE')"
    eventually(lambda: ann.query("SHOW TABLES").rows != [])
    for url in (
        "ws://192.0.2.1:80/x",
        "ws://hook.example.com:80",
        "ws://127.0.0.1:9",
        "kafka://alerts",
    ):
        assert (
            "PENSTOCK_NOTIFIER_NOTIFY_ALLOW"
            in refused(ann, stream.format(url), "E_NOTIFY_TARGET").hint
        )


def test_root_does_not_notify_the_mesh(mesh: RunningMesh, root: Connection) -> None:
    root.execute("CREATE TABLE t (ts TIMESTAMP, v INT)")
    for port in ports(mesh).values():
        text = f"CREATE STREAM s INTO r AS SELECT _wstart, count(*) c FROM t INTERVAL(1s) NOTIFY ('ws://127.0.0.1:{port}') ON ('WINDOW_CLOSE')"
        refused(root, text, "E_NOTIFY_TARGET")
    for topic in (*names.BUILT_IN_TOPICS, "in.other", "__consumer_offsets"):
        text = f"CREATE STREAM s INTO r AS SELECT _wstart, count(*) c FROM t INTERVAL(1s) NOTIFY ('kafka://{topic}') ON ('WINDOW_CLOSE')"
        refused(root, text, "E_NOTIFY_URL")


def test_a_port_that_is_no_kafka_is_not_quoted(mesh: RunningMesh, root: Connection) -> None:
    with pytest.raises(PenstockError) as found:
        root.execute(kafka("127.0.0.1:1"))
    assert "127.0.0.1:1" not in found.value.detail
    assert httpx.get(f"{mesh.gateway_url}/ping").status_code < 500
