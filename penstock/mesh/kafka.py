"""The embedded broker: one KRaft node that is its own controller, sized for one machine.

Its settings differ from Kafka's defaults where those are made for clusters or would expire rows:
retention is off, topics are made by name only, internal topics have few partitions and one replica,
and the log cleaner's buffer fits a small heap.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from penstock import names
from penstock.auth.kafka_users import MECHANISM
from penstock.bus import Admin
from penstock.errors import BusError, StateError
from penstock.mesh.layout import Layout, Ports
from penstock.mesh.learned import learned_options
from penstock.setup.aot_cache import cache_options
from penstock.setup.java import TRIMS_NATIVE_MEMORY, find_java
from penstock.setup.jvm_programs import broker

MAX_MESSAGE_BYTES = 32 << 20
_LOGGING = """\
Configuration:
  Appenders:
    Console:
      name: STDOUT
      PatternLayout:
        pattern: "%d{ISO8601} %p %m (%c)%n"
  Loggers:
    Root:
      level: WARN
      AppenderRef:
        - ref: STDOUT
    Logger:
      - name: kafka.server.KafkaRaftServer
        level: INFO
"""


def login(layout: Layout, *, is_open: bool = False) -> dict[str, str]:
    """Return the settings by which the mesh's services log in to the embedded broker; *is_open*:
    without a login.
    """
    if is_open:
        return {"PENSTOCK_KAFKA_SECURITY": "PLAINTEXT", "PENSTOCK_KAFKA_USERS": "false"}
    return {
        "PENSTOCK_KAFKA_SECURITY": "SASL_PLAINTEXT",
        "PENSTOCK_KAFKA_MECHANISM": "PLAIN",
        "PENSTOCK_KAFKA_USER": names.KAFKA_USER,
        "PENSTOCK_KAFKA_PASSWORD_FILE": str(layout.secret("kafka")),
        "PENSTOCK_KAFKA_USERS": "true",
    }


def options(settings: Mapping[str, str]) -> dict[str, str]:
    """Return how a program on this machine speaks to the broker of a mesh with these settings, as
    librdkafka calls it.
    """
    if settings.get("PENSTOCK_KAFKA_SECURITY", "PLAINTEXT") == "PLAINTEXT":
        return {}
    return {
        "security.protocol": settings["PENSTOCK_KAFKA_SECURITY"],
        "sasl.mechanism": settings["PENSTOCK_KAFKA_MECHANISM"],
        "sasl.username": settings["PENSTOCK_KAFKA_USER"],
        "sasl.password": (
            Path(settings["PENSTOCK_KAFKA_PASSWORD_FILE"]).read_text(encoding="utf-8").strip()
        ),
    }


def prepare(layout: Layout, ports: Ports, *, is_open: bool = False) -> None:
    """Write the broker's configuration, and format its storage when it is new.

    Args:
        is_open: whoever gets to the port may do everything, without a login.

    Raises:
        StateError: the storage tool refuses the directory.
    """
    (layout.kafka / "log4j2.yaml").write_text(_LOGGING, encoding="utf-8")
    config = layout.kafka / "server.properties"
    properties = {
        **_properties(layout, ports),
        **(_open() if is_open else _login_properties(layout)),
    }
    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    # it holds the mesh's password
    with open(
        config, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)
    ) as file:
        file.write(text)
    config.chmod(0o600)
    if (layout.kafka / "log" / "meta.properties").exists():
        return
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # a leading dash would look like an option
    cluster = f"P{cluster[1:]}" if cluster.startswith("-") else cluster
    done = subprocess.run(
        [
            *_java(layout, "64m", quick=True),
            "kafka.tools.StorageTool",
            "format",
            "-t",
            cluster,
            "-c",
            str(config),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode:
        raise StateError(
            f"could not format Kafka's storage in {layout.kafka}",
            detail=(done.stderr or done.stdout)[-2000:],
        )


def command(layout: Layout) -> list[str]:
    return [*_java(layout, "320m"), "kafka.Kafka", str(layout.kafka / "server.properties")]


def start_arguments(layout: Layout) -> list[str]:
    """Return what the broker is told at its next start: after a crash a short session.

    A broker that was stopped has left its session. One that was killed has not, and its successor
    may register only when that has run out, by the successor's own session time, counted from its
    start. Most brokers are never killed, and are not fenced so easily.
    """
    log = layout.kafka / "log"
    has_run = (log / "__cluster_metadata-0" / "quorum-state").exists()
    # Kafka's own mark; it takes it away when it starts
    if not has_run or (log / ".kafka_cleanshutdown").exists():
        return []
    settings = {"broker.session.timeout.ms": 2000, "broker.heartbeat.interval.ms": 300}
    return [word for name, ms in settings.items() for word in ("--override", f"{name}={ms}")]


def is_ready(bootstrap: str) -> bool:
    """True when the broker answers a metadata request."""
    try:
        _admin(bootstrap).topics()
    except BusError:
        return False
    return True


def create_built_in_topics(bootstrap: str) -> None:
    """Make the topics every mesh has; those that exist stay as they are.

    Raises:
        BusError: the broker refuses, or one exists with another number of partitions.
    """
    Admin(bootstrap).ensure_topics(names.BUILT_IN_TOPICS, replication=1)


@cache
def _admin(bootstrap: str) -> Admin:
    """Kept, because it is asked every second."""
    return Admin(bootstrap, client_id="penstock-mesh", timeout=1)


def _java(layout: Layout, heap: str, *, quick: bool = False) -> list[str]:
    # a tool that ends at once is over before the second compiler would pay; the broker needs a
    # quarter less of a core with it (docs/performance.md)
    tuning = [
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
        "-XX:CICompilerCount=2",
        # what a burst has needed goes back when nothing happens
        "-Xms64m",
        "-XX:G1PeriodicGCInterval=60000",
        # a concurrent collection leaves the garbage to those that follow, and at rest none does
        "-XX:-G1PeriodicGCInvokesConcurrent",
        "-XX:MaxHeapFreeRatio=40",
        *TRIMS_NATIVE_MEMORY,
    ]
    java = find_java()
    program = broker()
    if quick:
        tuning = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        # nor has it anything to record in a training run
        learned = cache_options(java, program)
    else:
        learned = learned_options(layout, java, program)
    return [
        str(java.executable),
        *learned,
        f"-Xmx{heap}",
        *tuning,
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={layout.kafka / 'log4j2.yaml'}",
        "-cp",
        program.joined,
    ]


def _properties(layout: Layout, ports: Ports) -> Mapping[str, str | int | Path]:
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{ports['controller']}",
        "listeners": (
            f"CLIENTS://127.0.0.1:{ports['kafka']},CONTROLLER://127.0.0.1:{ports['controller']}"
        ),
        "advertised.listeners": f"CLIENTS://127.0.0.1:{ports['kafka']}",
        "inter.broker.listener.name": "CLIENTS",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": layout.kafka / "log",
        # a shorter one fences a live broker on a busy machine; see `start_arguments`
        "broker.session.timeout.ms": 9000,
        "broker.heartbeat.interval.ms": 1000,
        # a fence takes all leaders away. They are elected again when it ends; a partition that was
        # missed then has no leader until this look, which Kafka takes every five minutes
        "leader.imbalance.check.interval.seconds": 5,
        # a quorum of one has nobody to tell twice a second, on disk, that its leader lives
        "metadata.max.idle.interval.ms": 5000,
        "auto.create.topics.enable": "false",
        "message.max.bytes": MAX_MESSAGE_BYTES,
        "replica.fetch.max.bytes": MAX_MESSAGE_BYTES,
        "log.retention.ms": -1,
        "log.retention.bytes": -1,
        "offsets.retention.minutes": 525600,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.threads": 1,
        # the broker has it from its start on; 150,000 keys a pass are many here
        "log.cleaner.dedupe.buffer.size": 4 << 20,
        # a fetch that found nothing is kept with all its partitions until so many more have come
        "fetch.purgatory.purge.interval.requests": 50,
        "log.index.size.max.bytes": 2 << 20,
        # small requests, one at a time: with more threads each finds less to do when it is woken
        # (docs/performance.md)
        "num.network.threads": 2,
        "num.io.threads": 2,
        "background.threads": 2,
        "num.recovery.threads.per.data.dir": 2,
        "group.coordinator.threads": 1,
        "socket.send.buffer.bytes": 1 << 20,
        "socket.receive.buffer.bytes": 1 << 20,
    }


def _open() -> Mapping[str, str]:
    return {"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,CLIENTS:PLAINTEXT"}


def _login_properties(layout: Layout) -> Mapping[str, str | int]:
    """Return the properties of a broker that asks for a login and lets users do what its rules say.

    The mesh itself logs in by PLAIN, with a password that stands in the broker's file: so a mesh
    that is older than the login needs no change. Users of the catalog log in by SCRAM, which keeps
    no password.
    """
    password = layout.secret("kafka").read_text(encoding="utf-8").strip()
    module = "org.apache.kafka.common.security"
    mesh = (
        f'username="{names.KAFKA_USER}" password="{password}" user_{names.KAFKA_USER}="{password}"'
    )
    plain = f"{module}.plain.PlainLoginModule required {mesh};"
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.enabled.mechanisms": f"PLAIN,{MECHANISM}",
        "listener.name.clients.plain.sasl.jaas.config": plain,
        f"listener.name.clients.{MECHANISM.lower()}.sasl.jaas.config": (
            f"{module}.scram.ScramLoginModule required;"
        ),
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": plain,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{names.KAFKA_USER}",
        # a wrong password costs its sender this long, in ms
        "connection.failed.authentication.delay.ms": 100,
    }
