"""Users of Kafka and what they may do: passwords by SCRAM, and access rules (ACLs), typed and
small.

Beside `bus` the only file of the shared package that calls confluent_kafka. Which users and rules
there should be is the gateway's (`gateway.kafka_rights`). Every failure is a `BusError`; none holds
a password.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from penstock import bus
from penstock.errors import BusError

Kind = Literal["TOPIC", "GROUP"]
Operation = Literal["READ", "WRITE", "DESCRIBE"]
#: the mechanism users log in by, as Kafka's clients call it
MECHANISM = "SCRAM-SHA-256"
_ITERATIONS = 4096
_PRINCIPAL = "User:"
#: hosts that a rule holds for: a rule of Penstock's holds everywhere
_ANYWHERE = "*"


@dataclass(frozen=True, order=True)
class Rule:
    """*user* may do *operation* on the topic or group *name*, or (prefixed) on all whose names
    begin so.
    """

    user: str
    operation: Operation
    kind: Kind
    name: str
    prefixed: bool = False


class KafkaUsers:
    """Asks and tells the brokers. Any thread; blocks."""

    def __init__(self, bootstrap: str, *, client_id: str, timeout: float = 10.0) -> None:
        """
        Args:
            timeout: seconds that one question may take.
        """
        config: dict[str, Any] = {
            **bus.login(bootstrap),
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "reconnect.backoff.max.ms": 1000,
            "logger": bus.LOGGER,
        }
        self._admin = AdminClient(config)
        self._timeout = timeout

    def set_password(self, user: str, password: str) -> None:
        """Let *user* log in with *password*, and with no other. Connections that are open stay
        so.
        """
        upsertion = UserScramCredentialUpsertion(
            user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, _ITERATIONS), password.encode()
        )
        self._all(
            self._admin.alter_user_scram_credentials([upsertion], request_timeout=self._timeout),
            f"Kafka does not take {user}",
        )

    def forget(self, user: str) -> None:
        """Let *user* log in no more; one who could not is no error."""
        deletion = UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256)
        told = self._admin.alter_user_scram_credentials([deletion], request_timeout=self._timeout)
        self._all(told, f"Kafka does not forget {user}", allow=("RESOURCE_NOT_FOUND",))

    def has_password(self, user: str) -> bool:
        """Tell whether *user* can log in with some password."""
        asked = self._admin.describe_user_scram_credentials([user], request_timeout=self._timeout)
        assert isinstance(asked, dict)  # it is a single future when nobody is named
        (described,) = self._all(
            asked, f"cannot ask Kafka for {user}", allow=("RESOURCE_NOT_FOUND",)
        )
        return described is not None and bool(described.scram_credential_infos)

    def rules(self) -> set[Rule]:
        """Return the rules there are, without those that Penstock would not make: of other hosts,
        kinds, operations and refusals.
        """
        whatever: Any = None
        every = AclBindingFilter(
            ResourceType.ANY,
            whatever,
            ResourcePatternType.ANY,
            whatever,
            whatever,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        (found,) = self._all(
            {"": self._admin.describe_acls(every, request_timeout=self._timeout)},
            "cannot ask Kafka for its rules",
        )
        return {rule for binding in found if (rule := _rule(binding)) is not None}

    def allow(self, rules: Iterable[Rule]) -> None:
        """Make *rules*; one that is there already is no error."""
        if bindings := [_binding(rule) for rule in rules]:
            self._all(
                self._admin.create_acls(bindings, request_timeout=self._timeout),
                "Kafka does not take a rule",
            )

    def withdraw(self, rules: Iterable[Rule]) -> None:
        """Take *rules* back; one that is not there is no error."""
        filters = [
            AclBindingFilter(
                b.restype,
                b.name,
                b.resource_pattern_type,
                b.principal,
                b.host,
                b.operation,
                b.permission_type,
            )
            for b in map(_binding, rules)
        ]
        if filters:
            self._all(
                self._admin.delete_acls(filters, request_timeout=self._timeout),
                "Kafka does not take a rule back",
            )

    def _all(
        self, told: dict[Any, Future[Any]], message: str, allow: tuple[str, ...] = ()
    ) -> list[Any]:
        """Wait for all answers; None for one that failed as *allow* lets it. Futures end with the
        dictionary they came in: it is kept.
        """
        answers: list[Any] = []
        for future in told.values():
            try:
                answers.append(future.result(self._timeout + 5))
            except KafkaException as refused:
                error = refused.args[0]
                if error.name() not in allow:
                    raise BusError(
                        message,
                        detail=f"{error.name()}: {error.str()}",
                        retryable=bool(error.retriable()),
                    ) from None
                answers.append(None)
            except TimeoutError:
                raise BusError(message, detail="no answer in time", retryable=True) from None
        return answers


def _binding(rule: Rule) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if rule.prefixed else ResourcePatternType.LITERAL
    kind = ResourceType[rule.kind]
    operation = AclOperation[rule.operation]
    return AclBinding(
        kind,
        rule.name,
        pattern,
        _PRINCIPAL + rule.user,
        _ANYWHERE,
        operation,
        AclPermissionType.ALLOW,
    )


def _rule(binding: Any) -> Rule | None:
    """What a binding says, whose parts are enumerations once they come from a broker."""
    kind = binding.restype.name
    operation = binding.operation.name
    made = (
        kind in ("TOPIC", "GROUP")
        and operation in ("READ", "WRITE", "DESCRIBE")
        and binding.host == _ANYWHERE
    )
    if (
        not made
        or binding.permission_type is not AclPermissionType.ALLOW
        or not binding.principal.startswith(_PRINCIPAL)
    ):
        return None
    prefixed = binding.resource_pattern_type is ResourcePatternType.PREFIXED
    return Rule(binding.principal.removeprefix(_PRINCIPAL), operation, kind, binding.name, prefixed)
