"""The inbox: fillers dropped, records that wait coalesced in order, bounds held, failures passed
on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from spark_jobs.input import OFFSET_BITS, Inbox
from spark_jobs.task_batches import TaskBatches

NAMES = ["place", "time", "value"]


class Waiting(TaskBatches):
    """Batches of which somebody says whether one waits."""

    def __init__(
        self, batches: Iterator[pa.RecordBatch], waits: Callable[[float | None], bool]
    ) -> None:
        super().__init__(batches)
        self._says = waits

    def waits(self, timeout: float | None) -> bool:
        return self._says(timeout)


def batch(*offsets: int | None) -> pa.RecordBatch:
    return pa.record_batch(
        [
            pa.array([None if o is None else (3 << OFFSET_BITS) + o for o in offsets], pa.int64()),
            pa.array([None if o is None else o * 1000 for o in offsets], pa.int64()),
            pa.array([None if o is None else b"v%d" % o for o in offsets]),
        ],
        names=NAMES,
    )


def test_records_that_wait_are_taken_together_and_fillers_are_not_records() -> None:
    inbox = Inbox(
        "in.x",
        TaskBatches(iter([batch(0), batch(None), batch(1), batch(None), batch(2, 3)])),
        max_records=100,
        max_bytes=1 << 20,
    )
    records = inbox.take(None)
    assert records is not None
    assert (records.topic, records.partition) == ("in.x", 3)
    assert records.offsets.tolist() == [0, 1, 2, 3]
    assert records.timestamps.tolist() == [0, 1000, 2000, 3000]
    assert records.values == [b"v0", b"v1", b"v2", b"v3"]
    assert inbox.take(None) is None


def test_a_filler_in_front_and_one_behind_are_no_records_either() -> None:
    inbox = Inbox(
        "in.x",
        TaskBatches(iter([batch(None, 0), batch(None, 1), batch(2, None), batch(None)])),
        max_records=100,
        max_bytes=1 << 20,
    )
    records = inbox.take(None)
    assert records is not None
    assert records.offsets.tolist() == [0, 1, 2]
    assert records.values == [b"v0", b"v1", b"v2"]


@pytest.mark.parametrize(
    "sizes", [(100,), (40, 60), (40, 1, 59), (1, 40, 59), (16, 84), (1,) * 100]
)
def test_records_are_the_same_however_many_come_together(sizes: tuple[int, ...]) -> None:
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    batches = [batch(*range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]
    inbox = Inbox("in.x", TaskBatches(iter(batches)), max_records=1000, max_bytes=1 << 30)
    # a busy machine may need longer than the inbox waits for more: then they come in parts
    parts = list(iter(lambda: inbox.take(None), None))
    assert {part.partition for part in parts} == {3}
    assert [o for part in parts for o in part.offsets.tolist()] == list(range(100))
    assert [t for part in parts for t in part.timestamps.tolist()] == [i * 1000 for i in range(100)]
    assert [v for part in parts for v in part.values] == [b"v%d" % i for i in range(100)]
    assert [i for part in parts for i in part.ids.tolist()] == [-1] * 100


def test_limits_cut() -> None:
    inbox = Inbox(
        "in.x", TaskBatches(iter([batch(i) for i in range(10)])), max_records=4, max_bytes=1 << 20
    )
    sizes = []
    while (records := inbox.take(None)) is not None:
        sizes.append(len(records))
    assert sum(sizes) == 10
    assert max(sizes) <= 4


def test_what_does_not_fit_is_left_where_it_is() -> None:
    given = []

    def source() -> Iterator[pa.RecordBatch]:
        for i in range(50):
            given.append(i)
            yield batch(i)

    inbox = Inbox("in.x", TaskBatches(source()), max_records=5, max_bytes=1 << 20)
    taken = 0
    while (records := inbox.take(None)) is not None:
        taken += len(records)
        assert len(given) == taken
    assert taken == 50


def test_only_what_waits_is_taken() -> None:
    there = 2
    given = iter([batch(0), batch(None), batch(1), batch(2)])

    def source() -> Iterator[pa.RecordBatch]:
        nonlocal there
        for found in given:
            there -= 1
            yield found

    inbox = Inbox(
        "in.x",
        Waiting(source(), lambda timeout: timeout is None or there > 0),
        max_records=5,
        max_bytes=1 << 20,
    )
    assert [r.offsets.tolist() for r in (inbox.take(0.0), inbox.take(0.0)) if r is not None] == [
        [0],
        [],
    ]
    there = 2
    records = inbox.take(None)
    assert records is not None
    assert records.offsets.tolist() == [1, 2]
    assert inbox.take(None) is None


def test_a_flood_is_cut_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr("spark_jobs.input.time.monotonic", lambda: next(ticks) * 0.004)
    inbox = Inbox(
        "in.x", TaskBatches(iter([batch(i) for i in range(10)])), max_records=100, max_bytes=1 << 20
    )
    sizes = []
    while (records := inbox.take(None)) is not None:
        sizes.append(len(records))
    assert sum(sizes) == 10
    assert max(sizes) <= 4


def test_after_a_long_chunk_more_is_gathered_and_a_lull_is_waited_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    asked: list[float | None] = []

    def waits(timeout: float | None) -> bool:
        asked.append(timeout)
        return timeout is None or timeout > 0

    def source() -> Iterator[pa.RecordBatch]:
        nonlocal now
        for i in range(100):
            now += 0.004  # reading takes this long
            yield batch(i)

    monkeypatch.setattr("spark_jobs.input.time.monotonic", lambda: now)
    inbox = Inbox("in.x", Waiting(source(), waits), max_records=1000, max_bytes=1 << 20)
    assert len(inbox.take(None) or ()) == 1, "nothing else is there at once"
    now += 0.2
    asked.clear()
    gathered = inbox.take(None)
    assert len(gathered or ()) == pytest.approx(0.2 / 0.004, abs=2), (
        "for as long as the chunk before took"
    )
    assert asked[0] is None
    assert all(lull == pytest.approx(0.2 / 8, rel=0.05) for lull in asked[1:])
    asked.clear()
    now += 0.009
    assert len(inbox.take(None) or ()) == 1
    assert asked == [None, 0.0]


def test_no_input_for_a_while() -> None:
    asked: list[float | None] = []

    def waits(timeout: float | None) -> bool:
        asked.append(timeout)
        return timeout is None

    inbox = Inbox("in.x", Waiting(iter([batch(1)]), waits), max_records=5, max_bytes=1 << 20)
    nothing = inbox.take(0.01)
    assert nothing is not None
    assert len(nothing) == 0
    records = inbox.take(None)
    assert records is not None
    assert records.offsets.tolist() == [1]
    assert asked == [0.01, None, 0.0]


def test_what_ends_the_input_early_is_raised() -> None:
    def source() -> Iterator[pa.RecordBatch]:
        yield batch(1)
        raise OSError("gone")

    inbox = Inbox("in.x", TaskBatches(source()), max_records=1, max_bytes=1 << 20)
    assert inbox.take(None) is not None
    with pytest.raises(OSError, match="gone"):
        inbox.take(None)
