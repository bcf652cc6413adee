from __future__ import annotations

import logging
import signal
from collections.abc import Iterator

import pytest

from penstock import bus
from penstock.runtime import audit


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers = root.handlers[:]
    level = root.level
    number = signal.getsignal(signal.SIGTERM)
    yield
    assert signal.getsignal(signal.SIGTERM) == number
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    audit.open_trail("", "attic")
    bus.secure({})
