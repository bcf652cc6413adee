"""Answers to the frames that a `Writer` sends: which are missing, and which were refused."""

from __future__ import annotations

import threading
from typing import Any

from penstock.errors import BusError, PenstockError, RemoteError
from penstock.remote_errors import error_of

#: refused frames that an error's text names; `refused` has all
_NAMED = 10


class FrameAnswers:
    """`take` and `lose` from the thread that reads; the rest from the one that writes."""

    def __init__(self, window: int, timeout: float) -> None:
        """
        Args:
            window: most frames without an answer.
            timeout: seconds to wait for answers.
        """
        self._window = window
        self._timeout = timeout
        self._lock = threading.Condition()
        self._answered = 0
        #: the number of the newest frame
        self.sent = 0
        #: rows that Kafka has on all replicas
        self.acked = 0
        #: (number, reason) of every frame that was refused
        self.refused: list[tuple[int | None, PenstockError]] = []
        #: how many of them were told
        self._told = 0
        #: why no more answers come
        self._lost: PenstockError | None = None

    # ---------------------------------------------------------------- the thread that writes

    def next_number(self) -> int:
        """Wait for room in the window, then return the number of the next frame. Raises
        PenstockError.
        """
        with self._lock:
            done = self._lock.wait_for(
                lambda: self._missing < self._window or self._lost is not None, self._timeout
            )
            if self._lost is not None:
                raise self._lost
            if not done:
                raise BusError(
                    "the gateway answers no frame",
                    detail=f"after {self._timeout:g} s",
                    retryable=True,
                )
            self.sent += 1
            return self.sent

    def wait_for_all(self) -> None:
        """Return when no answer is missing. Raises PenstockError when frames were refused or
        answers do not come.
        """
        with self._lock:
            done = self._lock.wait_for(
                lambda: self._missing <= 0 or self._lost is not None, self._timeout
            )
            self._tell(self._lost if self._missing > 0 else None)
            if not done:
                raise BusError(
                    f"{self._missing} frames have no answer",
                    detail=f"after {self._timeout:g} s",
                    retryable=True,
                )

    def require_good(self) -> None:
        """Raise the error of a lost connection, or that of frames refused since it was last
        asked.
        """
        with self._lock:
            self._tell(self._lost)

    def loss(self, reason: Exception) -> RemoteError:
        """Return the error of a connection that is lost."""
        return RemoteError(
            f"the connection is lost; {self._missing} frames have no answer",
            detail=str(reason)[:200],
            hint="write them again under the same idempotency keys",
        )

    @property
    def _missing(self) -> int:
        return self.sent - self._answered

    def _tell(self, lost: PenstockError | None) -> None:
        """With the lock held: raise what has not been told."""
        fresh = self.refused[self._told :]
        self._told = len(self.refused)
        if not fresh:
            if lost is not None:
                raise lost
            return
        words = "; ".join(f"frame {number}: {error.message}" for number, error in fresh[:_NAMED])
        if len(fresh) > 1:
            words = f"{len(fresh)} frames were refused: {words}"
        if len(fresh) > _NAMED:
            words += f"; and {len(fresh) - _NAMED} more"
        if lost is not None:
            words += f"; {lost.message}"
        first = fresh[0][1]
        raise type(first)(words, code=first.code, detail=first.detail, hint=first.hint)

    # ---------------------------------------------------------------- the thread that reads

    def take(self, answer: dict[str, Any]) -> None:
        """Count an answer of the gateway."""
        with self._lock:
            self._answered += 1
            if "ack" in answer:
                self.acked += int(answer["rows"])
            else:
                self.refused.append((answer.get("nack"), error_of(answer["error"])))
            self._lock.notify_all()

    def lose(self, reason: Exception) -> None:
        """Note that no more answers come."""
        with self._lock:
            self._lost = self.loss(reason)
            self._lock.notify_all()
