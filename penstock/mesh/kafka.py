"""The embedded broker: one KRaft node that is its own controller, sized for one machine.

Its settings differ from Kafka's defaults where those are made for clusters or would expire rows: retention is off, topics are made by name
only, internal topics have few partitions and one replica, and the log cleaner's buffer fits a small heap.
"""

from __future__ import annotations

import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from penstock import names
from penstock.bus import Admin
from penstock.errors import BusError, StateError
from penstock.mesh.layout import Layout, Ports
from penstock.setup.jars import paths
from penstock.setup.java import find_java

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


def prepare(layout: Layout, ports: Ports) -> None:
    """Write the broker's configuration, and format its storage when it is new.

    Raises:
        StateError: the storage tool refuses the directory.
    """
    (layout.kafka / "log4j2.yaml").write_text(_LOGGING, encoding="utf-8")
    config = layout.kafka / "server.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in _properties(layout, ports).items()), encoding="utf-8")
    if (layout.kafka / "log" / "meta.properties").exists():
        return
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # a leading dash would look like an option
    cluster = f"P{cluster[1:]}" if cluster.startswith("-") else cluster
    done = subprocess.run(
        [*_java(layout, "64m", quick=True), "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode:
        raise StateError(f"could not format Kafka's storage in {layout.kafka}", detail=(done.stderr or done.stdout)[-2000:])


def command(layout: Layout) -> list[str]:
    return [*_java(layout, "320m"), "kafka.Kafka", str(layout.kafka / "server.properties")]


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
    # a tool that ends at once is over before the second compiler would pay; the broker needs a quarter less of a core with it (decision 29)
    tuning = ["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:CICompilerCount=2"]
    if quick:
        tuning = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [
        str(find_java().executable),
        f"-Xmx{heap}",
        *tuning,
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={layout.kafka / 'log4j2.yaml'}",
        "-cp",
        ":".join(str(jar) for jar in paths("broker")),
    ]


def _properties(layout: Layout, ports: Ports) -> Mapping[str, str | int | Path]:
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{ports['controller']}",
        "listeners": f"PLAINTEXT://127.0.0.1:{ports['kafka']},CONTROLLER://127.0.0.1:{ports['controller']}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{ports['kafka']}",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": layout.kafka / "log",
        # a killed broker may register again only when its old session has run out; a shorter one fences a live broker on a busy machine
        "broker.session.timeout.ms": 9000,
        "broker.heartbeat.interval.ms": 1000,
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
        "log.cleaner.dedupe.buffer.size": 16 << 20,
        "log.index.size.max.bytes": 2 << 20,
        # small requests, one at a time: with more threads each finds less to do when it is woken (decision 29)
        "num.network.threads": 2,
        "num.io.threads": 2,
        "background.threads": 2,
        "num.recovery.threads.per.data.dir": 2,
        "socket.send.buffer.bytes": 1 << 20,
        "socket.receive.buffer.bytes": 1 << 20,
    }
