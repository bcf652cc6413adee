"""What everything about stream tables needs of a connection: the gateway, the nodes, and names."""

from __future__ import annotations

import json
import ssl
import threading
from abc import ABC, abstractmethod

import httpx

from penstock.client.handler_calls import Executors
from penstock.client.nodes import Nodes
from penstock.client.result import Result
from penstock.client.table_subscription import TableSubscription
from penstock.client.wire import Rows

#: database of stream tables whose name has none, on a connection that has none
DEFAULT_DATABASE = "ha"


class AtNodes(ABC):
    """A connection that finds the nodes of stream tables."""

    _nodes_made: Nodes | None = None
    _context: ssl.SSLContext | None = None
    _executors_made: Executors | None = None

    def __init__(self) -> None:
        self._subscriptions: dict[tuple[str, str], TableSubscription] = {}
        self._stream_lock = threading.RLock()

    @abstractmethod
    def execute(
        self, sql: str, *, database: str | None = None, idempotency_key: str | None = None
    ) -> int: ...
    @abstractmethod
    def query(self, sql: str, *, database: str | None = None) -> Result: ...
    @abstractmethod
    def write(self, table: str, rows: Rows, *, idempotency_key: str | None = None) -> int: ...
    @abstractmethod
    def _send(
        self, path: str, body: bytes | None, kind: str, headers: dict[str, str]
    ) -> httpx.Response: ...
    @abstractmethod
    def _header(self) -> str: ...
    @abstractmethod
    def _default_database(self) -> str | None: ...

    @property
    def _nodes(self) -> Nodes:
        with self._stream_lock:
            if self._nodes_made is None:
                fetch = lambda: json.loads(self._send("/v1/groups", None, "", {}).content)  # noqa: E731
                self._nodes_made = Nodes(fetch, self._header(), context=self._context)
            return self._nodes_made

    @property
    def _executors(self) -> Executors:
        if self._executors_made is None:
            self._executors_made = Executors()
        return self._executors_made

    def close_stream_tables(self) -> None:
        """End subscriptions and connections to nodes."""
        for subscription in list(self._subscriptions.values()):
            subscription.close()
        if self._executors_made is not None:
            self._executors_made.close()
        if self._nodes_made is not None:
            self._nodes_made.close()

    def table_name(self, name: str) -> str:
        """`database.table` of a stream table."""
        return name if "." in name else f"{self._default_database() or DEFAULT_DATABASE}.{name}"

    def _of_group(self, name: str) -> list[str]:
        """Addresses of the nodes with copies, the leader first."""
        group = self._nodes.group_of(name)
        members = self._nodes.members(group)
        leader = self._nodes.leader(group)
        first = [leader.url] if leader is not None and leader.url else []
        return [*first, *(m for m in members if m not in first)]


def table_path(name: str, rest: str = "") -> str:
    """Of a node, for the table `database.name`."""
    database, _, table = name.partition(".")
    return f"/v1/tables/{database}/{table}{rest}"
