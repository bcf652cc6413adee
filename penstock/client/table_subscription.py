"""A subscription to a stream table: from a row on, every row once and in order, whichever node
leads.

It goes to the leader when that
changes and goes on at the row behind the last one it has; row ids say which that is, so nothing is
missed or repeated. Handlers run one call at a time per subscription. There are no gaps: when the
next row is not kept any more the subscription ends with an error that names the earliest.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.compute as pc
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection

from penstock.client.handler_calls import Executors, HandlerCalls
from penstock.client.nodes import Nodes
from penstock.client.subscription_options import SubscriptionOptions, Target
from penstock.client.subscription_view import subscription_view
from penstock.client.wire import ROW_ID, from_stream
from penstock.errors import PenstockError, RemoteError
from penstock.notebook.live import Live
from penstock.notebook.markup import SHOWN_ROWS
from penstock.notebook.view import NotebookView
from penstock.remote_errors import error_of

#: seconds without a sign of life after which another node is tried
_SILENCE = 1.2
_PAUSE = 0.02
_LONG_PAUSE = 0.25
#: errors of a node that another one, or the same one later, may not have
_PASSING = frozenset({"E_NODE_DOWN", "E_SUBSCRIPTION_EXISTS", "E_NOT_LEADER"})


class TableSubscription(Live):
    """Running from `open` to `close`. `error` holds what ended it early."""

    def __init__(
        self,
        nodes: Nodes,
        target: Target,
        handler: Callable[..., Any],
        options: SubscriptionOptions,
        executors: Executors,
    ) -> None:
        """
        Args:
            handler: gets a message; with `handler_need_msg_id` also the id of its last row.
            options: the filter as nodes take it, the group by its id.
        """
        self._nodes = nodes
        self.table = target.table
        self._group = target.group
        self.action = target.action
        self.options = options
        self._calls = HandlerCalls(handler, options, executors)
        self._node = target.node
        self._id = secrets.token_hex(8)
        self._asked = target.offset
        #: the next row that is wanted; below zero: not known yet
        self.next = -1
        self.topic = ""
        #: address of the node that serves it
        self.served_by = ""
        self.error: PenstockError | None = None
        self.cancelled = False
        #: whether rows come here; with a raft_group they come to one of several programs at a time
        self.executes = options.raft_group is None
        self._socket: ClientConnection | None = None
        self._closed = False
        #: the node said where to go, which is no loss of the connection
        self._moving = False
        self._ended = threading.Event()
        #: rows up to which handlers are done, and up to which a node knows it
        self._processed = -1
        self._confirmed = -1
        self._thread = threading.Thread(
            target=self._run, name=f"subscription-{self.table}/{self.action}", daemon=True
        )

    def open(self) -> TableSubscription:
        """Subscribe; whatever is written after this call comes. Raises PenstockError."""
        socket = self._begin()
        self._thread.start()
        self._socket = socket
        return self

    def close(self) -> None:
        """Stop; what is in a handler goes on to its end."""
        self._closed = True
        socket = self._socket
        if socket is not None:
            socket.close()
        if threading.current_thread() is not self._thread and self._thread.ident is not None:
            self._thread.join(10)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended, by an error or by being cancelled."""
        return self._ended.wait(seconds)

    # ---------------------------------------------------------------- connections

    def _begin(self) -> ClientConnection:
        """Make the first connection: refusals are the caller's. A node that is away is not: the
        next one is asked.
        """
        urls = [self._nodes.url(self._node)] if self._node else []
        urls += self._places()
        failed: PenstockError = RemoteError(
            "no node is there", code="E_NODE_DOWN", hint="`penstock status` shows the nodes"
        )
        end = time.monotonic() + 10.0
        while time.monotonic() < end:
            for url in dict.fromkeys(urls):
                try:
                    return self._connect(url)
                except PenstockError as error:
                    if error.code not in ("E_NODE_DOWN", "E_NOT_LEADER"):
                        raise
                    failed = error
            time.sleep(_LONG_PAUSE)
        raise failed

    def _connect(self, url: str) -> ClientConnection:
        """Raises RemoteError (`E_NODE_DOWN`) when nobody answers there, else what the node says."""
        try:
            socket = self._nodes.dial(url, "/v1/subscribe", max_size=None, max_queue=16)
            offset = self._asked if self.next < 0 else self.next
            hello = {
                "table": self.table,
                "action": self.action,
                "id": self._id,
                "offset": offset,
                "filter": self.options.filter,
            }
            if self.options.raft_group is not None:
                hello["raft_group"] = self.options.raft_group
            socket.send(json.dumps({**hello, "resume": self.next >= 0}))
            answer = json.loads(socket.recv(2.0))
        except (OSError, WebSocketException, TimeoutError) as away:
            raise RemoteError(
                f"the node at {url} does not answer", code="E_NODE_DOWN", detail=type(away).__name__
            ) from away
        if answer["type"] == "error":
            socket.close()
            raise error_of(answer)
        if self.next < 0 and self.options.raft_group is None:
            self.next = int(answer["from"])
        self.topic = answer["topic"]
        self.served_by = url
        self._calls.stat.connects += 1
        if (
            self.options.persist_offset
            and self.options.raft_group is None
            and self._processed > self._confirmed
        ):
            self._tell(socket, self._processed)
        return socket

    def _run(self) -> None:
        try:
            while self._socket is None and not self._closed:
                time.sleep(0.001)
            self._follow_everywhere()
            if self.error is None and not self._closed:
                self._call()
        except PenstockError as error:
            self.error = error
            self._calls.stat.last_error = str(error)
        finally:
            self._ended.set()

    def _follow_everywhere(self) -> None:
        """Follow the table from one node to the next until the subscription ends."""
        avoid = ""
        while not self._closed and self.error is None and not self.cancelled:
            if self._socket is not None:
                avoid = self._follow(self._socket)
                self._socket.close()
                self._socket = None
                continue
            if not self.options.reconnect and not self._moving:
                hint = "subscribe with reconnect=True"
                raise RemoteError(
                    "the connection to the publisher is lost", code="E_NODE_DOWN", hint=hint
                )
            self._socket = self._connect_again(avoid)
            self._moving = False

    def _places(self, avoid: str = "") -> list[str]:
        """List the nodes to ask, the leader first if there is one."""
        leader = self._nodes.leader(self._group, avoid=avoid)
        urls = [leader.url] if leader is not None and leader.url else []
        urls += self._nodes.members(self._group)
        return [url for url in dict.fromkeys(urls) if not avoid or url != avoid]

    def _connect_again(self, avoid: str) -> ClientConnection | None:
        """Connect to the leader if there is one, else to any node, which has all rows as well."""
        pause = _PAUSE
        while not self._closed:
            for url in self._places(avoid):
                try:
                    return self._connect(url)
                except PenstockError as error:
                    if not self._may_pass(error):
                        raise
            avoid = ""
            time.sleep(pause)
            pause = min(pause * 1.5, _LONG_PAUSE)
        return None

    def _may_pass(self, error: PenstockError) -> bool:
        """Tell whether another node, or the same one later, may serve this subscription."""
        if error.code == "E_NO_TABLE":
            return "no copy" in error.message or not self._nodes.is_gone(self.table)
        return error.code in _PASSING

    def _follow(self, socket: ClientConnection) -> str:
        """Take what comes over one connection. Return the address to avoid next, when the node at
        its other end is of no use.
        """
        heard = time.monotonic()
        while not self._closed:
            try:
                message = socket.recv(self._patience(heard))
            except TimeoutError:
                self._hand_over()
                if time.monotonic() - heard > _SILENCE:
                    return self.served_by
                continue
            except (ConnectionClosed, OSError):
                return self.served_by
            heard = time.monotonic()
            if isinstance(message, bytes):
                self._take(message)
            else:
                self._obey(socket, json.loads(message))
                if self._moving:
                    return self.served_by
                if self.cancelled:
                    return ""
            began = time.monotonic()
            self._hand_over()
            # time spent in handlers is not the node's silence
            heard += time.monotonic() - began
        return ""

    def _obey(self, socket: ClientConnection, message: Mapping[str, Any]) -> None:
        """Do what the node says besides sending rows."""
        match message["type"]:
            case "moved":
                self._moving = True
            case "unsubscribed":
                self.cancelled = True
            case "error":
                raise error_of(message)
            case "executes":
                self._begin_executing(socket, int(message["from"]))
            case "standby":
                self._stand_by()
            case "idle":
                self.next = max(self.next, int(message["next"]))
            case "processed":
                self._confirmed = max(self._confirmed, int(message["row"]))
            case "not_processed" if self._confirmed < self._processed:
                time.sleep(_PAUSE)
                self._tell(socket, self._processed)

    def _begin_executing(self, socket: ClientConnection, first: int) -> None:
        """It is this program's turn: rows come from *first* on."""
        self.executes = True
        if self.next != first:
            self._drop_waiting(first)
        elif self._processed > self._confirmed:
            self._tell(socket, self._processed)

    def _stand_by(self) -> None:
        """Another program gets the rows: those that wait here for their call are among them."""
        if self.executes or self.next >= 0:
            self.executes = False
            self._drop_waiting(-1)

    def _drop_waiting(self, next_: int) -> None:
        self._calls.drop()
        self.next = next_
        self._processed = -1
        self._confirmed = -1

    def _patience(self, heard: float) -> float:
        """Seconds until something has to be done without a message."""
        left = heard + _SILENCE - time.monotonic()
        until_call = self._calls.seconds_left()
        return max(left if until_call is None else min(left, until_call), 0.001)

    def _take(self, message: bytes) -> None:
        first = int.from_bytes(message[:8], "big")
        next_ = int.from_bytes(message[8:16], "big")
        if next_ <= self.next:
            return
        if first > self.next:
            raise RemoteError(f"rows {self.next} to {first - 1} did not come", code="E_INTERNAL")
        rows = from_stream(message[16:])
        if first < self.next:
            ids = rows.column(ROW_ID)
            rows = rows.filter(pc.greater_equal(ids, self.next))
        self.next = next_
        if rows.num_rows:
            self._calls.add(rows)

    # ---------------------------------------------------------------- handlers

    def _hand_over(self) -> None:
        """Call the handler if it is time."""
        if self.executes and self._calls.is_due():
            self._call()

    def _call(self) -> None:
        if not self._calls.run():
            return
        self._processed = self.next
        socket = self._socket
        if self.options.persist_offset and socket is not None:
            self._tell(socket, self.next)

    def _tell(self, socket: ClientConnection, row: int) -> None:
        try:
            socket.send(json.dumps({"processed": row}))
        except (OSError, WebSocketException):
            return  # it is told with the next connection

    def view(self, rows: int = SHOWN_ROWS) -> NotebookView:
        """Return what it looks like: who serves it, how far it is, and the newest rows."""
        connected = self._socket is not None
        return subscription_view(
            self.to_dict(), self.error, self._calls.newest, rows, connected=connected
        )

    def _await_change(self, seconds: float) -> bool:
        ended = self.wait(seconds)
        if ended and self.error is not None:
            raise self.error
        return not ended

    def to_dict(self) -> dict[str, Any]:
        """A line of subWorkers, with every option as it is in force."""
        o = self.options
        stat = self._calls.stat
        return {
            "topic": self.topic,
            "table": self.table,
            "action": self.action,
            "node": self.served_by,
            "running": not self._ended.is_set(),
            "msgOffset": self.next,
            "queueDepth": self._calls.waiting,
            "processedMsgCount": stat.rows,
            "calls": stat.calls,
            "failedMsgCount": stat.failed,
            "lastErrMsg": stat.last_error,
            "lastMs": stat.last_ms,
            "cumMs": stat.cumulative_ms,
            "connects": stat.connects,
            "offset": self._asked,
            "msgAsTable": o.msg_as_table,
            "batchSize": o.batch_size,
            "throttle": o.throttle,
            "hash": o.hash,
            "reconnect": o.reconnect,
            "filter": dict(o.filter) if o.filter else None,
            "persistOffset": o.persist_offset,
            "timeTrigger": o.time_trigger,
            "handlerNeedMsgId": o.handler_need_msg_id,
            "raftGroup": o.raft_group,
            "executes": self.executes,
        }
