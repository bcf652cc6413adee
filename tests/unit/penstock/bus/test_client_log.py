"""A broker that is away does not fill the logs."""

from __future__ import annotations

import logging

from penstock.bus.client_log import FailuresNowAndThen
from penstock.runtime.clock import ManualClock


def _record(text: str) -> logging.LogRecord:
    return logging.LogRecord("penstock.kafka", logging.ERROR, "", 0, text, (), None)


def test_a_client_tells_once_in_a_while_that_it_cannot_connect() -> None:
    clock = ManualClock()
    lines = FailuresNowAndThen(clock.monotonic)
    failure = _record("FAIL [store#consumer-1] [thrd:x]: Connect failed: refused (after 0ms)")
    other = _record("FAIL [store#producer-2] [thrd:x]: Connect failed: refused (after 0ms)")

    told = []
    for _ in range(400):
        told.append(lines.filter(failure))
        clock.advance(0.05)
    assert sum(told) == 2
    assert lines.filter(other)


def test_all_else_passes() -> None:
    lines = FailuresNowAndThen()
    warning = _record("GETPID [gateway#producer-2]: Failed to acquire idempotence PID")
    assert all(lines.filter(warning) for _ in range(3))


def test_many_clients_are_not_remembered_for_ever() -> None:
    lines = FailuresNowAndThen()
    assert all(lines.filter(_record(f"FAIL [c#consumer-{n}] x")) for n in range(3_000))
    assert len(lines._told) <= 1_000
