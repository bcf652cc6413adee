"""A whole mesh on a broker that asks for TLS and a password: gateway, store, notifier with Faust,
and Spark.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from penstock import bus, names
from penstock.client.connection import connect
from penstock.client.connection_options import ConnectionOptions
from penstock.config.settings import Settings
from penstock.errors import BusError
from penstock.mesh import kafka
from penstock.mesh.layout import Layout, free_ports
from penstock.mesh.running import RunningMesh, launch, wait_for_start
from penstock.mesh.stop import stop_mesh
from tests.certificates import issued
from tests.stack.conftest import PATIENT, eventually

pytestmark = pytest.mark.long

PASSWORD = 'a password with "quotes" and \\'


class SecureBroker:
    """One node whose only listener for clients is SASL_SSL."""

    def __init__(self, directory: Path) -> None:
        made = issued(directory)
        key = load_pem_private_key(made.key.read_bytes(), None).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
        store = directory / "broker.pem"
        self.ca = made.ca
        store.write_bytes(key + made.cert.read_bytes())
        self.layout = Layout(directory / "broker")
        self.ports = free_ports()
        self.layout.make()
        kafka.prepare(self.layout, self.ports, is_open=True)
        quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
        jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_rooms="{quoted}";'
        listener = "listener.name.clients"
        own = {
            "listeners": f"CLIENTS://127.0.0.1:{self.ports['kafka']},CONTROLLER://127.0.0.1:{self.ports['controller']},"
            f"INSIDE://127.0.0.1:{self.ports['store']}",
            "advertised.listeners": f"CLIENTS://127.0.0.1:{self.ports['kafka']},INSIDE://127.0.0.1:{self.ports['store']}",
            "inter.broker.listener.name": "INSIDE",
            "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            f"{listener}.plain.sasl.jaas.config": jaas,
            f"{listener}.ssl.keystore.type": "PEM",
            f"{listener}.ssl.keystore.location": str(store),
        }
        config = self.layout.kafka / "server.properties"
        kept = [
            line for line in config.read_text().splitlines() if line.partition("=")[0] not in own
        ]
        # properties files read backslashes their own way
        config.write_text(
            "\n".join([*kept, *(f"{k}={v.replace(chr(92), chr(92) * 2)}" for k, v in own.items())])
            + "\n"
        )
        with open(self.layout.log("kafka"), "wb") as output:
            self.process = subprocess.Popen(
                kafka.command(self.layout),
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(os.environ),
            )

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports['kafka']}"

    def settings(self, password: str = PASSWORD) -> Settings:
        return Settings(
            kafka_security="SASL_SSL",
            kafka_mechanism="PLAIN",
            kafka_user="rooms",
            kafka_password=password,
            kafka_ca=self.ca,
        )  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    made = SecureBroker(tmp_path_factory.mktemp("secure"))
    try:
        bus.secure(made.settings().kafka_options)
        eventually(lambda: bus.Admin(made.bootstrap, timeout=3).topics() is not None, deadline=60)
        bus.Admin(made.bootstrap).ensure_topics(names.BUILT_IN_TOPICS, replication=1)
        yield made
    finally:
        bus.secure({})
        made.process.kill()
        made.process.wait()


def test_without_the_password_nobody_is_served(broker: SecureBroker) -> None:
    try:
        for options in (
            {},
            broker.settings("wrong").kafka_options,
            {**broker.settings().kafka_options, "ssl.ca.location": ""},
        ):
            bus.secure(options)
            with pytest.raises(BusError):
                bus.Admin(broker.bootstrap, timeout=5).topics()
    finally:
        bus.secure(broker.settings().kafka_options)


@pytest.mark.timeout(600)
def test_rows_go_through_every_service(broker: SecureBroker, tmp_path: Path) -> None:
    secret = tmp_path / "kafka.password"
    secret.write_text(PASSWORD + "\n")
    environment = {
        **PATIENT,
        "PENSTOCK_KAFKA_SECURITY": "SASL_SSL",
        "PENSTOCK_KAFKA_MECHANISM": "PLAIN",
        "PENSTOCK_KAFKA_USER": "rooms",
        "PENSTOCK_KAFKA_PASSWORD_FILE": str(secret),
        "PENSTOCK_KAFKA_CA": str(broker.ca),
    }
    layout = Layout(tmp_path / "mesh")
    services = ("redis", "gateway", "store", "spark", "notifier")
    supervisor = launch(
        layout.root,
        services=services,
        ports=(f"kafka={broker.ports['kafka']}",),
        environment=environment,
    )
    try:
        settings = next(s for s in [state for state in wait_for_start(supervisor, layout)][-1:])[
            "settings"
        ]
        mesh = RunningMesh(layout, settings)
        with connect(
            mesh.gateway_url,
            user="root",
            password=mesh.password,
            options=ConnectionOptions(timeout=150),
        ) as client:
            client.execute(
                "CREATE DATABASE d; CREATE STABLE d.m (ts TIMESTAMP, v INT) TAGS (t INT)"
            )
            client.execute(
                "CREATE STREAM d.s TRIGGER AT_ONCE INTO d.o AS SELECT _wstart, count(*) AS n FROM d.m PARTITION BY tbname INTERVAL(1m)"
            )
            with client.subscribe("d.s", stream=True).open() as windows:
                client.execute("INSERT INTO d.c USING d.m TAGS (1) VALUES ('2026-03-01', 1)")
                assert windows.next(120).items[0]["n"] == 1
            assert client.query("SELECT count(*) FROM d.m").rows == [(1,)]
        for path in layout.logs.iterdir():
            assert PASSWORD not in path.read_text(errors="replace"), path.name
    finally:
        supervisor.terminate()
        supervisor.wait(90)
        stop_mesh(layout)
