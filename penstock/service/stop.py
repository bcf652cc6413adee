"""A service is asked to stop once: by a signal, or by its own code. Threads wait for an event, and
event loops have one of their own set.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from penstock.runtime import log, vital

SIGNALS = (signal.SIGTERM, signal.SIGINT)
_log = log.get(__name__)


class StopRequest:
    """Set once. `event` is for threads; `heard_by` tells whoever cannot wait in a thread."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], object]] = []

    def ask(self) -> None:
        """Call the listeners and set the event, the first time. Any thread, but no signal handler:
        that may have interrupted whoever holds the lock.
        """
        with self._lock:
            if self.event.is_set():
                return
            for listener in self._listeners:
                listener()
            self.event.set()

    @contextmanager
    def heard_by(self, listener: Callable[[], object]) -> Iterator[None]:
        """Call *listener*, which must not wait, when a stop is asked for within the block; at once
        if it was before.
        """
        with self._lock:
            if self.event.is_set():
                listener()
            self._listeners.append(listener)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)


class StopSignals:
    """Calls *ask* at SIGTERM and SIGINT, until `close`. Made and closed in the main thread.

    *ask* runs in a thread of its own, because a signal handler must not take a lock.
    """

    def __init__(self, ask: Callable[[], object]) -> None:
        self._ask = ask
        self._heard: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._any = False
        self._ends_process = False
        self._before: dict[int, Any] = {}
        self._thread = threading.Thread(
            target=vital.run(self._pass_on), name="signals", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        self._before = {number: signal.getsignal(number) for number in SIGNALS}
        self.hear()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._heard.put(None)
        self._thread.join()

    def hear(self) -> None:
        """Handle the signals here; again after a library has set handlers of its own."""
        for number in SIGNALS:
            signal.signal(number, self._note)

    @contextmanager
    def ending_process(self) -> Iterator[None]:
        """Let a signal end the block, and with it the process: for a wait that nothing else ends.

        Raises:
            SystemExit: a signal came within the block, or had come before.
        """
        self._ends_process = True
        try:
            if self._any:
                raise SystemExit(0)
            yield
        finally:
            self._ends_process = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._any = True
        self._heard.put(number)
        if self._ends_process:
            raise SystemExit(0)

    def _pass_on(self) -> None:
        while (number := self._heard.get()) is not None:
            _log.info("stopping", signal=signal.Signals(number).name)
            self._ask()
