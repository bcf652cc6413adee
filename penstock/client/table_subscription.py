"""A subscription to a stream table: from a row on, every row once and in order, whichever node
leads.

Names and meanings of its options are those of `subscribeTable`. It goes to the leader when that
changes and goes on at the row behind the last one it has; row ids say which that is, so nothing is
missed or repeated. Handlers run one call at a time per subscription. Refused: a gap: when the next
row is not kept any more the subscription ends with an error that names the earliest.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection

from penstock.client.nodes import Nodes
from penstock.client.result import Result
from penstock.client.wire import error_of, from_stream
from penstock.errors import PenstockError, RemoteError

ROW_ID = "row_id"
#: seconds without a sign of life after which another node is tried
_SILENCE = 1.2
_PAUSE = 0.02
_LONG_PAUSE = 0.25


@dataclass(frozen=True)
class Options:
    """How rows are handed over; see `subscribeTable`."""

    msg_as_table: bool = False
    batch_size: int = 0
    throttle: float = 1.0
    hash: int = -1
    reconnect: bool = False
    filter: Mapping[str, Any] | None = None
    persist_offset: bool = False
    time_trigger: bool = False
    handler_need_msg_id: bool = False
    raft_group: int | None = None


@dataclass(frozen=True)
class Message(Result):
    """Rows as a table; `row_ids` are their indexes in the stream table."""

    row_ids: pa.ChunkedArray | None = None


class Executors:
    """Threads that subscriptions with a hash share: two of the same hash never run at the same
    time.
    """

    def __init__(self, count: int = 4) -> None:
        self._threads = [ThreadPoolExecutor(1, f"sub-executor-{i}") for i in range(count)]

    def of(self, number: int) -> ThreadPoolExecutor:
        return self._threads[number % len(self._threads)]

    def close(self) -> None:
        for thread in self._threads:
            thread.shutdown(wait=False, cancel_futures=True)


@dataclass
class Statistics:
    """What became of rows: one line of `getStreamingStat`'s subWorkers."""

    rows: int = 0
    calls: int = 0
    failed: int = 0
    last_error: str = ""
    connects: int = 0
    cumulative_ms: float = 0.0
    last_ms: float = 0.0
    #: (monotonic time, row) of the last rows handed over
    handled: tuple[float, int] = field(default=(0.0, -1))


class TableSubscription:
    """Running from `open` to `close`. `error` holds what ended it early."""

    def __init__(
        self,
        nodes: Nodes,
        table: str,
        group: int,
        action: str,
        offset: int,
        handler: Callable[..., Any],
        options: Options,
        executors: Executors,
        *,
        node: str = "",
    ) -> None:
        """
        Args:
            table: `database.name`.
            group: that keeps the table.
            action: name of this subscription among those of the table.
            offset: a row, 0 for the first, -1 now, -2 behind what was processed, -3 the earliest
                there is.
            handler: gets a message; with `handler_need_msg_id` also the id of its last row.
            node: where to begin; empty: at the leader.
        """
        self._nodes = nodes
        self.table = table
        self._group = group
        self.action = action
        self._handler = handler
        self.options = options
        self._executors = executors
        self._node = node
        self._id = secrets.token_hex(8)
        self._asked = offset
        #: the next row that is wanted; below zero: not known yet
        self.next = -1
        self.topic = ""
        #: address of the node that serves it
        self.served_by = ""
        self.error: PenstockError | None = None
        self.cancelled = False
        #: whether rows come here; with a raft_group they come to one of several programs at a time
        self.executes = options.raft_group is None
        self.stat = Statistics()
        self._socket: ClientConnection | None = None
        self._closed = False
        #: the node said where to go, which is no loss of the connection
        self._moving = False
        self._ended = threading.Event()
        #: rows that have come and wait for their call
        self._waiting: list[pa.Table] = []
        self._count = 0
        self._since = 0.0
        self._processed = self._confirmed = -1
        self._thread = threading.Thread(
            target=self._run, name=f"subscription-{table}/{action}", daemon=True
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
        """The first connection: refusals are the caller's. A node that is away is not: the next one
        is asked.
        """
        urls = [self._nodes.url(self._node)] if self._node else []
        leader = self._nodes.leader(self._group)
        urls += [leader.url] if leader is not None and leader.url else []
        urls += self._nodes.members(self._group)
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
            hello |= (
                {"raft_group": self.options.raft_group}
                if self.options.raft_group is not None
                else {}
            )
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
        self.stat.connects += 1
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
            avoid = ""
            while not self._closed and self.error is None and not self.cancelled:
                if self._socket is None:
                    if not self.options.reconnect and not self._moving:
                        hint = "subscribe with reconnect=True"
                        raise RemoteError(
                            "the connection to the publisher is lost", code="E_NODE_DOWN", hint=hint
                        )
                    self._socket = self._again(avoid)
                    self._moving = False
                    continue
                avoid = self._follow(self._socket)
                self._socket.close()
                self._socket = None
            if self.error is None and not self._closed:
                self._call()
        except PenstockError as error:
            self.error = error
            self.stat.last_error = str(error)
        finally:
            self._ended.set()

    def _again(self, avoid: str) -> ClientConnection | None:
        """Another connection: at the leader if there is one, else at any node, which has all rows
        as well.
        """
        pause = _PAUSE
        while not self._closed:
            leader = self._nodes.leader(self._group, avoid=avoid)
            urls = [leader.url] if leader is not None and leader.url and leader.url != avoid else []
            urls += [u for u in self._nodes.members(self._group) if u != avoid]
            for url in dict.fromkeys(urls):
                try:
                    return self._connect(url)
                except PenstockError as error:
                    if error.code not in (
                        "E_NODE_DOWN",
                        "E_NO_TABLE",
                        "E_SUBSCRIPTION_EXISTS",
                        "E_NOT_LEADER",
                    ):
                        raise
                    if (
                        error.code == "E_NO_TABLE"
                        and "no copy" not in error.message
                        and self._nodes.is_gone(self.table)
                    ):
                        raise
            avoid = ""
            time.sleep(pause)
            pause = min(pause * 1.5, _LONG_PAUSE)
        return None

    def _follow(self, socket: ClientConnection) -> str:
        """Take what comes over one connection; the address to avoid next, when the node at its
        other end is of no use.
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
                found = json.loads(message)
                kind = found["type"]
                if kind == "moved":
                    self._moving = True
                    return self.served_by
                if kind == "unsubscribed":
                    self.cancelled = True
                    return ""
                if kind == "error":
                    raise error_of(found)
                if kind == "executes":
                    self._begin_executing(socket, int(found["from"]))
                elif kind == "standby":
                    self._stand_by()
                elif kind == "idle":
                    self.next = max(self.next, int(found["next"]))
                elif kind == "processed":
                    self._confirmed = max(self._confirmed, int(found["row"]))
                elif kind == "not_processed" and self._confirmed < self._processed:
                    time.sleep(_PAUSE)
                    self._tell(socket, self._processed)
            began = time.monotonic()
            self._hand_over()
            # time spent in handlers is not the node's silence
            heard += time.monotonic() - began
        return ""

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
        self._waiting = []
        self._count = 0
        self.next = next_
        self._processed = -1
        self._confirmed = -1

    def _patience(self, heard: float) -> float:
        """Seconds until something has to be done without a message."""
        left = heard + _SILENCE - time.monotonic()
        o = self.options
        if o.time_trigger or (o.batch_size > 0 and self._count):
            left = min(left, self._since + o.throttle - time.monotonic())
        return max(left, 0.001)

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
            if not self._count:
                self._since = time.monotonic() if not self.options.time_trigger else self._since
            self._waiting.append(rows)
            self._count += rows.num_rows

    # ---------------------------------------------------------------- handlers

    def _hand_over(self) -> None:
        """Call the handler if it is time."""
        if not self.executes:
            return
        o = self.options
        now = time.monotonic()
        if o.batch_size <= 0:
            if self._count or (o.time_trigger and now >= self._since + o.throttle):
                self._call()
            return
        late = now >= self._since + o.throttle
        if self._count >= o.batch_size or (late and (self._count or o.time_trigger)):
            self._call()

    def _call(self) -> None:
        self._since = time.monotonic()
        if not self._count and not self.options.time_trigger:
            return
        rows = pa.concat_tables(self._waiting) if self._waiting else None
        self._waiting = []
        self._count = 0
        upto = self.next
        if self.options.hash >= 0:
            self._executors.of(self.options.hash).submit(self._handle, rows).result()
        else:
            self._handle(rows)
        self._processed = upto
        socket = self._socket
        if self.options.persist_offset and socket is not None:
            self._tell(socket, upto)

    def _handle(self, rows: pa.Table | None) -> None:
        began = time.monotonic()
        last = int(rows.column(ROW_ID)[-1].as_py()) if rows is not None else -1
        try:
            message = self._message(rows)
            if self.options.handler_need_msg_id:
                self._handler(message, last)
            else:
                self._handler(message)
        except Exception as failed:
            # the stream goes on: one bad message must not stop those behind it
            self.stat.failed += 1
            self.stat.last_error = f"{type(failed).__name__}: {failed}"[:500]
        self.stat.calls += 1
        self.stat.rows += rows.num_rows if rows is not None else 0
        self.stat.last_ms = (time.monotonic() - began) * 1000
        self.stat.cumulative_ms += self.stat.last_ms
        self.stat.handled = (time.monotonic(), last)

    def _message(self, rows: pa.Table | None) -> Any:
        """Rows as the handler wants them: a result without the ids, or a list of columns."""
        if rows is None:
            return Message(pa.table({})) if self.options.msg_as_table else []
        plain = rows.drop_columns([ROW_ID])
        return (
            Message(plain, rows.column(ROW_ID))
            if self.options.msg_as_table
            else [column.to_pylist() for column in plain.columns]
        )

    def _tell(self, socket: ClientConnection, row: int) -> None:
        try:
            socket.send(json.dumps({"processed": row}))
        except (OSError, WebSocketException):
            return  # it is told with the next connection

    def to_dict(self) -> dict[str, Any]:
        """A line of subWorkers, with every option as it is in force."""
        o = self.options
        stat = self.stat
        return {
            "topic": self.topic,
            "table": self.table,
            "action": self.action,
            "node": self.served_by,
            "running": not self._ended.is_set(),
            "msgOffset": self.next,
            "queueDepth": self._count,
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


def filter_of(given: Any) -> Mapping[str, Any] | None:
    """A filter in any of its forms as the node takes it: a condition, values, a pair of bounds, or
    (buckets, index or range) as a tuple.

    Args:
        given: `"qty > 10"`; `["A", "B"]`; `range(…)` or `("A", "M")` for [from, to); `("hash", 4,
            0)` or `("hash", 4, 0, 2)`; or a dict.
    """
    if given is None or isinstance(given, Mapping):
        return given
    if isinstance(given, str):
        return {"sql": given}
    if isinstance(given, tuple) and given and given[0] == "hash":
        return {"hash": list(given[1:])}
    if isinstance(given, range):
        return {"range": [given.start, given.stop]}
    if isinstance(given, tuple) and len(given) == 2:
        return {"range": list(given)}
    if isinstance(given, Sequence):
        return {"values": list(given)}
    raise TypeError("a filter is a condition, a list of values, a pair of bounds, a hash or a dict")
