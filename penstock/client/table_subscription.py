"""A subscription to a stream table: from a row on, every row once and in order, whichever node
leads.

It goes to the leader when that
changes and goes on at the row behind the last one it has; row ids say which that is, so nothing is
missed or repeated. Handlers run one call at a time per subscription. There are no gaps: when the
next row is not kept any more the subscription ends with an error that names the earliest.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection

from penstock.client.handler_calls import Executors, HandlerCalls
from penstock.client.nodes import Nodes
from penstock.client.publisher_nodes import PublisherNodes
from penstock.client.row_progress import RowProgress
from penstock.client.subscription_options import SubscriptionOptions, Target
from penstock.client.subscription_view import subscription_view
from penstock.errors import PenstockError, RemoteError
from penstock.notebook.live import Live
from penstock.notebook.markup import SHOWN_ROWS
from penstock.notebook.view import NotebookView
from penstock.remote_errors import error_of

#: seconds without a sign of life after which another node is tried
_SILENCE = 1.2
_PAUSE = 0.02
_LONG_PAUSE = 0.25


@dataclass(frozen=True)
class _Departure:
    """A connection that was left; `avoid`: the node that is of no use next."""

    avoid: str = ""
    #: the node said where to go, which is no loss of the connection
    moved: bool = False


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
        self._target = target
        self.options = options
        self._calls = HandlerCalls(handler, options, executors)
        self._nodes = PublisherNodes(nodes, target, options)
        self._progress = RowProgress()
        self.error: PenstockError | None = None
        self.cancelled = False
        #: whether rows come here; with a raft_group they come to one of several programs at a time
        self.executes = options.raft_group is None
        self._socket: ClientConnection | None = None
        self._closed = False
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"subscription-{self.table}/{self.action}", daemon=True
        )

    @property
    def table(self) -> str:
        """`database.name`."""
        return self._target.table

    @property
    def action(self) -> str:
        return self._target.action

    @property
    def next(self) -> int:
        """The next row that is wanted; below zero: not known yet."""
        return self._progress.next

    @property
    def topic(self) -> str:
        return self._nodes.topic

    @property
    def served_by(self) -> str:
        """Address of the node that serves it."""
        return self._nodes.served_by

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
        urls = self._nodes.first()
        failed: PenstockError = RemoteError(
            "no node is there", code="E_NODE_DOWN", hint="`penstock status` shows the nodes"
        )
        end = time.monotonic() + 10.0
        while time.monotonic() < end:
            for url in urls:
                try:
                    return self._connect(url)
                except PenstockError as error:
                    if error.code not in ("E_NODE_DOWN", "E_NOT_LEADER"):
                        raise
                    failed = error
            time.sleep(_LONG_PAUSE)
        raise failed

    def _connect(self, url: str) -> ClientConnection:
        """Subscribe at a node, and tell it what it has to know. Raises RemoteError."""
        socket = self._nodes.connect(url, self._progress)
        self._calls.stat.connects += 1
        if (
            self.options.persist_offset
            and self.options.raft_group is None
            and self._progress.untold
        ):
            self._tell(socket, self._progress.processed)
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
        left = _Departure()
        while not self._closed and self.error is None and not self.cancelled:
            if self._socket is not None:
                left = self._follow(self._socket)
                self._socket.close()
                self._socket = None
                continue
            if not self.options.reconnect and not left.moved:
                hint = "subscribe with reconnect=True"
                raise RemoteError(
                    "the connection to the publisher is lost", code="E_NODE_DOWN", hint=hint
                )
            self._socket = self._connect_again(left.avoid)

    def _connect_again(self, avoid: str) -> ClientConnection | None:
        """Connect to the leader if there is one, else to any node, which has all rows as well."""
        pause = _PAUSE
        while not self._closed:
            for url in self._nodes.addresses(avoid):
                try:
                    return self._connect(url)
                except PenstockError as error:
                    if not self._nodes.may_pass(error):
                        raise
            avoid = ""
            time.sleep(pause)
            pause = min(pause * 1.5, _LONG_PAUSE)
        return None

    def _follow(self, socket: ClientConnection) -> _Departure:
        """Take what comes over one connection, until it or the node is of no use any more."""
        heard = time.monotonic()
        while not self._closed:
            try:
                message = socket.recv(self._patience(heard))
            except TimeoutError:
                self._hand_over()
                if time.monotonic() - heard > _SILENCE:
                    return _Departure(self.served_by)
                continue
            except (ConnectionClosed, OSError):
                return _Departure(self.served_by)
            heard = time.monotonic()
            if isinstance(message, bytes):
                self._take(message)
            elif self._obey(socket, json.loads(message)):
                return _Departure(self.served_by, moved=True)
            elif self.cancelled:
                return _Departure()
            began = time.monotonic()
            self._hand_over()
            # time spent in handlers is not the node's silence
            heard += time.monotonic() - began
        return _Departure()

    def _obey(self, socket: ClientConnection, message: Mapping[str, Any]) -> bool:
        """Do what the node says besides sending rows; return True if that is to go elsewhere."""
        match message["type"]:
            case "moved":
                return True
            case "unsubscribed":
                self.cancelled = True
            case "error":
                raise error_of(message)
            case "executes":
                self._begin_executing(socket, int(message["from"]))
            case "standby":
                self._stand_by()
            case "idle":
                self._progress.skip_to(int(message["next"]))
            case "processed":
                self._progress.confirm(int(message["row"]))
            case "not_processed" if self._progress.untold:
                time.sleep(_PAUSE)
                self._tell(socket, self._progress.processed)
        return False

    def _begin_executing(self, socket: ClientConnection, first: int) -> None:
        """It is this program's turn: rows come from *first* on."""
        self.executes = True
        if self.next != first:
            self._drop_waiting(first)
        elif self._progress.untold:
            self._tell(socket, self._progress.processed)

    def _stand_by(self) -> None:
        """Another program gets the rows: those that wait here for their call are among them."""
        if self.executes or self._progress.is_known:
            self.executes = False
            self._drop_waiting(-1)

    def _drop_waiting(self, next_: int) -> None:
        self._calls.drop()
        self._progress.restart(next_)

    def _patience(self, heard: float) -> float:
        """Seconds until something has to be done without a message."""
        left = heard + _SILENCE - time.monotonic()
        until_call = self._calls.seconds_left()
        return max(left if until_call is None else min(left, until_call), 0.001)

    def _take(self, message: bytes) -> None:
        rows = self._progress.take(message)
        if rows is not None:
            self._calls.add(rows)

    # ---------------------------------------------------------------- handlers

    def _hand_over(self) -> None:
        """Call the handler if it is time."""
        if self.executes and self._calls.is_due():
            self._call()

    def _call(self) -> None:
        if not self._calls.run():
            return
        self._progress.note_processed()
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
            "offset": self._target.offset,
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
