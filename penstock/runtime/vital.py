"""Threads and loops that a service cannot do without: one that fails ends the process, and the
supervisor starts it anew.

A thread that dies in silence leaves a service that says it is ready and does nothing. A fault of
one request is caught where the request is known, as one of `FAULTS`; what gets past that is
nobody's, and comes here.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from polars.exceptions import PanicException

from penstock.runtime.log import get

P = ParamSpec("P")
_log = get(__name__)
#: what a request may be the cause of; a panic of Rust code is no Exception
FAULTS: tuple[type[BaseException], ...] = (Exception, PanicException)
#: exit status of a process that lost a vital thread (EX_SOFTWARE)
EXIT_STATUS = 70


def end_process(name: str, error: BaseException) -> None:
    """End the process at once: *name* cannot go on."""
    _log.critical("a vital part failed; the process ends", part=name, exc_info=error)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(EXIT_STATUS)


def run(function: Callable[P, None]) -> Callable[P, None]:
    """Decorate the body of a vital thread."""

    @functools.wraps(function)
    def guard(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except BaseException as error:
            end_process(threading.current_thread().name, error)

    return guard


def task(work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
    """Start a vital task on the running loop; it may end or be cancelled, but not fail."""
    made = asyncio.get_running_loop().create_task(work, name=name)
    made.add_done_callback(_look)
    return made


def _look(done: asyncio.Task[Any]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        end_process(done.get_name(), error)
