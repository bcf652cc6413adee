"""What one target was offered and has neither got nor lost, by stream."""

from __future__ import annotations

from collections import Counter

from services.notifier.message import NotifyMessage


class UnsettledMessages:
    """Counts characters and events."""

    def __init__(self) -> None:
        self._characters: Counter[int] = Counter()
        self._events: Counter[int] = Counter()

    def add(self, message: NotifyMessage) -> None:
        self._characters[message.stream] += len(message.text)
        self._events[message.stream] += message.events

    def remove(self, message: NotifyMessage) -> None:
        self._characters[message.stream] -= len(message.text)
        self._events[message.stream] -= message.events

    def had(self, stream_id: int) -> bool:
        """Tell if there ever was a message of this stream."""
        return stream_id in self._characters

    def characters(self, stream_id: int) -> int:
        return self._characters[stream_id]

    def events(self, stream_id: int) -> int:
        return self._events[stream_id]
