"""How a process speaks to brokers: one way for its mesh, others by address or client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock import bus
from penstock.bus import security


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(security, "_security", {})
    yield


def test_the_meshs_options_are_for_all_brokers_but_those_with_their_own() -> None:
    assert bus.login("a:1") == {}
    bus.secure({"security.protocol": "SSL"})
    bus.secure({"sasl.username": "b"}, "b:1")
    bus.secure({}, "c:1")
    assert bus.login("a:1") == {"security.protocol": "SSL"}
    assert bus.login("b:1") == {"sasl.username": "b"}
    assert bus.login("c:1") == {}


def test_a_client_of_another_kafka_has_options_of_its_own() -> None:
    bus.secure({"security.protocol": "SSL"})
    assert bus.login("a:1", {}) == {}
