"""Whatever of a partition the live reader gives, leaves out or repeats: each record is taken once,
in order.
"""

from __future__ import annotations

import asyncio

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.bus import Batch
from penstock.errors import BusError
from penstock.feeds.slices import Slice, slice_of
from services.notifier.intake import EventIntake

PARTITION = 2


class Kafka:
    """One partition's log, read two records at a time."""

    def __init__(self, offsets: list[int]) -> None:
        self.offsets = offsets
        self.start = 0
        self.open = 0
        self.taken: list[int] = []
        self.intake = EventIntake(self._take, self._ends, self._history)  # type: ignore[arg-type]

    @property
    def end(self) -> int:
        return self.offsets[-1] + 1 if self.offsets else 0

    async def _take(self, partition: int, offset: int, value: bytes | None) -> None:
        assert (partition, value) == (PARTITION, b"%d" % offset)
        await asyncio.sleep(0)
        self.taken.append(offset)

    async def _ends(self, partitions: list[int]) -> dict[int, int]:
        return dict.fromkeys(partitions, self.end)

    def _history(self, partition: int, offset: int) -> _History:
        self.open += 1
        return _History(self, offset)

    async def live(self, offset: int) -> None:
        await self.intake.live(PARTITION, offset, b"%d" % offset)


class _History:
    def __init__(self, kafka: Kafka, offset: int) -> None:
        self._kafka = kafka
        self._offset = offset

    async def read(self) -> list[Slice]:
        await asyncio.sleep(0)
        if self._offset < self._kafka.start:
            raise BusError("gone", code="E_OFFSET_GONE")
        found = [o for o in self._kafka.offsets if o >= self._offset][:2]
        if not found:
            return []
        self._offset = found[-1] + 1
        offsets = np.array(found, dtype=np.int64)
        empty = np.zeros(len(found), dtype=np.int64)
        return [
            slice_of(
                Batch(
                    "t", PARTITION, offsets, empty, [None] * len(found), [b"%d" % o for o in found]
                )
            )
        ]

    def close(self) -> None:
        self._kafka.open -= 1


@given(
    log=st.lists(st.integers(0, 30), unique=True, min_size=1).map(sorted),
    start=st.integers(0, 10),
    given_by_faust=st.data(),
)
def test_each_record_once_and_in_order(
    log: list[int], start: int, given_by_faust: st.DataObject
) -> None:
    kafka = Kafka(log)
    live = given_by_faust.draw(st.lists(st.sampled_from(log)).map(sorted))

    async def run() -> None:
        kafka.intake.begin(PARTITION, start, kafka.end)
        for offset in live:
            await asyncio.gather(
                kafka.live(offset), *([kafka.intake.look()] if offset % 3 == 0 else [])
            )
        for _ in range(3):  # one that sees no progress, one that knows the end
            await kafka.intake.look()

    asyncio.run(run())
    assert kafka.taken == [o for o in log if o >= start]
    assert kafka.open == 0


def test_while_the_live_reader_gets_on_nothing_is_read_twice() -> None:
    kafka = Kafka([])

    async def run() -> None:
        kafka.intake.begin(PARTITION, 0, 0)
        for offset in range(5):
            kafka.offsets.append(offset)
            await kafka.live(offset)
            kafka.offsets.append(offset + 1)
            await kafka.intake.look()
            assert kafka.taken == list(range(offset + 1)), (
                "the next one is the live reader's for another look"
            )
            kafka.offsets.pop()

    asyncio.run(run())


def test_a_partition_of_another_is_left_alone() -> None:
    kafka = Kafka([0, 1, 2])

    async def run() -> None:
        kafka.intake.begin(PARTITION, 0, 0)
        await kafka.live(0)
        kafka.intake.leave(PARTITION)
        await kafka.live(1)
        await kafka.intake.look()

    asyncio.run(run())
    assert kafka.taken == [0]
    assert kafka.intake.positions() == {}


def test_deleted_records_are_passed_over() -> None:
    kafka = Kafka([5, 6, 7])
    kafka.start = 5

    async def run() -> None:
        kafka.intake.begin(PARTITION, 0, 0)
        await kafka.live(7)

    asyncio.run(run())
    assert kafka.taken == [7]
