from __future__ import annotations

from services.notifier.message import NotifyMessage, NotifyTarget
from services.notifier.unsettled import UnsettledMessages

TARGET = NotifyTarget("ws://h/in", "pause")


def message(stream: int, text: str, events: int) -> NotifyMessage:
    return NotifyMessage(0, 0, stream, "d.s", "p", (0, 0), events, text, (TARGET,))


def test_streams_are_counted_apart_until_they_are_settled():
    unsettled = UnsettledMessages()
    unsettled.add(message(1, "four", 2))
    unsettled.add(message(1, "fives", 1))
    unsettled.add(message(2, "one", 1))
    assert (unsettled.characters(1), unsettled.events(1)) == (9, 3)
    unsettled.remove(message(1, "four", 2))
    assert (unsettled.characters(1), unsettled.events(1)) == (5, 1)
    assert (unsettled.characters(2), unsettled.events(2)) == (3, 1)


def test_a_stream_without_messages_is_not_known():
    unsettled = UnsettledMessages()
    assert (unsettled.characters(1), unsettled.events(1), unsettled.had(1)) == (0, 0, False)
    unsettled.add(message(1, "four", 2))
    unsettled.remove(message(1, "four", 2))
    assert unsettled.had(1)
