"""The queue of spans: nobody waits for it, and what is lost is counted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

from penstock.runtime.traces import SpanContext
from penstock.telemetry.exporter import CollectorError, SpanExporter
from penstock.telemetry.span import Span, SpanKind


def _span(number: int = 0) -> Span:
    context = SpanContext("a" * 32, f"{number + 1:016x}")
    return Span(str(number), SpanKind.INTERNAL, context, 1)


class _Target:
    """Takes spans once `open` is set; fails as often as `failures` says."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.entered = threading.Event()
        self.sent: list[list[str]] = []
        self.attempts = 0
        self.failures: list[Exception] = []

    def __call__(self, spans: Sequence[Span]) -> None:
        self.attempts += 1
        self.entered.set()
        assert self.open.wait(30)
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append([s.name for s in spans])


class _Kit:
    def __init__(self, *, queue: int = 8, batch: int = 4, delay: float = 60.0) -> None:
        self.target = _Target()
        self.counts: Counter[str] = Counter()
        self.exporter = SpanExporter(
            self.target, self._count, queue=queue, batch=batch, delay=delay, first_wait=0.001
        )

    def _count(self, kind: str, spans: int) -> None:
        self.counts[kind] += spans

    def add(self, count: int, first: int = 0) -> None:
        for number in range(first, first + count):
            self.exporter.add(_span(number))


def test_a_full_batch_leaves_at_once_and_the_rest_when_it_closes() -> None:
    kit = _Kit()
    kit.target.open.set()
    kit.add(4)
    assert kit.target.entered.wait(30)
    kit.add(1, 4)
    kit.exporter.close(30)
    assert [n for sent in kit.target.sent for n in sent] == ["0", "1", "2", "3", "4"]
    assert kit.counts == {"sent": 5}


def test_few_spans_leave_after_the_delay() -> None:
    kit = _Kit(delay=0.01)
    kit.target.open.set()
    kit.add(1)
    assert kit.target.entered.wait(30)
    kit.exporter.close(30)
    assert kit.target.sent == [["0"]]


def test_a_collector_that_stands_costs_whoever_adds_nothing() -> None:
    kit = _Kit(queue=8, batch=4)
    kit.add(4)
    assert kit.target.entered.wait(30)
    started = time.monotonic()
    kit.add(10_000, 4)
    took = time.monotonic() - started
    # the collector has not answered meanwhile: who waited for it would wait for ever
    assert kit.target.sent == [] and took < 30
    kit.target.open.set()
    kit.exporter.close(30)
    assert kit.counts["sent"] == 12
    assert kit.counts["dropped"] == 10_004 - 12
    # the oldest are kept: a trace that has begun is whole rather than cut
    assert [n for sent in kit.target.sent for n in sent] == [str(n) for n in range(12)]


def test_what_may_be_taken_later_is_sent_again() -> None:
    kit = _Kit()
    kit.target.failures = [CollectorError("HTTP status 503", again=True) for _ in range(3)]
    kit.target.open.set()
    kit.add(4)
    _until(lambda: kit.counts["sent"] == 4)
    kit.exporter.close(30)
    assert kit.target.attempts == 4
    assert kit.counts == {"sent": 4}


def test_a_refusal_is_no_reason_to_try_again() -> None:
    kit = _Kit()
    kit.target.failures = [CollectorError("HTTP status 401", again=False)]
    kit.target.open.set()
    kit.add(4)
    _until(lambda: kit.counts["failed"] == 4)
    kit.add(4)
    kit.exporter.close(30)
    assert kit.target.attempts == 2
    assert kit.counts == {"failed": 4, "sent": 4}


def test_attempts_end() -> None:
    kit = _Kit()
    kit.target.failures = [CollectorError("no answer", again=True) for _ in range(50)]
    kit.target.open.set()
    kit.add(4)
    _until(lambda: kit.counts["failed"] == 4)
    assert kit.target.attempts == 6
    kit.exporter.close(30)


def test_a_fault_of_ours_ends_no_thread() -> None:
    kit = _Kit()
    kit.target.failures = [ValueError("a bug")]
    kit.target.open.set()
    kit.add(4)
    _until(lambda: kit.counts["failed"] == 4)
    kit.add(4)
    kit.exporter.close(30)
    assert kit.counts == {"failed": 4, "sent": 4}


def test_closing_waits_for_no_collector() -> None:
    kit = _Kit()
    kit.add(4)
    assert kit.target.entered.wait(30)
    started = time.monotonic()
    kit.exporter.close(0.05)
    assert time.monotonic() - started < 30
    kit.exporter.add(_span())
    kit.target.open.set()


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.002)
