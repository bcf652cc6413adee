"""What everything about stream tables needs: the connection, the nodes, and names."""

from __future__ import annotations

import threading
from typing import Protocol

from penstock.client.gateway import Gateway
from penstock.client.handler_calls import Executors
from penstock.client.nodes import Nodes
from penstock.client.result import Result
from penstock.client.table_subscription import TableSubscription
from penstock.client.wire import Rows

#: database of stream tables whose name has none, on a connection that has none
DEFAULT_DATABASE = "ha"


class Statements(Protocol):
    """The part of a connection that stream tables use."""

    #: for names without one
    database: str | None

    def execute(
        self, sql: str, *, database: str | None = None, idempotency_key: str | None = None
    ) -> int: ...
    def query(self, sql: str, *, database: str | None = None) -> Result: ...
    def write(self, table: str, rows: Rows, *, idempotency_key: str | None = None) -> int: ...


class AtNodes:
    """A connection together with the nodes of stream tables."""

    def __init__(self, connection: Statements, gateway: Gateway) -> None:
        """
        Args:
            connection: runs statements.
            gateway: says which groups and nodes there are; nodes take the same login.
        """
        self._connection = connection
        #: where the nodes are, and who leads
        self.nodes = Nodes(
            lambda: dict(gateway.get("/v1/groups").json()),
            gateway.authorization,
            context=gateway.context,
        )
        self._executors = Executors()
        self._subscriptions: dict[tuple[str, str], TableSubscription] = {}
        self._lock = threading.RLock()

    def qualify(self, name: str) -> str:
        """Return `database.table` of a stream table."""
        if "." in name:
            return name
        return f"{self._connection.database or DEFAULT_DATABASE}.{name}"

    def close(self) -> None:
        """End subscriptions and connections to nodes."""
        for subscription in list(self._subscriptions.values()):
            subscription.close()
        self._executors.close()
        self.nodes.close()

    def _of_group(self, name: str) -> list[str]:
        """Addresses of the nodes with copies, the leader first."""
        group = self.nodes.group_of(name)
        members = self.nodes.members(group)
        leader = self.nodes.leader(group)
        first = [leader.url] if leader is not None and leader.url else []
        return [*first, *(m for m in members if m not in first)]


def table_path(name: str, rest: str = "") -> str:
    """Return the path of the table `database.name` at a node."""
    database, _, table = name.partition(".")
    return f"/v1/tables/{database}/{table}{rest}"
