"""Options of Redis and Kafka clients."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as some

from penstock.config.connection_options import (
    KafkaLogin,
    for_java,
    for_librdkafka,
    redis_dsn,
)

CA = Path("/a b/ca.pem")


def login(security: str, mechanism: str = "SCRAM-SHA-512", ca: Path | None = None) -> KafkaLogin:
    return KafkaLogin(security, mechanism, "u", "p", ca)


@pytest.mark.parametrize(
    ("url", "password", "ca", "wanted"),
    [
        ("redis://h:1/0", None, None, "redis://h:1/0"),
        ("redis://h:1/0", "p", None, "redis://u:p@h:1/0"),
        ("redis://old:x@h:1/0", "p", None, "redis://u:p@h:1/0"),
        ("redis://h:1/0", "p/@:#é", None, "redis://u:p%2F%40%3A%23%C3%A9@h:1/0"),
        ("redis://h:1/0", None, CA, "redis://h:1/0"),
        (
            "rediss://h:1/0",
            None,
            CA,
            "rediss://h:1/0?ssl_ca_certs=/a%20b/ca.pem&ssl_cert_reqs=required",
        ),
        (
            "rediss://h:1/0?db=3",
            "p",
            CA,
            "rediss://u:p@h:1/0?db=3&ssl_ca_certs=/a%20b/ca.pem&ssl_cert_reqs=required",
        ),
    ],
)
def test_a_dsn_of_redis_holds_the_login(
    url: str, password: str | None, ca: Path | None, wanted: str
) -> None:
    assert redis_dsn(url, "u", password, ca) == wanted


@given(some.text(some.characters(exclude_categories=["Cs"]), min_size=1))
def test_redis_reads_the_password_that_was_given(password: str) -> None:
    dsn = redis_dsn("redis://h:1/0", "u", password, None)
    assert unquote(urlsplit(dsn).password or "") == password
    kept = redis.ConnectionPool.from_url(dsn).connection_kwargs
    assert (kept["password"], kept["username"], kept["host"]) == (password, "u", "h")


@pytest.mark.parametrize(
    ("security", "sasl", "trusted"),
    [
        ("PLAINTEXT", False, None),
        ("SSL", False, CA),
        ("SASL_PLAINTEXT", True, None),
        ("SASL_SSL", True, CA),
    ],
)
def test_a_protocol_says_whether_there_is_a_login_and_tls(
    security: str, sasl: bool, trusted: Path | None
) -> None:
    made = login(security, ca=CA)
    assert (made.sasl, made.trusted) == (sasl, trusted)


def test_a_password_is_never_printed() -> None:
    assert "secret" not in repr(KafkaLogin("SASL_SSL", "PLAIN", "u", "secret"))


def test_librdkafka_has_names_of_its_own() -> None:
    assert for_librdkafka(login("PLAINTEXT", ca=CA)) == {}
    assert for_librdkafka(login("SSL")) == {"security.protocol": "SSL"}
    assert for_librdkafka(login("SASL_SSL", ca=CA)) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "p",
        "ssl.ca.location": str(CA),
    }


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-256", "scram.ScramLoginModule")],
)
def test_java_has_names_of_its_own(mechanism: str, module: str) -> None:
    assert for_java(login("PLAINTEXT")) == {}
    assert for_java(login("SASL_SSL", mechanism, CA)) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": (
            f'org.apache.kafka.common.security.{module} required username="u" password="p";'
        ),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(CA),
    }


def test_quotes_in_a_password_cannot_end_it() -> None:
    made = KafkaLogin("SASL_PLAINTEXT", "PLAIN", "u", 'a"; b\\')
    assert for_java(made)["sasl.jaas.config"].endswith(' password="a\\"; b\\\\";')
