"""Rights of the catalog's users in Kafka itself: their passwords there, and rules made from
their grants.

Owns the pure `rules_of`, which grants mean which rules, and `KafkaRights`, which brings Kafka to
that. WRITE on a database is writing its ingestion topics, READ reading them, ADMIN and root have
both on all; nobody but the mesh touches the mesh's own topics. Rights on single tables mean nothing
here: a topic has the rows of all of its database's. Rules on ingestion topics are made from grants
alone: one that somebody made by Kafka's own tools is taken back. Groups of consumers: a user's are
called as the user is, or begin so with a colon.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, Protocol

from penstock import names
from penstock.auth.access import Access
from penstock.auth.kafka_users import KafkaUsers, Rule
from penstock.catalog.changes import Change
from penstock.catalog.model import Database, Role, User
from penstock.catalog.view import Catalog
from penstock.errors import BusError
from penstock.runtime import log, vital

_log = log.get("gateway.kafka")
_EVERY_TOPIC = names.ingest_topic("")
_OPERATIONS: tuple[Literal["READ", "WRITE"], ...] = ("READ", "WRITE")


class Passwords(Protocol):
    """Where passwords of users go besides the catalog."""

    def set(self, user: str, password: str) -> None:
        """Raises BusError."""

    def forget(self, user: str) -> None:
        """Raises BusError."""


class NoPasswords:
    """A mesh whose Kafka knows no users, or has its own."""

    def set(self, user: str, password: str) -> None:
        """Keep nothing."""

    def forget(self, user: str) -> None:
        """Have nothing to forget."""


def rules_of(catalog: Catalog, access: Access) -> set[Rule]:
    """Return the rules that the grants of all users mean. Pure."""
    users = [
        access.root,
        *(u.name for u in catalog.users() if u.enabled and u.name.lower() != names.KAFKA_USER),
    ]
    return {rule for user in users for rule in _of_user(catalog, access, user)}


def _of_user(catalog: Catalog, access: Access, user: str) -> Iterator[Rule]:
    reads = False
    for operation in _OPERATIONS:
        topics = _topics_of_user(catalog, access, user, operation)
        for name, prefixed in topics:
            yield Rule(user, operation, "TOPIC", name, prefixed)
            yield Rule(user, "DESCRIBE", "TOPIC", name, prefixed)
        reads = reads or (operation == "READ" and bool(topics))
    if reads:
        yield Rule(user, "READ", "GROUP", user)
        yield Rule(user, "READ", "GROUP", f"{user}:", True)


def _topics_of_user(
    catalog: Catalog, access: Access, user: str, operation: Literal["READ", "WRITE"]
) -> list[tuple[str, bool]]:
    """Return names of topics that *user* may read or write, and whether they are beginnings."""
    if access.may(user, operation, None) or access.may(user, "ADMIN", None):
        return [(_EVERY_TOPIC, True)]
    databases = [d for d in catalog.databases() if access.may(user, operation, d)]
    return [topic for database in databases for topic in _topics(database)]


def _topics(database: Database) -> list[tuple[str, bool]]:
    first, others = names.ingest_topics(database.name)
    return [(first, False), *((begin, True) for begin in others)]


def ours(rule: Rule) -> bool:
    """Tell whether a rule is of the kind that grants make: others are an operator's. Pure."""
    if rule.kind == "GROUP":
        return rule.operation == "READ" and (rule.name, rule.prefixed) in (
            (rule.user, False),
            (f"{rule.user}:", True),
        )
    return rule.user != names.KAFKA_USER and rule.name.startswith(_EVERY_TOPIC)


class KafkaRights:
    """Keeps Kafka's users and rules as the catalog has them. `follow` runs where statements do,
    `keep` beside it.
    """

    def __init__(
        self, users: KafkaUsers, catalog: Callable[[], Catalog], access: Access, password: str
    ) -> None:
        """
        Args:
            access: answers for the same catalog.
            password: of root, who logs in to Kafka, too.
        """
        self._users = users
        self._catalog = catalog
        self._access = access
        self._password = password
        self._lock = threading.Lock()
        #: users whose passwords need not be learned
        self._known: set[str] = set()
        self._learning = ThreadPoolExecutor(1, thread_name_prefix="kafka-passwords")
        #: rules may differ from the grants
        self.behind = True

    def set(self, user: str, password: str) -> None:
        """Let *user* log in to Kafka with *password*. Raises BusError."""
        try:
            self._users.set_password(user, password)
        except BusError as refused:
            hint = (
                f"the password is good everywhere else; ALTER USER {user} PASS '…' tells Kafka"
                " again"
            )
            raise BusError(
                refused.message, detail=refused.detail, hint=hint, retryable=refused.retryable
            ) from refused

    def forget(self, user: str) -> None:
        """Let *user* log in to Kafka no more. Raises BusError."""
        self._users.forget(user)

    def learn(self, user: str, password: str) -> None:
        """Give Kafka, soon, a password that was right just now, if it has none of the user: one who
        is older than Kafka's login.
        """
        if user not in self._known and user.lower() not in (
            names.KAFKA_USER,
            self._access.root.lower(),
        ):
            self._known.add(user)
            self._learning.submit(self._learn, user, password)

    def _learn(self, user: str, password: str) -> None:
        try:
            if not self._users.has_password(user):
                self._users.set_password(user, password)
        except vital.FAULTS as fault:
            self._known.discard(user)
            _log.warning(
                "Kafka does not know a user's password",
                user=user,
                reason=f"{type(fault).__name__}: {fault}",
            )

    def close(self) -> None:
        """End what waits for Kafka."""
        self._learning.shutdown(wait=False, cancel_futures=True)

    def follow(self, change: Change) -> None:
        """Bring Kafka to what *change*, which is in the catalog, means for rights. Faults are
        logged, and mended by `keep`.
        """
        if any(isinstance(entry, User | Role) for entry in (*change.puts, *change.removes)) or any(
            isinstance(entry, Database) for entry in change.removes
        ):
            self.behind = True
            try:
                self.keep()
            except BusError as fault:
                _log.warning("rights in Kafka are behind the grants", reason=str(fault))

    def know_root(self) -> None:
        """Let root log in to Kafka, who is in no catalog. Raises BusError."""
        self._users.set_password(self._access.root, self._password)

    def keep(self) -> None:
        """Make the rules that are missing and take back those that no grant means. Raises
        BusError.
        """
        with self._lock:
            self.behind = False
            try:
                should = rules_of(self._catalog(), self._access)
                there = {rule for rule in self._users.rules() if ours(rule)}
                # what is taken back first: a right that is gone matters more than one that comes
                self._users.withdraw(there - should)
                self._users.allow(should - there)
            except BaseException:
                self.behind = True
                raise
