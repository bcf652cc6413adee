"""Logging as a service sets it up, in a test, and as it was afterwards."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.runtime import log


@contextmanager
def logging_as_before() -> Iterator[None]:
    """Give back the root logger's handlers and level behind a block."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    level = root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


def configure(
    service: str, level: str = "INFO", keep: Callable[[str], object] | None = None
) -> None:
    """Set logging up without warnings: what earlier tests have left open is warned of at any
    time.
    """
    log.configure(service, level, keep)
    logging.captureWarnings(False)
