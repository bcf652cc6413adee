"""Outputs of a processor: what is held back, and what runs once everything before it is there."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.bus import Delivery
from penstock.errors import BusError
from spark_jobs.output import Outbox
from spark_jobs.replay import Published, Replay
from tests.unit.spark_jobs.publisher_kit import HeldPublisher


def _outbox(*published: Published, **more: Any) -> tuple[Outbox, HeldPublisher]:
    publisher: Any = HeldPublisher()
    return Outbox(publisher, Replay(published), **more), publisher


def test_an_output_that_is_in_the_log_is_held_back():
    outbox, publisher = _outbox(Published("p", "t", 0, 5, 9, 1))
    for ordinal in range(3):
        outbox.send("p", "t", 0, 9, ordinal, b"%d" % ordinal)
    outbox.send("p", "t", 1, 9, 0, b"other partition")
    assert [value for *_, value in publisher.sent] == [b"2", b"other partition"]
    assert (outbox.sent, outbox.held_back) == (2, 2)


def test_a_record_without_position_always_goes_out():
    outbox, publisher = _outbox(Published("p", "t", 0, 5, 9, 1))
    outbox.post("t", b"x", key=b"k")
    assert publisher.sent == [("t", -1, b"k", b"x")]


def test_whoever_asked_hears_of_the_delivery():
    outbox, publisher = _outbox()
    heard: list[Delivery] = []
    outbox.send("p", "t", 3, 0, 0, b"x", heard.append)
    assert not heard
    publisher.acknowledge()
    assert heard == [Delivery("t", 3, 0, 0)]


def test_what_hangs_on_outputs_runs_when_all_before_are_there():
    outbox, publisher = _outbox()
    done: list[Any] = []
    outbox.send("p", "t", 0, 0, 0, b"a")
    outbox.send("p", "t", 1, 0, 0, b"b")
    outbox.then(lambda ends: done.append(("first", dict(ends))))
    outbox.send("p", "t", 0, 1, 0, b"c")
    outbox.then(lambda ends: done.append(("second", dict(ends))))
    publisher.acknowledge(2)  # of the second part, which waits for the first
    publisher.acknowledge(0)
    assert done == []
    publisher.acknowledge(0)
    first = {"t:0": 1, "t:1": 2}
    assert done == [("first", first), ("second", {**first, "t:0": 3})]


def test_what_hangs_on_nothing_runs_at_once():
    outbox, _ = _outbox()
    done: list[Any] = []
    outbox.then(done.append)
    assert done == [{}]


def test_a_failed_delivery_is_raised_and_nothing_that_hung_on_it_runs():
    outbox, publisher = _outbox()
    done: list[Any] = []
    heard: list[Delivery] = []
    outbox.send("p", "t", 0, 0, 0, b"a", heard.append)
    outbox.then(done.append)
    outbox.check()
    publisher.acknowledge(error=BusError("no"))
    with pytest.raises(BusError, match="no"):
        outbox.check()
    with pytest.raises(BusError, match="no"):
        outbox.wait(5)
    assert not done and not heard


def test_a_snapshot_asked_for_after_a_failed_delivery_does_not_run_either():
    outbox, publisher = _outbox()
    done: list[Any] = []
    outbox.send("p", "t", 0, 0, 0, b"a")
    publisher.acknowledge(error=BusError("no"))
    outbox.then(done.append)
    outbox.then(done.append)
    assert done == []


def test_waiting_ends_with_the_last_acknowledgement_or_with_patience():
    outbox, publisher = _outbox()
    outbox.wait()
    outbox.send("p", "t", 0, 0, 0, b"a")
    with pytest.raises(BusError, match="not acknowledged after 0.01 s") as late:
        outbox.wait(0.01)
    assert late.value.retryable
    publisher.acknowledge()
    outbox.wait(5)


def test_nothing_leaves_a_process_that_has_lost_the_jobs():
    def lost() -> None:
        raise SystemExit(75)

    outbox, publisher = _outbox(allowed=lost)
    with pytest.raises(SystemExit):
        outbox.send("p", "t", 0, 0, 0, b"a")
    assert publisher.sent == []
