"""What SETTINGS `type='kafka'` mean, as they are checked, kept in the catalog and handed to a Kafka
client.

An external stream of this type is a plain table of ours that the federation service fills from the
topic, so whatever reads tables reads it; its second column tells its messages apart (`MESSAGE_ID`).
The password is a secret file (`penstock.link.external`), never here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from penstock.catalog.model import FOREIGN, Table
from penstock.errors import CatalogError
from penstock.link import external
from penstock.sql.words import in_backticks, quote_string

#: partition and offset of the message in one integer, so that messages of one time are different
#: rows
MESSAGE_ID = "message_id"
_OFFSET_BITS = 48
#: how names of topics begin in which a mesh keeps its catalog, events and offsets
_OWN_TOPICS = "penstock."
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


#: how the bytes of a message are read
Form: TypeAlias = Literal["json", "avro", "protobuf"]


class _Format(NamedTuple):
    """A `data_format`: its name, how bytes are read, and whether messages tell of changes."""

    name: str
    form: Form
    changes: bool = False


_FORMATS = {
    "jsoneachrow": _Format("JSONEachRow", "json"),
    "json": _Format("JSONEachRow", "json"),
    "avro": _Format("Avro", "avro"),
    "protobuf": _Format("Protobuf", "protobuf"),
    "debeziumjson": _Format("DebeziumJSON", "json", changes=True),
    "debezium-json": _Format("DebeziumJSON", "json", changes=True),
    "debeziumavro": _Format("DebeziumAvro", "avro", changes=True),
    "debezium-avro-confluent": _Format("DebeziumAvro", "avro", changes=True),
}
KNOWN = (
    "type",
    "brokers",
    "topic",
    "data_format",
    "kafka_schema_registry_url",
    "security_protocol",
    "sasl_mechanism",
    "username",
    "password",
    "password_file",
    "ssl_ca_cert_file",
    "start",
    "fixed_time",
)


def message_id(partition: int, offset: int) -> int:
    """Return the value of `MESSAGE_ID`: grows with the offset within each partition."""
    return partition << _OFFSET_BITS | offset


@dataclass(frozen=True)
class Topic:
    """Place and format of the messages. `begin` has the offset at which the stream begins in each
    partition; a partition that is not in it is read from its first message.
    """

    brokers: str
    topic: str
    format: Form
    registry: str = ""
    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    user: str = ""
    ca_file: str = ""
    begin: tuple[tuple[int, int], ...] = ()
    #: the user who made the stream, whose rights say where it may be; empty: made before that was
    #: kept
    maker: str = ""
    #: messages tell of changes of rows (Debezium), and are no rows themselves
    changes: bool = False
    #: the rows that change have no time of their own
    fixed_time: bool = False

    @property
    def places(self) -> list[tuple[str, int]]:
        """Return host and port of each broker that the settings name."""
        found = [b.rpartition(":") for b in self.brokers.split(",")]
        return [(host.strip("[]"), int(port)) for host, _, port in found]

    @property
    def registry_place(self) -> tuple[str, int] | None:
        """Return host and port of the schema registry, if there is one."""
        if not self.registry:
            return None
        parts = urlsplit(self.registry)
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def hosts(self) -> list[str]:
        """Return the hosts in the settings that this deployment will speak to."""
        found = [host for host, _ in self.places]
        return [*found, self.registry_place[0]] if self.registry_place is not None else found

    def options(self, password: str) -> dict[str, str]:
        """Return the options of a Kafka client for the brokers (`penstock.bus`)."""
        options = {"security.protocol": self.protocol}
        if self.ca_file:
            options["ssl.ca.location"] = self.ca_file
        if self.protocol.startswith("SASL"):
            options |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": self.user,
                "sasl.password": password,
            }
        return options

    def option(self) -> str:
        """Return the text of the table's option."""
        return json.dumps(asdict(self), separators=(",", ":"))


def at(topic: Topic, begin: Mapping[int, int]) -> Topic:
    """Return the same topic, read from these offsets on."""
    return replace(topic, begin=tuple(begin.items()))


def of(table: Table) -> Topic | None:
    """Return the topic that *table* stands for; None for a table like others."""
    text = table.options.get(FOREIGN)
    if text is None:
        return None
    held = json.loads(text)
    known = {f.name for f in fields(Topic)}
    return Topic(
        **{k: v for k, v in held.items() if k in known and k != "begin"},
        begin=tuple((p, o) for p, o in held["begin"]),
    )


def _check_keys(given: Mapping[str, str]) -> None:
    """Raise CatalogError for a setting that is not known, or one that is missing."""
    unknown = [key for key in given if key not in KNOWN]
    if unknown:
        raise _bad(
            f"there is no setting {unknown[0]}", f"settings of type 'kafka' are {', '.join(KNOWN)}"
        )
    for key in ("brokers", "topic", "data_format"):
        if not given.get(key, "").strip():
            raise _bad(f"Setting `{key}` cannot be empty", f"{key}='…'")


def _read_registry(given: Mapping[str, str], form: str) -> str:
    registry = given.get("kafka_schema_registry_url", "").rstrip("/")
    if (form != "json") != bool(registry):
        raise _bad(
            "Avro and Protobuf need kafka_schema_registry_url, and JSON has no use for it",
            "kafka_schema_registry_url='http://host:port'",
        )
    if registry and not _is_address(registry):
        raise _bad(
            "kafka_schema_registry_url is no address",
            "http://host:port or https://host:port, without a password",
        )
    return registry


def _read_security(given: Mapping[str, str]) -> tuple[str, str]:
    """Read security protocol and SASL mechanism."""
    protocol = given.get("security_protocol", "PLAINTEXT").upper()
    mechanism = given.get("sasl_mechanism", "").upper()
    if protocol not in _PROTOCOLS:
        raise _bad(f"security_protocol '{protocol}' is not known", ", ".join(_PROTOCOLS))
    allowed = _MECHANISMS if protocol.startswith("SASL") else ("",)
    if mechanism not in allowed:
        raise _bad(
            "sasl_mechanism belongs to a security_protocol with SASL",
            f"sasl_mechanism is one of {', '.join(_MECHANISMS)}",
        )
    return protocol, mechanism


def read_settings(
    given: Mapping[str, str], data_dir: Path
) -> tuple[Topic, str, Literal["earliest", "latest"]]:
    """Read the topic, the password, and where the stream begins. Raises CatalogError
    (`E_BAD_OPTION`).
    """
    _check_keys(given)
    form = _FORMATS.get(given["data_format"].lower())
    if form is None:
        names = dict.fromkeys(f"'{f.name}'" for f in _FORMATS.values())
        raise _bad(f"data_format '{given['data_format']}' is not known", ", ".join(names))
    registry = _read_registry(given, form.form)
    protocol, mechanism = _read_security(given)
    if given["topic"].startswith(_OWN_TOPICS):
        raise _bad(
            f"topics that begin with {_OWN_TOPICS} are a mesh's own",
            "read its tables through type='penstock'",
        )
    start = given.get("start", "earliest").lower()
    if start not in ("earliest", "latest"):
        raise _bad(f"start '{start}' is not known", "'earliest' or 'latest'")
    brokers = ",".join(external.host_and_port(b, 9092) for b in given["brokers"].split(","))
    user = given.get("username", "")
    ca_file = given.get("ssl_ca_cert_file", "")
    topic = Topic(
        brokers,
        given["topic"],
        form.form,
        registry,
        protocol,
        mechanism,
        user,
        ca_file,
        changes=form.changes,
        fixed_time=_read_fixed_time(given, form),
    )
    return (
        topic,
        external.password_of(given, data_dir),
        "latest" if start == "latest" else "earliest",
    )


def _read_fixed_time(given: Mapping[str, str], form: _Format) -> bool:
    fixed = given.get("fixed_time", "false").lower()
    if fixed not in ("true", "false") or (fixed == "true" and not form.changes):
        raise _bad("fixed_time is true or false, and belongs to Debezium's formats", "leave it out")
    return fixed == "true"


def _is_address(registry: str) -> bool:
    """Tell whether it is `http://host:port`, without a user or a query."""
    try:
        parts = urlsplit(registry)
        port_is_one = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return (
        parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and port_is_one
        and not any(c in registry for c in "@?#")
    )


def definition_sql(table: Table, topic: Topic) -> str:
    """Return CREATE EXTERNAL STREAM as it could be written again, but for the password."""
    settings = {
        "type": "kafka",
        "brokers": topic.brokers,
        "topic": topic.topic,
        "data_format": next(
            f.name for f in _FORMATS.values() if f[1:] == (topic.format, topic.changes)
        ),
        "kafka_schema_registry_url": topic.registry,
        "security_protocol": topic.protocol,
        "sasl_mechanism": topic.mechanism,
        "username": topic.user,
        "password": "******" if topic.mechanism else "",
        "ssl_ca_cert_file": topic.ca_file,
        "fixed_time": "true" if topic.fixed_time else "",
    }
    columns = ", ".join(
        f"{in_backticks(c.name)} {c.type}" + " PRIMARY KEY" * (c.name == table.key_column)
        for c in table.columns
        if c.name != MESSAGE_ID
    )
    text = ", ".join(f"{k} = {quote_string(v)}" for k, v in settings.items() if v)
    return f"CREATE EXTERNAL STREAM {in_backticks(table.name)} ({columns}) SETTINGS {text}"


def _bad(message: str, hint: str) -> CatalogError:
    return CatalogError(message, code="E_BAD_OPTION", hint=hint)
