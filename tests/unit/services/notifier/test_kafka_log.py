from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator

import pytest
from aiokafka import conn

from services.notifier.kafka_log import accept_loopback

WARNING = "Sending username and password in the clear"


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    """aiokafka's own, as it was before."""
    found = logging.getLogger(conn.__name__)
    before = found.filters[:]
    found.filters.clear()
    yield found
    found.filters[:] = before


def test_the_words_are_aiokafkas() -> None:
    assert f'log.warning("{WARNING}")' in inspect.getsource(conn)


@pytest.mark.parametrize(
    "bootstrap", ["127.0.0.1:7703", "localhost:1", "[::1]:1,127.0.0.2:2", "127.0.0.1:1, [::1]:2"]
)
def test_a_password_may_go_over_loopback(
    bootstrap: str, logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    accept_loopback(bootstrap)
    logger.warning(WARNING)
    logger.warning("another warning")
    assert caplog.messages == ["another warning"]


@pytest.mark.parametrize(
    "bootstrap", ["10.0.0.1:9092", "127.0.0.1:1,kafka:9092", "[2001:db8::1]:1"]
)
def test_the_network_is_warned_of(
    bootstrap: str, logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    accept_loopback(bootstrap)
    logger.warning(WARNING)
    assert caplog.messages == [WARNING]
