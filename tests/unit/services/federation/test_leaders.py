"""Rows for a stream table count once whichever way they are cut, sent again and interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.model import Table
from penstock.client.wire import from_stream
from penstock.errors import PenstockError, RemoteError, SchemaError
from penstock.rows.versions import DELETE
from services.federation import leaders as subject
from services.federation.leaders import LeaderAppender
from services.tables.stamp import WritePart
from services.tables.writes import ProducerWrite, judge
from tests.nightly import drawn
from tests.unit.services.tables.kit import NOW, stream_table

TABLE = stream_table()
#: what happens to a write: nothing, it does not arrive, its answer does not, or another arrives
#: late from before
FAULTS = ("", "", "before", "after", "late")


class Leader:
    """What the real one decides, without its log. `Leaders` to an appender."""

    def __init__(self, pool: ThreadPoolExecutor, faults: Iterator[str]) -> None:
        self.pool = pool
        self.patience = 30.0
        self._faults = faults
        self.last: WritePart | None = None
        self.numbers: list[int] = []
        self.sizes: list[int] = []
        self._late: list[bytes] = []

    def leader(self, table: Table, avoid: str) -> str:
        return "http://leader"

    def last_sequence(self, url: str, table: Table, producer: str) -> int:
        return self.last.sequence if self.last is not None else 0

    def write(self, url: str, table: Table, body: bytes) -> None:
        fault = next(self._faults, "")
        if fault == "late":
            self._late.append(body)
        if fault in ("before", "late"):
            raise RemoteError("nobody there", code="E_NODE_DOWN")
        self._take(body)
        if fault == "after":
            raise RemoteError("nobody there", code="E_NODE_DOWN")

    def arrive(self) -> None:
        """What was on its way when a connection was cut."""
        for body in self._late:
            try:
                self._take(body)
            except PenstockError:
                continue
        self._late.clear()

    def _take(self, body: bytes) -> None:
        data = from_stream(body)
        meta = {k.decode(): v.decode() for k, v in data.schema.metadata.items()}
        number = int(meta["penstock.seq"])
        nobody = Any
        write = ProducerWrite(
            meta["penstock.producer"],
            number,
            number,
            data,
            len(body),
            nobody,
            int(meta["penstock.after"]),
        )  # type: ignore[arg-type]
        if judge(self.last, write) == "new":
            if write.data["sym"][0].as_py() == "bad":
                raise SchemaError("does not fit", code="E_ROW")
            self.last = WritePart(write.producer, write.sequence, write.rows, write.rows)
            self.numbers += data["n"].to_pylist()
            self.sizes.append(data.num_rows)


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_PAUSE_S", 0.0)


def frame(first: int, until: int, *, sym: str = "A", placed: bool = True) -> pa.Table:
    """Rows whose number says their place: ten of each record."""
    numbers = list(range(first, until))
    made = {
        "ts": pa.array([NOW // 10**6] * len(numbers), pa.timestamp("ms", "UTC")),
        "sym": pa.array([sym] * len(numbers)),
        "n": numbers,
    }
    places = {"_offset": [n // 10 for n in numbers], "_row": [n % 10 for n in numbers]}
    return pa.table({**made, **(places if placed else {})})


def acked(topic: str, partition: int, offset: int) -> None:
    raise AssertionError("only the leader knows")


@settings(deadline=None, max_examples=drawn(40))
@given(
    st.lists(
        st.tuples(st.lists(st.integers(1, 60), max_size=4), st.booleans()), min_size=1, max_size=5
    ),
    st.lists(st.sampled_from(FAULTS), max_size=12),
)
def test_each_row_is_there_once_over_connections_that_begin_somewhere_before(
    pool: ThreadPoolExecutor, connections: list[tuple[list[int], bool]], faults: list[str]
) -> None:
    leader = Leader(pool, iter(faults))
    certain = 0
    for lengths, cut in connections:
        appender = LeaderAppender(lambda: TABLE, "p", leader)  # type: ignore[arg-type]
        low = certain
        sent = []
        for length in lengths:
            sent.append((low + length, appender.append(frame(low, low + length), acked)))
            low += length
        if cut:
            appender.close(0)
        for upto, done in sent:
            if done.exception() is None:
                certain = upto
        leader.arrive()
    last = LeaderAppender(lambda: TABLE, "p", leader)  # type: ignore[arg-type]
    last.append(frame(certain, 1300), acked).result()
    assert leader.numbers == list(range(1300))


def test_writes_are_small_and_frames_share_one(pool: ThreadPoolExecutor) -> None:
    leader = Leader(pool, iter(()))
    appender = LeaderAppender(lambda: TABLE, None, leader)  # type: ignore[arg-type]
    assert appender.append(frame(0, 30_000, placed=False), acked).result() == 30_000
    assert appender.append(frame(30_000, 30_001, placed=False), acked).result() == 1
    assert max(leader.sizes) <= 5_000 and leader.numbers == list(range(30_001))


def test_rows_that_do_not_fit_end_it_and_deletes_are_left_out(pool: ThreadPoolExecutor) -> None:
    leader = Leader(pool, iter(()))
    appender = LeaderAppender(lambda: TABLE, "p", leader)  # type: ignore[arg-type]
    assert appender.delete(None, None, 0, 1, 7, acked).result() == 0
    deleted = frame(0, 3).append_column("_op", pa.array([0, DELETE, 0], pa.int8()))
    assert appender.append(deleted, acked).result() == 2
    with pytest.raises(PenstockError, match="E_ROW"):
        appender.append(frame(10, 20, sym="bad"), acked).result()
    with pytest.raises(PenstockError, match="E_ROW"):
        appender.append(frame(20, 30), acked)
    assert leader.numbers == [0, 2]
