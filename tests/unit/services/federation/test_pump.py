"""A view over rows that its target does not take (ON_ERROR): all others come, each once and in
order, over links and services that die.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import names
from penstock.bus import Delivery
from penstock.catalog.model import Table, TableVersion
from penstock.codec import TableCodec
from penstock.errors import BusError, PenstockError
from penstock.link.address import Address, LinkLost
from penstock.link.channel import LinkMessage
from penstock.link.description import Description
from penstock.records import DeadLetter, decode
from penstock.repartition.write_gate import Gate
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.federation import pump as pumping
from services.federation import targets as targeting
from services.federation.appender import LogAppender
from services.federation.misfits import Unfit, describe_row
from services.federation.pump import Job, Pump, PumpSource
from services.federation.settings import FederationSettings
from services.federation.targets import TablePlace
from tests.nightly import drawn

_TAGS = (Column("g", ColumnType("INT")),)


def _table(length: int, partitions: int) -> Table:
    columns = (
        Column("ts", ColumnType("TIMESTAMP")),
        Column("v", ColumnType("INT")),
        Column("note", ColumnType("VARCHAR", length)),
    )
    return Table(
        7, "d", "t", "stable", "in.d", partitions, "ms", (TableVersion(100, columns, _TAGS),)
    )


class Letters:
    """The topic of dead letters."""

    def __init__(self) -> None:
        self.taken: list[DeadLetter] = []

    def publish(self, topic: str, value: bytes, *, partition: int) -> Future[Delivery]:
        assert topic == names.DEAD_LETTER
        self.taken.append(decode(DeadLetter, value))
        sent: Future[Delivery] = Future()
        sent.set_result(Delivery(topic, partition, len(self.taken), 0))
        return sent


class Shard:
    """A target: the log of its table, written by real appenders, and links that break."""

    def __init__(self, table: Table, chance: random.Random, breaks: float) -> None:
        self.table = table
        self.chance = chance
        self.breaks = breaks
        self.records: list[tuple[int, bytes]] = []
        #: by producer and partition the last place that is there
        self.places: dict[str, dict[int, tuple[int, int]]] = {}

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        partition: int,
        on_delivery: Callable[[Delivery | BusError], None],
    ) -> None:
        self.records.append((partition, value))
        for producer, *place in (
            TableCodec(self.table)
            .decode([value])
            .records.select("producer", "offset", "ordinal")
            .iter_rows()
        ):
            self.places.setdefault(producer, {})[partition] = (place[0], place[1])
        on_delivery(Delivery(topic, partition, len(self.records), 0))

    def appender(self, producer: str) -> LogAppender:
        """One that knows what is there, as after any restart."""
        bus: Any = self
        return LogAppender(
            lambda: self.table,
            producer,
            bus,
            dict(self.places.get(producer, {})),
            self.table.partitions,
            Gate(lambda _: False),
        )

    def append(self, table: str, database: str = "", *, producer: str) -> TargetChannel:
        return TargetChannel(self, producer)

    def close(self) -> None:
        """A link of it is closed."""

    def rows(self) -> list[tuple[str, int]]:
        if not self.records:
            return []
        return (
            TableCodec(self.table)
            .decode([value for _, value in self.records])
            .rows.select("tbname", "v")
            .rows()
        )


class TargetChannel:
    """What the other side does with a channel of `append`: a refusal ends it, and acks that were
    not said yet are never said.
    """

    def __init__(self, shard: Shard, producer: str) -> None:
        self.shard = shard
        self.appender = shard.appender(producer)
        self.said: list[LinkMessage | PenstockError] = []
        self.failed: PenstockError | None = None

    def expect(self, kind: str, timeout: float) -> LinkMessage:
        return LinkMessage({"type": kind})

    def send(self, header: dict[str, Any], rows: pa.Table | None = None) -> None:
        if self.said and isinstance(self.said[-1], PenstockError) or self.failed is not None:
            return
        try:
            if rows is None:
                what = header["delete"]
                done = self.appender.delete(
                    what["tables"],
                    what["partition"],
                    what["low"],
                    what["high"],
                    what["offset"],
                    lambda *_: None,
                )
            else:
                done = self.appender.append(rows, lambda *_: None)
            self.said.append(LinkMessage({"type": "ack", "seq": 0, "rows": done.result(0)}))
        except PenstockError as refused:
            del self.said[self.shard.chance.randint(0, len(self.said)) :]
            self.said.append(refused)

    @property
    def waiting(self) -> bool:
        return bool(self.said) and self.shard.chance.random() < 0.5

    def get(self, timeout: float) -> LinkMessage | None:
        if self.failed is None and self.shard.chance.random() < self.shard.breaks:
            self.failed = LinkLost("the link is lost")
        if self.failed is not None:
            raise self.failed
        if not self.said or (timeout < 1 and self.shard.chance.random() < 0.5):
            return None
        item = self.said.pop(0)
        if isinstance(item, PenstockError):
            self.failed = item
            raise item
        return item

    def close(self) -> None:
        """Nothing is said any more."""


class Source:
    """A link to the source: frames that continue behind a token, then quiet, and the pump is
    stopped.
    """

    def __init__(self, table: Table, frames: Sequence[pa.Table]) -> None:
        self.table = table
        self.frames = frames
        self.pump: Pump | None = None
        self.at = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Closed."""

    def subscribe(self, sql: str, database: str, *, start: str, **_: object) -> Source:
        self.at = 0 if start == "earliest" else int(start)
        return self

    def expect(self, kind: str, timeout: float) -> LinkMessage:
        return LinkMessage(
            {"type": kind, "table": Description.of(self.table).to_json(), "token": str(self.at)}
        )

    def get(self, timeout: float) -> LinkMessage | None:
        if self.at == len(self.frames):
            if timeout:  # all are acked
                assert self.pump is not None
                self.pump.stop()
            return None
        self.at += 1
        return LinkMessage(
            {"type": "rows", "partition": 0, "token": str(self.at), "behind": 0},
            self.frames[self.at - 1],
        )


class World:
    """A view from a source of one partition to a target, with what is left of it over restarts."""

    def __init__(
        self,
        directory: Path,
        frames: Sequence[pa.Table],
        *,
        on_error: str,
        shards: int = 1,
        seed: int = 0,
        breaks: float = 0,
    ) -> None:
        self.directory = directory
        self.letters = Letters()
        self.chance = random.Random(seed)
        self.source = Source(_table(40, 1), frames)
        self.shards = [Shard(_table(4, 3), self.chance, breaks) for _ in range(shards)]
        places = tuple((Address("t", i),) for i in range(shards))
        self.job = Job(
            "d.view",
            9,
            5,
            0,
            PumpSource(
                (Address("s", 0),), "SELECT * FROM d.s", "d", "UTC", "earliest", True, "in.s"
            ),
            TablePlace(places, "d", "t"),
            "me",
            on_error,  # type: ignore[arg-type]
        )
        self.pump = self.started()

    def started(self) -> Pump:
        """The pump of a service that has just been started."""
        dead: Any = self.letters
        made = Pump(
            self.job,
            FederationSettings(window=4, checkpoint_seconds=0.001, ack_seconds=2.0),
            self.directory,
            dead,
        )
        self.source.pump = self.pump = made
        return made

    def link(self, replicas: tuple[Address, ...], **_: object) -> Any:
        return self.source if replicas[0].host == "s" else self.shards[replicas[0].port]

    def play(self) -> None:
        """Until all is there; links that break are made anew, and now and then the service is another
        one.
        """
        for _ in range(2_000):
            try:
                self.pump.work()
                return
            except LinkLost:
                if self.chance.random() < 0.5:
                    self.started()
        raise AssertionError("it does not come to an end")


@contextmanager
def world(frames: Sequence[pa.Table], **more: Any) -> Iterator[World]:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        made = World(Path(directory), frames, **more)
        patch.setattr(pumping, "connect_any", made.link)
        patch.setattr(targeting, "connect_any", made.link)
        yield made


def _frames(total: int, bad: set[int], a_frame: int, a_record: int = 7) -> list[pa.Table]:
    made = []
    for first in range(0, total, a_frame):
        numbers = range(first, min(first + a_frame, total))
        made.append(
            pa.table(
                {
                    "_offset": pa.array([i // a_record for i in numbers], pa.int64()),
                    "_row": pa.array([i % a_record for i in numbers], pa.int64()),
                    "tbname": pa.array([f"m{i % 5}" for i in numbers], pa.string()),
                    "ts": pa.array(
                        [1_700_000_000_000 + i for i in numbers], pa.timestamp("ms", "UTC")
                    ),
                    "v": pa.array(list(numbers), pa.int32()),
                    "note": pa.array(
                        ["too long" if i in bad else "ok" for i in numbers], pa.string()
                    ),
                }
            )
        )
    return made


def _places(rows: set[int], a_record: int = 7) -> list[tuple[int, str]]:
    return sorted((i // a_record, f"row {i % a_record}") for i in rows)


@settings(deadline=None, max_examples=drawn(24))
@given(
    st.integers(1, 80).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), max_size=20))
    ),
    st.integers(1, 40),
    st.integers(1, 2),
    st.integers(0, 1 << 30),
    st.sampled_from([0, 0, 0.03]),
)
def test_all_rows_but_the_bad_ones_once_and_in_order(
    drawn_rows: tuple[int, set[int]], a_frame: int, shards: int, seed: int, breaks: float
) -> None:
    """Any rows are bad: each of them is one dead letter, and all others are there, whatever breaks
    in between.
    """
    total, bad = drawn_rows
    with world(
        _frames(total, bad, a_frame), on_error="drop", shards=shards, seed=seed, breaks=breaks
    ) as it:
        it.play()
        found = [row for shard in it.shards for row in shard.rows()]
        assert sorted(v for _, v in found) == [i for i in range(total) if i not in bad]
        for name in {name for name, _ in found}:
            values = [v for shard in it.shards for n, v in shard.rows() if n == name]
            assert values == sorted(values)
        assert sorted((x.offset, x.reason.partition(":")[0]) for x in it.letters.taken) == _places(
            bad
        )
        assert {json.loads(x.value or b"")["v"] for x in it.letters.taken} == bad
        assert {(x.topic, x.partition, x.reader, x.code, x.stream) for x in it.letters.taken} <= {
            ("in.s", 0, "view", "E_ROW", 9)
        }
        assert it.pump.report.dropped == len(bad)


@settings(deadline=None, max_examples=drawn(12))
@given(
    st.integers(1, 80).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1, max_size=5))
    ),
    st.integers(1, 40),
    st.integers(0, 1 << 30),
    st.sampled_from([0, 0.03]),
)
def test_stop_is_at_the_first_row_that_does_not_fit(
    drawn_rows: tuple[int, set[int]], a_frame: int, seed: int, breaks: float
) -> None:
    """Rows before it are there, none behind it; and all of them once the target was mended."""
    total, bad = drawn_rows
    with world(_frames(total, bad, a_frame), on_error="stop", seed=seed, breaks=breaks) as it:
        with pytest.raises(Unfit, match='"note" is longer than') as stopped:
            it.play()
        first = min(bad)
        offset, row = divmod(first, 7)
        assert (
            f"partition 0, offset {offset}, row {row} of in.s" in stopped.value.detail
            and f'"v": {first}' in stopped.value.detail
        )
        assert it.pump.ends(stopped.value)
        assert sorted(v for _, v in it.shards[0].rows()) == list(range(first))
        assert it.letters.taken == []
        it.shards[0].table = _table(40, 3)
        it.started()
        it.play()
        assert sorted(v for _, v in it.shards[0].rows()) == list(range(total))


def test_without_on_error_a_refused_frame_is_an_error_that_is_tried_again() -> None:
    with world(_frames(20, {7}, 5), on_error="retry") as it:
        for _ in range(2):
            with pytest.raises(PenstockError) as refused:
                it.play()
            assert (
                refused.value.code == "E_ROW"
                and not it.pump.ends(refused.value)
                and not it.pump.passes(refused.value)
            )
        assert it.letters.taken == [] and {v for _, v in it.shards[0].rows()} <= set(range(5))


def test_a_frame_is_refused_for_all_of_its_rows() -> None:
    """A column that the target has not: no row fits, and the view comes to an end all the same."""
    frames = [
        frame.append_column("other", pa.array([1] * frame.num_rows))
        for frame in _frames(12, set(), 6)
    ]
    with world(frames, on_error="drop") as it:
        it.play()
        assert (
            it.shards[0].rows() == []
            and len(it.letters.taken) == 12
            and it.pump.report.dropped == 12
        )


def test_a_row_is_shown_with_what_it_holds() -> None:
    row = pa.table(
        {
            "_op": pa.array([0], pa.int8()),
            "_offset": [1],
            "_row": [2],
            "tbname": ["m"],
            "_time": pa.array([5], pa.timestamp("ns", "UTC")),
            "b": pa.array([b"\x00\xff"]),
            "f": [float("inf")],
            "s": ["ü"],
            "n": pa.array([None], pa.int32()),
        }
    )
    assert (
        describe_row(row)
        == '{"tbname": "m", "_time": 5, "b": "00ff", "f": "inf", "s": "ü", "n": null}'
    )
