"""How the Faust app is made: as whom it speaks to brokers, and which partition a cursor is in."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import names
from services.notifier.faust_app import PARTITIONS, make_app
from services.notifier.message import NotifyTarget
from services.notifier.settings import NotifierSettings


def made(**settings: Any) -> tuple[Any, Any]:
    async def nothing(*_: Any, **__: Any) -> None:
        """Nobody listens."""

    return make_app(
        NotifierSettings(instance="n1", **settings),
        on_event=nothing,
        on_recovered=nothing,
        on_revoked=nothing,
    )


def test_a_cursor_is_in_the_partition_that_its_key_says() -> None:
    _, cursors = made()
    target = NotifyTarget("ws://h:1/a|b", "drop")
    for partition in (0, 3):
        assert cursors.partition_for_key(target.key(partition)) == partition
        assert NotifyTarget.of_key(target.key(partition)) == (partition, target)


def test_it_is_one_of_a_group_and_makes_no_topics() -> None:
    app, _ = made(kafka_bootstrap="127.0.0.1:1")
    assert app.conf.id == names.NOTIFIER
    assert app.conf.consumer_group_instance_id == "n1"
    assert app.conf.topic_allow_declare is False
    assert app.conf.topic_partitions == PARTITIONS
    assert app.conf.broker_credentials is None
    assert not app.conf.web_enabled


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_it_logs_in_as_the_others_do(mechanism: str) -> None:
    app, _ = made(
        kafka_security="SASL_PLAINTEXT",
        kafka_mechanism=mechanism,
        kafka_user="mesh",
        kafka_password="secret",
    )
    credentials = app.conf.broker_credentials
    assert (credentials.username, credentials.password) == ("mesh", "secret")
    assert str(getattr(credentials.mechanism, "value", credentials.mechanism)) == mechanism
    assert credentials.ssl_context is None


def test_with_tls_it_checks_certificates() -> None:
    app, _ = made(kafka_security="SSL")
    assert app.conf.broker_credentials.context is not None
