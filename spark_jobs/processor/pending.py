"""What has begun in a partition and not ended yet: histories being filled, announcements, barriers
and questions that not every source partition has passed on, and the end of the partition itself.

The state file keeps it as lists of texts by key, in the order in which it began; only this module
knows the keys.
"""

from __future__ import annotations

from collections.abc import Container

_CLOCK = "clock "
#: where the partition was closed to all but results, and where it ended
CLOSED = "closed"
ENDED = "ended"


def _filling(stream_id: int) -> str:
    return f"filling {stream_id}"


def _announcements(stream_id: int) -> str:
    return f"on {stream_id}"


def _begins(stream_id: int) -> str:
    return f"begun {stream_id}"


class Pending:
    """Typed access to the entry `waiting` of one partition's state."""

    def __init__(self, stored: dict[str, list[str]]) -> None:
        self._stored = stored
        #: nothing but results counts here any more
        self.closed = CLOSED in stored
        #: not even results do
        self.ended = ENDED in stored

    def to_state(self) -> dict[str, list[str]]:
        """Return a copy for the state file."""
        return {key: list(texts) for key, texts in self._stored.items()}

    # ---------------------------------------------------------------- the partition's end

    def close(self, offset: int) -> None:
        """Note that the partition was closed at *offset*; the first time counts."""
        self._stored.setdefault(CLOSED, [str(offset)])
        self.closed = True

    def end(self, offset: int) -> int:
        """Note that the partition ended at *offset*, and return where it ended the first time."""
        self.ended = True
        return int(self._stored.setdefault(ENDED, [str(offset)])[0])

    # ---------------------------------------------------------------- histories

    def begin_filling(self, stream_id: int, offset: int) -> None:
        """Note that a stream that began at *offset* is live once its history is filled."""
        self._stored[_filling(stream_id)] = [str(offset)]

    def is_filling(self, stream_id: int) -> bool:
        return _filling(stream_id) in self._stored

    def end_filling(self, stream_id: int) -> str | None:
        """Forget that a history is being filled, and return the offset at which the stream began;
        None if none was being filled.
        """
        texts = self._stored.pop(_filling(stream_id), None)
        return texts[0] if texts else None

    # ---------------------------------------------------------------- announcements of streams

    def await_announcements(self, stream_id: int) -> None:
        """Begin to collect a stream's announcements by the partitions of its source."""
        self._stored[_announcements(stream_id)] = []

    def awaits_announcements(self, stream_id: int) -> bool:
        return _announcements(stream_id) in self._stored

    def add_announcement(self, stream_id: int, partition: str, offset: int) -> dict[str, int]:
        """Note an announcement, and return the offsets of all there are by source partition."""
        texts = self._stored[_announcements(stream_id)]
        texts.append(f"{partition}:{offset}")
        return {p: int(o) for p, _, o in (text.partition(":") for text in texts)}

    def count_announcements(self, stream_id: int) -> int:
        return len(self._stored[_announcements(stream_id)])

    def end_announcements(self, stream_id: int) -> None:
        del self._stored[_announcements(stream_id)]

    def note_begin(self, stream_id: int, where: str, offset: int) -> None:
        """Note that a stream begins at *offset* in the source partition *where* (topic:partition);
        the first time counts.
        """
        known = self._stored.setdefault(_begins(stream_id), [])
        if all(text.rpartition("@")[0] != where for text in known):
            known.append(f"{where}@{offset}")

    def begins(self, stream_id: int) -> dict[str, int]:
        """Return the offset where a stream begins by source partition (topic:partition)."""
        texts = self._stored.get(_begins(stream_id), ())
        return {where: int(o) for where, _, o in (text.rpartition("@") for text in texts)}

    def forget_announcements(self, stream_id: int) -> None:
        """Forget a stream's beginnings and announcements."""
        for key in (_begins(stream_id), _announcements(stream_id)):
            self._stored.pop(key, None)

    # ---------------------------------------------------------------- clocks of source topics

    def clock(self, owner: int) -> tuple[str, dict[int, int]]:
        """Return the topic of an owner that is heard of, and the time (ms) that each of its
        partitions has told; an empty name and no times where there is none.
        """
        topic, *lines = self._stored.get(f"{_CLOCK}{owner}", [""])
        pairs = (line.split("@") for line in lines)
        return topic, {int(partition): int(time) for partition, time in pairs}

    def set_clock(self, owner: int, topic: str, times: dict[int, int]) -> None:
        """Note how far the partitions of an owner's topic are."""
        self._stored[f"{_CLOCK}{owner}"] = [topic, *(f"{p}@{time}" for p, time in times.items())]

    def keep_clocks(self, owners: Container[int]) -> None:
        """Forget clocks of all owners but these."""
        for key in [k for k in self._stored if k.startswith(_CLOCK)]:
            if int(key.removeprefix(_CLOCK)) not in owners:
                del self._stored[key]

    # ------------------------------------------- what has to come from every source partition

    def hear_barrier(
        self, barrier_id: str, topic: str, producer: str | None, partitions: int
    ) -> bool:
        """Note a barrier of a source topic with so many partitions, and return True once it has
        come from all of them.
        """
        key = f"{barrier_id} {topic}"
        heard = self._stored.setdefault(key, [])
        if producer is not None and producer not in heard:
            heard.append(producer)
        if len(heard) < partitions:
            return False
        del self._stored[key]
        return True

    def hear_question(self, question_id: str, topic: str, producer: str, partitions: int) -> bool:
        """Note a question for open windows, and return True once it has come from all source
        partitions.
        """
        key = f"open {question_id} {topic}"
        heard = self._stored.setdefault(key, [])
        heard.append(producer)
        if len(set(heard)) < partitions:
            return False
        del self._stored[key]
        return True
