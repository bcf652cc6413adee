"""Errors of Kafka as `BusError`."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.bus.errors import TRANSIENT, bus_error

E = KafkaError


@pytest.mark.parametrize(
    ("number", "code", "retryable"),
    [
        (E._FENCED, "E_FENCED", False),
        (E.INVALID_PRODUCER_EPOCH, "E_FENCED", False),
        (E.PRODUCER_FENCED, "E_FENCED", False),
        (E._TRANSPORT, "E_BUS", True),
        (E._TIMED_OUT, "E_BUS", True),
        (E._QUEUE_FULL, "E_BUS", True),
        (E.LEADER_NOT_AVAILABLE, "E_BUS", True),
        (E.TOPIC_AUTHORIZATION_FAILED, "E_BUS", False),
        (E.MSG_SIZE_TOO_LARGE, "E_BUS", False),
        (E.UNKNOWN_TOPIC_OR_PART, "E_BUS", False),
    ],
)
def test_an_error_says_whether_it_passes(number: int, code: str, retryable: bool) -> None:
    found = bus_error(KafkaError(number), "no record", topic="t", partition=3, offset=7)
    assert (found.code, found.retryable) == (code, retryable)
    assert (found.topic, found.partition, found.offset) == ("t", 3, 7)
    assert found.message == "no record"
    assert found.detail.startswith(f"t[3]@7 {KafkaError(number).name()}: ")


def test_an_error_that_kafka_calls_retriable_passes() -> None:
    assert bus_error(KafkaError(E.TOPIC_EXCEPTION, "x", retriable=True), "m").retryable
    fenced = KafkaError(E._FENCED, "x", retriable=True)
    assert not bus_error(fenced, "m").retryable


def test_an_exception_is_unwrapped() -> None:
    wrapped = bus_error(KafkaException(KafkaError(E._TRANSPORT)), "m")
    assert wrapped.retryable and wrapped.detail.startswith("_TRANSPORT")


def test_any_other_exception_keeps_its_words() -> None:
    found = bus_error(ValueError("odd"), "m", topic="t", partition=1)
    assert (found.code, found.retryable) == ("E_BUS", False)
    assert (found.topic, found.partition, found.detail) == ("t", 1, "t[1]@-1 odd")
    assert bus_error(KafkaException("odd"), "m").detail == "odd"


def test_every_name_of_a_passing_error_is_one_of_kafka() -> None:
    known = {
        KafkaError(number).name()
        for name in dir(KafkaError)
        if name.isupper() and isinstance(number := getattr(KafkaError, name), int)
    }
    assert known >= TRANSIENT
