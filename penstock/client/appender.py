"""`Appender`: rows into a stream table, in order, each write once, wherever its leader is.

Writes carry the producer's id and count up. After a lost connection or a change of the leader
everything without an answer is sent again in the same order under the same numbers, and the leader
recognises what is in the log already. So a write that is acked is there once.

A thread of its own connects and takes answers. As long as somebody calls `append`, which waits
anyway, that one takes the answers itself: to wake one thread for each answer instead of two is a
good part of what a single row costs.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from websockets.exceptions import InvalidStatus, WebSocketException

from penstock.client.line import Line
from penstock.client.nodes import Nodes, outcome_unknown
from penstock.client.open_writes import OpenWrite, OpenWrites
from penstock.client.reading_turn import ReadingTurn
from penstock.errors import CatalogError, OverloadError, PenstockError
from penstock.remote_errors import error_of

#: seconds of silence with writes under way after which the others are asked who leads
_SILENCE = 0.5
_PAUSE = 0.02
_LONG_PAUSE = 0.25


class Appender:
    """One producer of one table. Safe to use from several threads: their writes get into one
    order.
    """

    def __init__(
        self,
        nodes: Nodes,
        table: str,
        group: int,
        *,
        window: int = 256,
        patience: float = 60.0,
        producer: str = "",
    ) -> None:
        """
        Args:
            nodes: where to find the leader.
            table: `database.name`.
            group: that keeps the table.
            window: most writes without an answer; then `submit` waits.
            patience: seconds to go on trying without any answer.
            producer: id among producers; empty: a new one.
        """
        self._nodes = nodes
        self._table = table
        self._group = group
        self._window = window
        self._patience = patience
        self._writes = OpenWrites(producer or f"c-{secrets.token_hex(8)}")
        lock = threading.RLock()
        self._lock = threading.Condition(lock)
        self._turn = ReadingTurn(lock)
        self._socket: Line | None = None
        self._closed = False
        #: how often the leader had to be looked for
        self.connects = 0
        self._thread = threading.Thread(target=self._run, name=f"appender-{table}", daemon=True)
        self._thread.start()

    @property
    def producer(self) -> str:
        """Its id among producers."""
        return self._writes.producer

    @property
    def acked(self) -> int:
        """Rows that are in the log."""
        return self._writes.acked

    # ---------------------------------------------------------------- the caller's threads

    def submit(self, data: pa.Table) -> Future[int]:
        """Send rows; the future holds their number once they are in the log.

        Raises:
            OverloadError: there is no room for more, for as long as `patience`.
        """
        with self._lock:
            write = self._submit(data)
            self._turn.hand_back()
        return write.done

    def _submit(self, data: pa.Table) -> OpenWrite:
        with self._lock:
            if not self._lock.wait_for(
                lambda: len(self._writes) < self._window or self._closed, self._patience
            ):
                raise OverloadError(
                    f"{len(self._writes)} writes have no answer",
                    hint="is there a majority of nodes?",
                )
            if self._closed:
                raise OverloadError("this appender is closed", hint="make another one")
            write = self._writes.add(data)
            if self._socket is not None:
                self._send(write)
            self._lock.notify_all()
        return write

    def append(self, data: pa.Table, timeout: float | None = None) -> int:
        """The same, waiting for the answer. Raises PenstockError."""
        write = self._submit(data)
        self._read_for(write)
        try:
            return write.done.result(timeout)
        except TimeoutError:
            raise outcome_unknown(1, f"after {timeout} s") from None

    def _read_for(self, write: OpenWrite) -> None:
        """Take answers until *write* has its own, unless somebody reads already; any trouble is the
        connection's thread's.
        """
        with self._lock:
            self._turn.leave_to_callers()
            socket = self._socket
            if socket is None or not self._turn.try_take():
                return
        trouble = ""
        end = time.monotonic() + _SILENCE
        try:
            while not write.done.done() and not trouble:
                if not self._take(json.loads(socket.recv(end - time.monotonic()))["answers"]):
                    trouble = "again"
        except TimeoutError:
            trouble = ""  # the connection's thread asks who leads
        except (OSError, ValueError):
            trouble = "broken"
        finally:
            with self._lock:
                self._turn.give_up()
                if self._socket is socket:
                    self._turn.trouble = trouble
                if trouble or self._writes:
                    self._turn.hand_back()

    def flush(self) -> int:
        """Wait until every write has its answer. Return the rows acked so far."""
        with self._lock:
            self._turn.hand_back()
            waiting = [w.done for w in self._writes.all()]
        for done in waiting:
            done.exception()
        return self.acked

    def close(self) -> None:
        """Wait for answers, then leave."""
        self.flush()
        with self._lock:
            self._closed = True
            socket = self._socket
            self._socket = None
            self._lock.notify_all()
            self._turn.hand_back()
        if socket is not None:
            socket.close()
        self._thread.join(5)

    def abandon(self) -> None:
        """Leave at once: what has no answer gets an error."""
        with self._lock:
            self._closed = True
            socket = self._socket
            self._socket = None
            self._turn.hand_back()
        self._give_up("this appender was closed")
        if socket is not None:
            socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _send(self, write: OpenWrite) -> None:
        """With the lock held: send a write. What cannot be sent is sent again with the next
        connection.
        """
        assert self._socket is not None
        try:
            self._socket.send(self._writes.message(write))
        except OSError:
            self._socket = None
            self._turn.hand_back()

    # ---------------------------------------------------------------- the connection's thread

    def _run(self) -> None:
        avoid = ""
        pause = _PAUSE
        while True:
            with self._lock:
                self._lock.wait_for(lambda: bool(self._writes) or self._closed)
                if self._closed and not self._writes:
                    return
                late = time.monotonic() - self._writes.heard > self._patience
            if late:
                self._give_up("nobody leads, or nobody answers")
                continue
            url = self._find(avoid)
            socket = self._connect(url) if url else None
            if socket is None:
                avoid = url
                time.sleep(pause)
                pause = min(pause * 1.5, _LONG_PAUSE)
                continue
            heard = self._writes.heard
            avoid = url if self._converse(socket, url) else ""
            socket.close()
            pause = _PAUSE if self._writes.heard > heard else min(pause * 1.5, _LONG_PAUSE)
            time.sleep(pause)

    def _find(self, avoid: str) -> str:
        try:
            leader = self._nodes.leader(self._group, avoid=avoid)
        except PenstockError:
            return ""
        return leader.url if leader is not None and leader.url != avoid else ""

    def _connect(self, url: str) -> Line | None:
        try:
            socket = self._nodes.line(url, f"/v1/append?table={self._table}", max_size=16 << 20)
        except InvalidStatus as refused:
            self._handle_refusal(refused)
            return None
        except (OSError, WebSocketException):
            return None
        try:
            hello = json.loads(socket.recv(1.0))
        except (OSError, ValueError):
            socket.close()
            return None
        if not hello.get("leads"):
            socket.close()
            return None
        self.connects += 1
        with self._lock:
            self._socket = socket
            self._turn.trouble = ""
            for write in self._writes.all():
                if self._socket is not None:
                    self._send(write)
        return socket

    def _converse(self, socket: Line, url: str) -> bool:
        """Take answers until the connection is of no use any more. Tell whether the node at its
        other end should be avoided.
        """
        asked = time.monotonic()
        silent_since = asked
        try:
            while True:
                with self._lock:
                    trouble = self._turn.take(lambda: self._is_current(socket))
                if trouble:
                    self._give_up_turn()
                    return trouble == "broken"
                answers = self._receive(socket)
                if answers is not None:
                    if not self._take(answers):
                        return False
                    continue
                now = time.monotonic()
                with self._lock:
                    if self._closed or self._socket is None:
                        return False
                    if not self._writes:
                        silent_since = now
                        continue
                if min(now - max(silent_since, self._writes.heard), now - asked) > _SILENCE:
                    asked = now
                    if self._leads_elsewhere(url):
                        return True
        except (OSError, ValueError):
            return True
        finally:
            with self._lock:
                self._socket = None

    def _is_current(self, socket: Line) -> bool:
        return not self._closed and self._socket is socket

    def _receive(self, socket: Line) -> list[dict[str, Any]] | None:
        """Wait for answers with the turn to read, and give it up; None when there are none."""
        try:
            answers: list[dict[str, Any]] = json.loads(socket.recv(_SILENCE))["answers"]
        except TimeoutError:
            return None
        finally:
            self._give_up_turn()
        return answers

    def _give_up_turn(self) -> None:
        with self._lock:
            self._turn.give_up()

    def _leads_elsewhere(self, here: str) -> bool:
        """Tell whether somebody else leads by now than the node that says nothing."""
        leader = self._nodes.leader(self._group, avoid=here)
        return leader is not None and leader.url != here

    def _take(self, answers: list[dict[str, Any]]) -> bool:
        """Settle writes; False when the rest has to be sent again."""
        with self._lock:
            settled = self._writes.settle(answers)
            if settled:
                self._lock.notify_all()
        return settled

    def _handle_refusal(self, answer: InvalidStatus) -> None:
        """Fail what is under way if no other node will take it either: this user may not write, or
        the table is gone.
        """
        if answer.response.status_code not in (401, 403, 404):
            return
        try:
            error = error_of(
                json.loads(answer.response.body or b"")["error"], answer.response.status_code
            )
        except (ValueError, KeyError):
            return
        if answer.response.status_code == 404:
            if self._nodes.is_gone(self._table):
                self._fail(
                    CatalogError(
                        f"table {self._table} was dropped",
                        code="E_NO_TABLE",
                        hint="rows without an answer are lost",
                    )
                )
        elif self.connects:
            self._give_up(error.message)  # what was sent before may be there
        else:
            self._fail(error)

    def _give_up(self, why: str) -> None:
        self._fail(outcome_unknown(len(self._writes), why))

    def _fail(self, error: PenstockError) -> None:
        with self._lock:
            failed = self._writes.take_all()
            self._lock.notify_all()
        for write in failed:
            write.done.set_exception(error)
