"""Spans on their way out: a queue with a bound, and a thread that sends what is in it.

Whoever adds a span never waits. When the queue is full, what comes is dropped and counted. A
collector that does not answer, or asks for patience, gets the same spans again after a while; those
that come meanwhile wait in the queue, as far as it goes.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.runtime import log
from penstock.telemetry.span import Span

#: seconds before the second attempt, and the most between two
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 30.0
#: attempts for one request; then its spans are given up
_ATTEMPTS = 6
_log = log.get(__name__)
#: told what became of spans (`sent`, `dropped`, `failed`), and how many
OnCount = Callable[[str, int], None]


class CollectorError(Exception):
    """A request was not taken. Its text says why, without anything secret."""

    def __init__(self, reason: str, *, again: bool, retry_after: float = 0.0) -> None:
        """*again*: the same request may be taken later, not before *retry_after* seconds."""
        super().__init__(reason)
        self.again = again
        self.retry_after = retry_after


class SendsSpans(Protocol):
    """What has a request with spans taken. Raises CollectorError."""

    def __call__(self, spans: Sequence[Span]) -> None: ...


class SpanExporter:
    """`add` from any thread; everything else happens in the thread `spans`."""

    def __init__(
        self,
        send: SendsSpans,
        on_count: OnCount,
        *,
        queue: int,
        batch: int,
        delay: float,
        first_wait: float = _FIRST_WAIT_S,
    ) -> None:
        """
        Args:
            queue, batch: spans that wait, and that leave together, at most.
            delay: seconds until spans leave that are fewer.
            first_wait: seconds before a second attempt.
        """
        self._send = send
        self._on_count = on_count
        self._most = queue
        self._batch = batch
        self._delay = delay
        self._first_wait = first_wait
        self._waiting: deque[Span] = deque()
        self._dropped = 0
        self._wake = threading.Event()
        self._closing = threading.Event()
        #: why nothing gets through, as the log has it
        self._down = ""
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    def add(self, span: Span) -> None:
        """Have a span sent, or drop it when too many wait."""
        # a few too many may get in at one moment; nobody waits for a lock
        if len(self._waiting) >= self._most or self._closing.is_set():
            self._dropped += 1
            return
        self._waiting.append(span)
        if len(self._waiting) >= self._batch and not self._wake.is_set():
            self._wake.set()

    def close(self, patience: float = 2.0) -> None:
        """Send what waits, each request once, for *patience* seconds at most."""
        self._closing.set()
        self._wake.set()
        self._thread.join(patience)

    # ---------------------------------------------------------------- the thread

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait(self._delay)
            self._wake.clear()
            self._count_dropped()
            while len(self._waiting) >= self._batch and not self._closing.is_set():
                self._deliver()
            if self._waiting:
                self._deliver()
        while self._waiting:
            self._deliver()
        self._count_dropped()

    def _count_dropped(self) -> None:
        dropped = self._dropped
        if dropped:
            # one that is dropped at this very moment may be missed: a count, no account
            self._dropped -= dropped
            self._on_count("dropped", dropped)

    def _deliver(self) -> None:
        """Send the oldest spans until they are taken, or given up."""
        spans = [self._waiting.popleft() for _ in range(min(self._batch, len(self._waiting)))]
        wait = self._first_wait
        for attempt in range(_ATTEMPTS):
            try:
                self._send(spans)
            except CollectorError as error:
                self._note_failure(error)
                if not error.again or attempt == _ATTEMPTS - 1:
                    break
                if self._closing.wait(max(error.retry_after, wait * random.uniform(0.8, 1.2))):
                    break
                wait = min(wait * 2, _LONGEST_WAIT_S)
                self._count_dropped()
            except Exception as bug:
                _log.exception("spans cannot be sent", error=type(bug).__name__)
                break
            else:
                self._note_success(len(spans))
                return
        self._on_count("failed", len(spans))

    def _note_failure(self, error: CollectorError) -> None:
        if str(error) != self._down:
            _log.warning("the collector of spans does not take them", reason=str(error))
        self._down = str(error)

    def _note_success(self, spans: int) -> None:
        if self._down:
            _log.info("the collector of spans takes them again")
        self._down = ""
        self._on_count("sent", spans)
