"""The nodes that may serve a subscription to a stream table: which to ask, and how."""

from __future__ import annotations

import json
import secrets

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection

from penstock.client.nodes import Nodes
from penstock.client.row_progress import RowProgress
from penstock.client.subscription_options import SubscriptionOptions, Target
from penstock.errors import PenstockError, RemoteError
from penstock.remote_errors import error_of

#: errors of a node that another one, or the same one later, may not have
_PASSING = frozenset({"E_NODE_DOWN", "E_SUBSCRIPTION_EXISTS", "E_NOT_LEADER"})


class PublisherNodes:
    """Says the same id to all of them, so that the subscription stays the same one."""

    def __init__(self, nodes: Nodes, target: Target, options: SubscriptionOptions) -> None:
        self._nodes = nodes
        self._target = target
        self._options = options
        self._id = secrets.token_hex(8)
        #: as the node calls the subscription
        self.topic = ""
        #: address of the node that served it last
        self.served_by = ""

    def first(self) -> list[str]:
        """List the addresses to begin with: the node that was asked for, then as `addresses`."""
        wanted = [self._nodes.url(self._target.node)] if self._target.node else []
        return list(dict.fromkeys(wanted + self.addresses()))

    def addresses(self, avoid: str = "") -> list[str]:
        """List the nodes to ask, the leader first if there is one."""
        leader = self._nodes.leader(self._target.group, avoid=avoid)
        urls = [leader.url] if leader is not None and leader.url else []
        urls += self._nodes.members(self._target.group)
        return [url for url in dict.fromkeys(urls) if not avoid or url != avoid]

    def connect(self, url: str, progress: RowProgress) -> ClientConnection:
        """Subscribe at a node, from where *progress* is.

        Raises:
            RemoteError: `E_NODE_DOWN` when nobody answers there, else what the node says.
        """
        try:
            socket = self._nodes.dial(url, "/v1/subscribe", max_size=None, max_queue=16)
            hello = {
                "table": self._target.table,
                "action": self._target.action,
                "id": self._id,
                "offset": progress.next if progress.is_known else self._target.offset,
                "filter": self._options.filter,
            }
            if self._options.raft_group is not None:
                hello["raft_group"] = self._options.raft_group
            socket.send(json.dumps({**hello, "resume": progress.is_known}))
            answer = json.loads(socket.recv(2.0))
        except (OSError, WebSocketException, TimeoutError) as away:
            raise RemoteError(
                f"the node at {url} does not answer", code="E_NODE_DOWN", detail=type(away).__name__
            ) from away
        if answer["type"] == "error":
            socket.close()
            raise error_of(answer)
        if not progress.is_known and self._options.raft_group is None:
            progress.next = int(answer["from"])
        self.topic = answer["topic"]
        self.served_by = url
        return socket

    def may_pass(self, error: PenstockError) -> bool:
        """Tell whether another node, or the same one later, may serve this subscription."""
        if error.code == "E_NO_TABLE":
            return "no copy" in error.message or not self._nodes.is_gone(self._target.table)
        return error.code in _PASSING
