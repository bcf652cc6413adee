from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from penstock import bus
from penstock.runtime import audit
from tests.unit.logs import logging_as_before


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    number = signal.getsignal(signal.SIGTERM)
    with logging_as_before():
        yield
    assert signal.getsignal(signal.SIGTERM) == number
    audit.open_trail("", "attic")
    bus.secure({})
