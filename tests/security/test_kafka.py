"""The endpoint of the embedded broker: who gets in, and that grants are what they may do there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from penstock import names
from penstock.client.connection import Connection
from penstock.mesh.running import RunningMesh, running_mesh
from tests.security.conftest import FOREIGN, OWN, PASSWORD, SECRET, Attacker
from tests.stack.conftest import eventually
from tests.stack.names import unique

MINE = names.ingest_topic(OWN)
THEIRS = names.ingest_topic(FOREIGN)
MESHS_OWN = (names.CATALOG, names.EVENTS, names.EXCHANGE, names.EPOCHS, names.DEAD_LETTER)
_SECONDS = 3.0


def client(
    mesh: RunningMesh, user: str, password: str, mechanism: str = "SCRAM-SHA-256"
) -> dict[str, Any]:
    """What librdkafka needs to log in; its own lines are not ours to show."""
    return {
        "bootstrap.servers": mesh.kafka_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
        "socket.timeout.ms": 3000,
    }


def as_user(attacker: Attacker) -> dict[str, Any]:
    return client(attacker.mesh, attacker.name, attacker.password or "")


def served(config: dict[str, Any]) -> bool:
    """Whether the broker lets this client in at all."""
    try:
        AdminClient(config).list_topics(timeout=_SECONDS)
    except KafkaException:
        return False
    return True


def topics_of(config: dict[str, Any]) -> set[str]:
    """The topics that the broker tells this client of."""
    return {
        name
        for name, topic in AdminClient(config).list_topics(timeout=_SECONDS).topics.items()
        if topic.error is None
    }


def written(config: dict[str, Any], *topics: str) -> set[str]:
    """The topics of these that a record of this client gets into. One that it may not know of is
    none to it.
    """
    producer = Producer(
        {**config, "message.timeout.ms": 3000, "topic.metadata.propagation.max.ms": 1000}
    )
    found: set[str] = set()
    for topic in topics:
        producer.produce(
            topic,
            b"not a row batch",
            on_delivery=lambda error, _, t=topic: found.add(t) if error is None else None,
        )
    producer.flush(15)
    return found


@contextmanager
def reading(config: dict[str, Any], group: str, *topics: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {**config, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
        yield consumer
    finally:
        consumer.close()


def read(config: dict[str, Any], *topics: str) -> set[str]:
    """The topics of these that this client gets a record, or the end, of; one that it may not know
    of stays silent.
    """
    found: set[str] = set()
    refused: set[str] = set()
    with reading({**config, "enable.partition.eof": True}, "any", *topics) as consumer:
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline and len(found | refused) < len(topics):
            message = consumer.poll(0.2)
            if message is None or message.topic() is None:
                continue
            error = message.error()
            (found if error is None or error.name() == "_PARTITION_EOF" else refused).add(
                message.topic() or ""
            )
    return found


def commits(config: dict[str, Any], topic: str, group: str) -> bool:
    """Whether this client may keep its place in *group*."""
    with reading(config, group, topic) as consumer:
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
        except KafkaException:
            return False
    return True


def test_nobody_is_served_without_a_login(mesh: RunningMesh, victims: Connection) -> None:
    assert not served({"bootstrap.servers": mesh.kafka_bootstrap, "log_level": 0})
    for user, password in (
        ("root", "wrong"),
        ("reader", "wrong"),
        ("mallory", PASSWORD),
        (names.KAFKA_USER, "wrong"),
        ("", ""),
    ):
        assert not served(client(mesh, user, password)), user
    assert not served(client(mesh, names.KAFKA_USER, "", "PLAIN"))
    assert not served(client(mesh, "reader", PASSWORD, "PLAIN")), (
        "users of the catalog log in by SCRAM only"
    )


def test_a_login_without_grants_sees_nothing(stranger: Attacker) -> None:
    config = as_user(stranger)
    assert served(config) and topics_of(config) == set()
    everything = (MINE, THEIRS, *MESHS_OWN)
    assert not read(config, *everything) and not written(config, *everything)


def test_read_reads_its_database_and_nothing_else(reader: Attacker, victims: Connection) -> None:
    config = as_user(reader)
    assert topics_of(config) == {MINE}
    everything = (MINE, THEIRS, *MESHS_OWN)
    assert read(config, *everything) == {MINE} and not written(config, *everything)


def test_write_writes_its_database_and_nothing_else(writer: Attacker, victims: Connection) -> None:
    config = as_user(writer)
    assert topics_of(config) == {MINE}
    everything = (MINE, THEIRS, *MESHS_OWN)
    assert written(config, *everything) == {MINE} and not read(config, *everything)
    assert victims.query(f"SELECT who FROM {FOREIGN}.secrets").rows == [(SECRET,)]


def test_groups_are_a_users_own(reader: Attacker) -> None:
    config = as_user(reader)
    for group, allowed in (
        ("reader", True),
        ("reader:night", True),
        ("reader2", False),
        ("writer", False),
        ("penstock.notifier", False),
    ):
        assert commits(config, MINE, group) is allowed, group


def test_create_alone_is_no_right_in_kafka(creator: Attacker) -> None:
    assert topics_of(as_user(creator)) == set()


def test_users_manage_nothing(writer: Attacker, mesh: RunningMesh) -> None:
    from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

    admin = AdminClient(as_user(writer))
    attempts: list[dict[Any, Any]] = [
        admin.create_topics([NewTopic("in.mallory", 1, 1)]),
        admin.delete_topics([MINE]),
        admin.delete_records([TopicPartition(MINE, 0, -1)]),
        admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")]),
    ]
    for told in attempts:
        for future in told.values():
            with pytest.raises(KafkaException):
                future.result(15)


def test_root_reads_and_writes_every_database_but_not_what_is_the_meshs_own(
    mesh: RunningMesh, victims: Connection
) -> None:
    config = client(mesh, mesh.user, mesh.password)
    assert {MINE, THEIRS} <= topics_of(config) and not topics_of(config) & set(MESHS_OWN)
    assert read(config, THEIRS, *MESHS_OWN) == {THEIRS} and not written(config, *MESHS_OWN)


def test_rights_follow_grants_at_once(mesh: RunningMesh, victims: Connection) -> None:
    user = unique("u")
    database = unique("d")
    victims.execute(
        f"CREATE DATABASE {database}; CREATE USER {user} PASS '{PASSWORD}'; CREATE ROLE r_{user}; GRANT ROLE r_{user} TO {user}"
    )
    config = client(mesh, user, PASSWORD)
    topic = names.ingest_topic(database)
    assert not read(config, topic)
    victims.execute(f"GRANT READ ON {database}.* TO r_{user}")
    assert read(config, topic) and not written(config, topic)
    victims.execute(
        f"GRANT WRITE ON {database}.* TO {user}; REVOKE READ ON {database}.* FROM r_{user}"
    )
    assert written(config, topic) and not read(config, topic)
    victims.execute(f"ALTER USER {user} ENABLE 0")
    assert not written(config, topic)
    victims.execute(f"ALTER USER {user} ENABLE 1; ALTER USER {user} PASS 'another {PASSWORD}'")
    assert not served(config)
    config = client(mesh, user, f"another {PASSWORD}")
    assert written(config, topic)
    # one of the same name is another database
    victims.execute(f"DROP DATABASE {database}; CREATE DATABASE {database}")
    assert not written(config, topic)
    victims.execute(f"DROP USER {user}; DROP ROLE r_{user}")
    assert not served(config)


def test_a_user_who_is_older_than_kafkas_login_is_known_once_logged_in(
    mesh: RunningMesh, victims: Connection
) -> None:
    from penstock.auth.kafka_users import KafkaUsers

    user = unique("old")
    victims.execute(f"CREATE USER {user} PASS '{PASSWORD}'; GRANT READ ON {OWN}.* TO {user}")
    KafkaUsers(mesh.kafka_bootstrap, client_id="test").forget(user)
    config = client(mesh, user, PASSWORD)
    assert not served(config)
    assert Attacker(user, "wrong password", mesh).sql("SELECT 1").status_code == 401
    assert not served(config)
    assert Attacker(user, PASSWORD, mesh).sql("SELECT 1").status_code == 200
    eventually(lambda: served(config))


def test_a_rule_that_no_grant_means_is_taken_back(
    mesh: RunningMesh, stranger: Attacker, victims: Connection
) -> None:
    from penstock.auth.kafka_users import KafkaUsers, Rule

    KafkaUsers(mesh.kafka_bootstrap, client_id="test").allow(
        [Rule("stranger", "READ", "TOPIC", THEIRS)]
    )
    assert read(as_user(stranger), THEIRS)
    user = unique("u")
    victims.execute(f"CREATE USER {user} PASS '{PASSWORD}'; DROP USER {user}")
    assert not read(as_user(stranger), THEIRS)


def test_nobody_is_called_as_the_mesh_is(victims: Connection) -> None:
    for name in (names.KAFKA_USER, names.KAFKA_USER.upper()):
        with pytest.raises(Exception, match="what the mesh itself is called"):
            victims.execute(f"CREATE USER {name} PASS '{PASSWORD}'")


def test_an_open_broker_is_asked_for(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running_mesh(
        tmp_path_factory.mktemp("open"), services=("kafka",), open_kafka=True
    ) as mesh:
        assert served({"bootstrap.servers": mesh.kafka_bootstrap, "log_level": 0})
