from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator

import pytest
from aiokafka import conn

from services.notifier.kafka_log import accept_loopback

WARNING = "Sending username and password in the clear"


class Heard(logging.Handler):
    """What aiokafka's own logger passes on."""

    def __init__(self) -> None:
        super().__init__()
        self.logger = logging.getLogger(conn.__name__)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    """Listen to the logger itself: whoever set up logging before may have made it quieter."""
    made = Heard()
    before = made.logger.level
    made.logger.setLevel(logging.WARNING)
    monkeypatch.setattr(made.logger, "filters", [])
    monkeypatch.setattr(made.logger, "handlers", [made])
    monkeypatch.setattr(made.logger, "disabled", False)
    monkeypatch.setattr(made.logger, "propagate", False)
    yield made
    made.logger.setLevel(before)


def test_the_words_are_aiokafkas() -> None:
    assert f'log.warning("{WARNING}")' in inspect.getsource(conn)


@pytest.mark.parametrize(
    "bootstrap", ["127.0.0.1:7703", "localhost:1", "[::1]:1,127.0.0.2:2", "127.0.0.1:1, [::1]:2"]
)
def test_a_password_may_go_over_loopback(bootstrap: str, heard: Heard) -> None:
    accept_loopback(bootstrap)
    heard.logger.warning(WARNING)
    heard.logger.warning("another warning")
    assert heard.messages == ["another warning"]


@pytest.mark.parametrize(
    "bootstrap", ["10.0.0.1:9092", "127.0.0.1:1,kafka:9092", "[2001:db8::1]:1"]
)
def test_the_network_is_warned_of(bootstrap: str, heard: Heard) -> None:
    accept_loopback(bootstrap)
    heard.logger.warning(WARNING)
    assert heard.messages == [WARNING]
