"""Options of Redis and Kafka clients: with passwords, so never for a log."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit


@dataclass(frozen=True)
class KafkaLogin:
    """Protocol, user and password for brokers, in Kafka's own words."""

    security: str
    mechanism: str
    user: str
    password: str = field(repr=False)
    #: PEM file of authorities to trust besides the machine's own
    ca: Path | None = None

    @property
    def sasl(self) -> bool:
        return self.security.startswith("SASL")

    @property
    def trusted(self) -> Path | None:
        """`ca`, where TLS asks for it."""
        return self.ca if self.security.endswith("SSL") else None


def redis_dsn(url: str, user: str, password: str | None, ca: Path | None) -> str:
    """Return *url* with user, password and authorities in it, for `redis.from_url`."""
    parts = urlsplit(url)
    if password is not None:
        host = parts.netloc.rpartition("@")[2]
        login = f"{quote(user, safe='')}:{quote(password, safe='')}"
        parts = parts._replace(netloc=f"{login}@{host}")
    if ca is not None and parts.scheme == "rediss":
        given = f"ssl_ca_certs={quote(str(ca))}&ssl_cert_reqs=required"
        parts = parts._replace(query=f"{parts.query}&{given}" if parts.query else given)
    return urlunsplit(parts)


def for_librdkafka(login: KafkaLogin) -> dict[str, str]:
    """Return the options of a Kafka client in librdkafka's names."""
    if login.security == "PLAINTEXT":
        return {}
    options = {"security.protocol": login.security}
    if login.sasl:
        options |= {
            "sasl.mechanism": login.mechanism,
            "sasl.username": login.user,
            "sasl.password": login.password,
        }
    if login.trusted is not None:
        options["ssl.ca.location"] = str(login.trusted)
    return options


def for_java(login: KafkaLogin) -> dict[str, str]:
    """Return the options of a Kafka client in the names of Java's client."""
    if login.security == "PLAINTEXT":
        return {}
    options = {"security.protocol": login.security}
    if login.sasl:
        plain = login.mechanism == "PLAIN"
        module = "plain.PlainLoginModule" if plain else "scram.ScramLoginModule"
        options |= {
            "sasl.mechanism": login.mechanism,
            "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required"
            f" username={_java_quoted(login.user)} password={_java_quoted(login.password)};",
        }
    if login.trusted is not None:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(login.trusted)}
    return options


def _java_quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
