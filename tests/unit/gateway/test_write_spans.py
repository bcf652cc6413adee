"""Writes that share records: where these are, and which span they carry."""

from __future__ import annotations

from gateway.flush import RowFlush
from gateway.write_spans import WritePlaces
from penstock.bus import Delivery
from penstock.errors import BusError
from penstock.runtime import traces
from penstock.runtime.traces import SpanContext
from penstock.telemetry.span import Span, SpanKind


def _span(number: int) -> Span:
    context = SpanContext(f"{number:032x}", f"{number:016x}")
    return Span("send in.d", SpanKind.PRODUCER, context, 1)


def _delivered(partition: int, offset: int) -> Delivery:
    return Delivery("in.d", partition, offset, 0)


def test_one_record_has_a_partition_and_an_offset() -> None:
    span = _span(1)
    flush = RowFlush(1, [], lambda outcomes: None, {}, WritePlaces([span], None))
    flush.count(_delivered(3, 17))
    assert span.attributes["messaging.destination.partition.id"] == "3"
    assert span.attributes["messaging.kafka.offset"] == 17


def test_of_several_the_last_in_each_partition_counts() -> None:
    span = _span(1)
    flush = RowFlush(4, [], lambda outcomes: None, {}, WritePlaces([span], None))
    for place in ((1, 5), (0, 9), (1, 4)):
        flush.count(_delivered(*place))
    assert not span.attributes
    flush.count(BusError("lost"))
    assert span.attributes["penstock.partitions"] == [0, 1]
    assert span.attributes["penstock.offsets"] == [9, 5]


def test_writes_are_linked_to_the_one_that_goes_on() -> None:
    first, second = _span(1), _span(2)
    WritePlaces([first, second], traces.text_of("order-17", second.context))
    assert first.links == [second.context]
    assert second.links == []
