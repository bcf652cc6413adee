"""Configuration of a service, read from the environment.

A service subclasses `Settings`, names itself in `service` and adds its fields. A field is looked up
as `PENSTOCK_<SERVICE>_<FIELD>`, then as the shared `PENSTOCK_<FIELD>`; a secret also as `…_FILE`,
the path of a file that holds it. All faults of a start come in one ConfigError, which never holds a
value of a secret. Unknown `PENSTOCK_<SERVICE>_…` variables are faults: a typing error must not pass
as a default.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import (
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from penstock.config import connection_options
from penstock.config.environment import (
    PREFIX,
    EnvironmentSource,
    UnreadableSecret,
    prefixes,
    unknown_variables,
)
from penstock.config.raft import RaftGroups, parse_groups
from penstock.config.secret_files import read_secret
from penstock.errors import EXIT_CONFIG, ConfigError

#: characters of a signing key, at least
SHORTEST_KEY = 32

Port = Annotated[int, Field(ge=0, le=65535)]


class Settings(BaseSettings):
    """Settings that every service has; 0 as a port means any free one."""

    service: ClassVar[str] = ""
    #: names that TDengine gives to settings of ours: accepted as variables, after our own
    reference_names: ClassVar[Mapping[str, str]] = {
        "checkpoint_backup_dir": "checkpointBackupDir",
        "address": "snodeAddress",
    }

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    host: str = "127.0.0.1"
    port: Port = 0
    health_port: Port = 0

    kafka_bootstrap: str = "127.0.0.1:7703"
    redis_url: str = "redis://127.0.0.1:7705/0"
    redis_password: SecretStr | None = None
    #: user of Redis' access lists; empty: its default user
    redis_user: str = ""
    #: authorities that Redis' certificate may be of (`rediss://`, `rediss+sentinel://`), besides
    #: the machine's own
    redis_ca: Path | None = None
    #: connections that one address (of IPv6: a /64) may have to each port of a service; 0: as many
    #: as come
    max_connections_per_address: int = Field(2_000, ge=0)
    #: connections that each port may have in all; 0: as many as come
    max_connections: int = Field(20_000, ge=0)
    #: seconds in which a connection has to send the headers of a request, and its body
    header_seconds: float = Field(10.0, gt=0)
    body_seconds: float = Field(120.0, gt=0)
    #: how brokers are spoken to, as Kafka calls it
    kafka_security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    kafka_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    kafka_user: str = ""
    kafka_password: SecretStr | None = None
    #: users of the catalog are Kafka's users, too, with what their grants allow: for a Kafka that
    #: has a login and is the mesh's alone
    kafka_users: bool = False
    #: PEM file of the authorities that the brokers' certificates may be of, besides the machine's
    #: own
    kafka_ca: Path | None = None
    gateway_url: str = "http://127.0.0.1:7700"
    notifier_url: str = "ws://127.0.0.1:7701"
    store_url: str = "grpc://127.0.0.1:7702"
    federation_url: str = "ws://127.0.0.1:7707"

    data_dir: Path = Path(".penstock")
    #: operator state and segments may live in an object store: fsspec URLs are fine
    state_dir: str = Field(default_factory=lambda data: str(data["data_dir"] / "state"))
    segments_dir: str = Field(default_factory=lambda data: str(data["data_dir"] / "segments"))
    #: where snodes keep backups and standbys find them: a directory, host:path or rsync://… for
    #: rsync, or an fsspec URL of an object store
    checkpoint_backup_dir: str = Field(
        default_factory=lambda data: str(data["data_dir"] / "backup")
    )
    #: signs the lists of backups, the same on all nodes; without it they are not signed, and none
    #: is restored by the jobs
    backup_key: SecretStr | None = None
    #: the jobs restore backups that the key did not sign, too: those of an older Penstock, say
    backup_unsigned: bool = False
    #: number of this node in the mesh (DNODE)
    node: int = Field(default=1, ge=1)
    #: how often `penstock up` has started this process again
    restarts: int | None = Field(default=None, ge=0)

    #: whoever asks for metrics with it reads names of topics, streams and views in them, others
    #: pseudonyms
    metrics_key: SecretStr | None = None

    #: PEM files of this service's certificate (with what it was signed by) and its key: then it
    #: speaks TLS only
    tls_cert: Path | None = None
    tls_key: Path | None = None
    #: PEM file of authorities that other services' certificates may be of, besides the machine's
    #: own
    tls_ca: Path | None = None

    #: the mesh's own user, who may do everything; others are made by CREATE USER
    user: str = "root"
    password: SecretStr | None = None
    #: the mesh's signing key: random, 32 characters or more; tokens are good at services that share
    #: it
    token_key: SecretStr | None = None
    #: hosts that external streams may be on (`*.example.com`, addresses, networks); those of users
    #: with ADMIN may be on any other, too
    external_allow: tuple[str, ...] = ()
    #: links may lead to the mesh they come from: to try out with one mesh what takes two
    external_self: bool = False
    #: logins, definitions, grants and refusals; empty: in the service's log only
    audit_log: str = Field(
        default_factory=lambda data: str(data["data_dir"] / "logs" / "audit.log")
    )
    #: the file is moved to `….1` when it has grown to this many bytes, and older ones on; 0: never
    audit_log_bytes: int = Field(default=64 << 20, ge=0)
    #: older files of the audit trail that are kept
    audit_log_files: int = Field(default=8, ge=0)

    #: `raft`: stream tables kept by groups of nodes; the names are those of `streamingHAMode` and
    #: its companions
    streaming_ha_mode: Literal["", "raft"] = ""
    #: `11:NODE1:NODE2:NODE3,12:…`: each group's id (greater than 1) and its members, three or more
    streaming_raft_groups: str = ""
    #: `11:NODE4,…`: nodes that keep copies without a vote
    streaming_raft_learners: str = ""
    #: `name:11,…`: another name for a group
    streaming_raft_group_aliases: str = Field("", validate_default=True)

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    clock: Literal["system", "manual"] = "system"
    timezone: str = "UTC"

    @field_validator("data_dir", mode="after")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("token_key", mode="after")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < SHORTEST_KEY:
            raise ValueError(
                f"a signing key has {SHORTEST_KEY} random characters or more: openssl rand"
                " -base64 48"
            )
        return value

    @field_validator("timezone", mode="after")
    @classmethod
    def _check_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except Exception as unknown:
            raise ValueError(f"no such time zone: {value}") from unknown
        return value

    @field_validator("streaming_raft_group_aliases", mode="after")
    @classmethod
    def _groups_parse(cls, value: str, info: ValidationInfo) -> str:
        """The last of the three: here they can be read together."""
        try:
            parse_groups(
                info.data.get("streaming_raft_groups", ""),
                info.data.get("streaming_raft_learners", ""),
                value,
            )
        except ConfigError as wrong:
            raise ValueError(wrong.message + (f" ({wrong.hint})" if wrong.hint else "")) from wrong
        return value

    @property
    def raft_groups(self) -> RaftGroups:
        """The groups of stream tables; none unless `streaming_ha_mode` says so."""
        if not self.streaming_ha_mode:
            return RaftGroups()
        return parse_groups(
            self.streaming_raft_groups,
            self.streaming_raft_learners,
            self.streaming_raft_group_aliases,
        )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError(
                "TLS needs a certificate and its key: PENSTOCK_TLS_CERT and PENSTOCK_TLS_KEY"
            )
        if self.kafka_security.startswith("SASL") and not (self.kafka_user and self.kafka_password):
            raise ValueError(
                f"{self.kafka_security} needs PENSTOCK_KAFKA_USER and PENSTOCK_KAFKA_PASSWORD"
            )
        return self

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Read the environment; *overrides* win.

        Raises:
            ConfigError: with every fault found, one a line.
        """
        faults = [
            f"{name}: no such setting"
            for name in unknown_variables(cls.service, cls.model_fields, Settings.model_fields)
        ]
        try:
            loaded = cls(**overrides)
        except ValidationError as wrong:
            faults += [
                f"{_variable(cls, str(e['loc'][0]) if e['loc'] else '')}: {e['msg']}"
                for e in wrong.errors(include_input=False)
                if e["type"] != "default_factory_not_called"  # follows from another fault
            ]
        except UnreadableSecret as wrong:
            faults.append(str(wrong))
        if faults:
            hint = (
                f"`python -m {cls.__module__.rpartition('.')[0] or 'penstock'} --print-config`"
                " shows all settings"
            )
            raise ConfigError(
                f"configuration of {cls.service or 'penstock'} is wrong",
                detail="\n".join(faults),
                hint=hint,
            )
        return loaded

    @classmethod
    def from_command_line(cls, argv: list[str] | None = None) -> Self:
        """For `__main__`: load, or print the configuration for `--print-config`, or print all
        faults and exit with 78.
        """
        arguments = sys.argv[1:] if argv is None else argv
        try:
            loaded = cls.load()
        except ConfigError as wrong:
            print(wrong, file=sys.stderr)
            raise SystemExit(EXIT_CONFIG) from None
        if "--print-config" in arguments:
            print(json.dumps(loaded.printable(), indent=2))
            raise SystemExit(0)
        return loaded

    def printable(self) -> dict[str, Any]:
        """Every setting under its variable's name, secrets masked."""
        return {
            _variable(type(self), name): value
            for name, value in self.model_dump(mode="json").items()
        }

    @property
    def root_password(self) -> str:
        """The password of `user`: the setting, else what `penstock up` generated in the data
        directory.

        Raises:
            ConfigError: there is neither.
        """
        if self.password is not None:
            return self.password.get_secret_value()
        return read_secret(
            self.data_dir / "secrets" / "root.password", _variable(type(self), "password")
        )

    @property
    def signing_key(self) -> str | None:
        """The key of tokens: the setting, else what `penstock up` generated in the data directory,
        if it did.

        Raises:
            ConfigError: the file cannot be read.
        """
        if self.token_key is not None:
            return self.token_key.get_secret_value()
        return self._read_generated("token.key", "token_key")

    @property
    def backup_signing_key(self) -> bytes | None:
        """`backup_key`, else what `penstock up` generated in the data directory; None when there is
        neither.
        """
        if self.backup_key is not None:
            return self.backup_key.get_secret_value().encode()
        key = self._read_generated("backup.password", "backup_key")
        return None if key is None else key.encode()

    @property
    def metrics_secret(self) -> str | None:
        """`metrics_key`, else what `penstock up` generated in the data directory; None when there
        is neither.
        """
        if self.metrics_key is not None:
            return self.metrics_key.get_secret_value() or None
        return self._read_generated("metrics.key", "metrics_key")

    def _read_generated(self, file: str, field: str) -> str | None:
        """Read a secret that `penstock up` generated, if it did."""
        path = self.data_dir / "secrets" / file
        return read_secret(path, _variable(type(self), field)) if path.exists() else None

    @property
    def redis_dsn(self) -> str:
        """`redis_url` with the password in it: for `redis.from_url`, never for a log."""
        password = self.redis_password
        text = None if password is None else password.get_secret_value()
        return connection_options.redis_dsn(self.redis_url, self.redis_user, text, self.redis_ca)

    @property
    def kafka_options(self) -> dict[str, str]:
        """Options of a Kafka client in librdkafka's names; with the password in it: never for a
        log.
        """
        return connection_options.for_librdkafka(self._kafka_login)

    @property
    def kafka_java_options(self) -> dict[str, str]:
        """The same in the names of Java's client, for Spark (there with `kafka.` before each)."""
        return connection_options.for_java(self._kafka_login)

    @property
    def _kafka_login(self) -> connection_options.KafkaLogin:
        return connection_options.KafkaLogin(
            self.kafka_security,
            self.kafka_mechanism,
            self.kafka_user,
            self.kafka_password.get_secret_value() if self.kafka_password is not None else "",
            self.kafka_ca,
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, EnvironmentSource(settings_cls)


def _variable(cls: type[Settings], field: str) -> str:
    own = field in cls.model_fields and (
        field not in Settings.model_fields or field in ("host", "port", "health_port")
    )
    return (prefixes(cls.service)[0] if own else PREFIX) + field.upper()
