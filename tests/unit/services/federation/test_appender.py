"""Rows of a producer count once however they are cut, sent again and interrupted; rows that do not
fit are refused whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.bus import Delivery
from penstock.catalog.model import Table, TableVersion
from penstock.codec import TableCodec
from penstock.errors import BusError, SchemaError
from penstock.repartition.write_gate import Gate
from penstock.rows.partition import partition_of
from penstock.rows.versions import CLEAR, MERGE, UPSERT
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.federation import appender as appender_module
from services.federation.appender import LogAppender
from services.federation.conform import conform
from tests.nightly import drawn

COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("v", ColumnType("INT")),
    Column("note", ColumnType("VARCHAR", 4)),
)
TABLE = Table(
    7,
    "d",
    "t",
    "stable",
    "in.d",
    3,
    "ms",
    (TableVersion(100, COLUMNS, (Column("g", ColumnType("INT")),)),),
)


class Log:
    """What a topic would hold; `limit` records more are taken, then sends fail."""

    def __init__(self) -> None:
        self.records: list[tuple[int, bytes]] = []
        self.limit = 1 << 30

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        partition: int,
        on_delivery: Callable[[Delivery | BusError], None],
    ) -> None:
        if self.limit <= 0:
            on_delivery(BusError("gone"))
            return
        self.limit -= 1
        self.records.append((partition, value))
        on_delivery(Delivery(topic, partition, len(self.records), 0))

    def places(self) -> dict[int, tuple[int, int]]:
        """What `read_places` would find: the last stamp in each partition."""
        found: dict[int, tuple[int, int]] = {}
        for partition, value in self.records:
            stamps = TableCodec(TABLE).decode([value]).records.select("offset", "ordinal").rows()
            found[partition] = max([found.get(partition, (-1, -1)), *stamps])
        return found

    def rows(self) -> pl.DataFrame:
        return TableCodec(TABLE).decode([value for _, value in self.records]).rows


def _rows(first: int, last: int, a_record: int) -> pa.Table:
    numbers = range(first, last)
    return pa.table(
        {
            "_offset": pa.array([i // a_record for i in numbers], pa.int64()),
            "_row": pa.array([i % a_record for i in numbers], pa.int64()),
            "tbname": pa.array([f"m{i % 11}" for i in numbers], pa.string()),
            "ts": pa.array([1_700_000_000_000 + i for i in numbers], pa.timestamp("ms", "UTC")),
            "v": pa.array(list(numbers), pa.int32()),
        }
    )


def _appender(log: Log) -> LogAppender:
    bus: Any = log
    return LogAppender(
        lambda: TABLE, "f:x", bus, log.places(), TABLE.partitions, Gate(lambda _: False)
    )


@settings(deadline=None, max_examples=drawn(25))
@given(
    st.integers(1, 300),
    st.integers(1, 40),
    st.lists(
        st.tuples(st.integers(0, 300), st.integers(1, 120), st.integers(0, 4), st.booleans()),
        max_size=8,
    ),
)
def test_each_row_once_whatever_is_sent_again_and_lost(
    total: int, a_record: int, tries: list[tuple[int, int, int, bool]]
) -> None:
    """A try goes on somewhere at or before what is certain, in frames of any size, and dies after
    any number of records.
    """
    log = Log()
    certain = 0
    for back, size, survive, dies in [*tries, (300, 50, 0, False)]:
        log.limit = survive if dies else 1 << 30
        appender = _appender(log)
        at = max(0, certain - back)
        while at < total:
            end = min(at + size, total)
            try:
                done = appender.append(_rows(at, end, a_record), lambda *_: None)
            except BusError:
                break
            if done.exception() is not None:
                break
            at = end
            certain = max(certain, at)
    rows = log.rows()
    assert sorted(rows["v"].to_list()) == list(range(total))
    assert (partition_of(rows["tbname"], 3) >= 0).all()
    for name in rows["tbname"].unique():
        values = rows.filter(pl.col("tbname") == name)["v"].to_list()
        assert values == sorted(values)


def test_a_clear_and_its_merge_stay_in_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever records are cut: by the number of their rows, or in halves by their size."""
    pairs = 5_100
    count = 1 + 2 * pairs
    clears = [False, *(i % 2 == 0 for i in range(count - 1))]
    rows = pa.table(
        {
            "_offset": pa.array(range(count), pa.int64()),
            "_row": pa.array([0] * count, pa.int64()),
            "_op": pa.array([UPSERT, *[CLEAR, MERGE] * pairs], pa.int8()),
            "tbname": pa.array(["m1"] * count, pa.string()),
            "ts": pa.array([(i + 1) // 2 for i in range(count)], pa.timestamp("ms", "UTC")),
            "v": pa.array([None if c else 1 for c in clears], pa.int32()),
            "note": pa.array(["0" if c else None for c in clears], pa.string()),
        }
    )
    for most_bytes in (256 * 1024, 2_000):
        monkeypatch.setattr(appender_module, "_RECORD_BYTES", most_bytes)
        log = Log()
        assert _appender(log).append(rows, lambda *_: None).result(0) == count
        decoded = TableCodec(TABLE).decode([value for _, value in log.records])
        assert decoded.bad == [] and decoded.rows.height == count
        assert len(log.records) > 2


@pytest.mark.parametrize("anew", [True, False])
def test_partitions_that_are_new_know_what_the_old_ones_have(anew: bool) -> None:
    """Rows that are sent again after the table has got more partitions are there already, also
    those whose partition is another one now.
    """
    log = Log()
    now = [TABLE]
    bus: Any = log
    appender = LogAppender(lambda: now[-1], "f:x", bus, {}, TABLE.partitions, Gate(lambda _: False))
    assert appender.append(_rows(0, 100, 10), lambda *_: None).result(0) == 100
    now.append(replace(TABLE, topic="in.d.2", partitions=6))
    if anew:
        places = appender.close(1.0)
        assert places is not None
        appender = LogAppender(
            lambda: now[-1], "f:x", bus, places, appender.partitions, Gate(lambda _: False)
        )
    assert appender.append(_rows(0, 150, 10), lambda *_: None).result(0) == 50
    now.append(replace(TABLE, topic="in.d.3", partitions=12))
    assert appender.append(_rows(50, 200, 10), lambda *_: None).result(0) == 50
    assert sorted(log.rows()["v"].to_list()) == list(range(200))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"note": pa.array(["too long"])}, "longer"),
        ({"other": pa.array([1])}, "no column other"),
        ({"v": pa.array(["x"])}, '"v" is INT'),
        ({"tbname": pa.array([None], pa.string())}, "tbname"),
        ({"ts": pa.array([None], pa.timestamp("ms"))}, "no time"),
    ],
)
def test_rows_that_do_not_fit_are_refused(changes: dict[str, pa.Array], words: str) -> None:
    good = {
        "tbname": pa.array(["m"]),
        "ts": pa.array([1], pa.timestamp("ms", "UTC")),
        "v": pa.array([1], pa.int32()),
    }
    assert conform(pa.table(good), TABLE).height == 1
    with pytest.raises(SchemaError, match=words):
        conform(pa.table({**good, **changes}), TABLE)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("ts", [1_700_000_000_000_000_000]),
        ("t", [-(2**62)]),
        ("f", [float("inf")]),
        ("d", [float("-inf")]),
        ("f", [1e300]),
    ],
)
def test_what_could_not_be_read_back_is_refused(column: str, values: list[Any]) -> None:
    kinds = {"t": "TIMESTAMP", "f": "FLOAT", "d": "DOUBLE"}
    columns = (COLUMNS[0], *(Column(name, ColumnType(kind)) for name, kind in kinds.items()))
    table = replace(TABLE, versions=(TableVersion(100, columns, TABLE.tags),))
    good: dict[str, list[Any]] = {
        "tbname": ["a"],
        "ts": [5],
        "t": [6],
        "f": [0.5],
        "d": [float("nan")],
    }
    assert conform(pa.table(good), table).height == 1
    with pytest.raises(SchemaError) as refused:
        conform(pa.table({**good, column: values}), table)
    assert refused.value.code == "E_ROW" and f'"{column}"' in refused.value.message


def test_times_that_overflow_the_precision_are_refused() -> None:
    far = pa.array([32_503_680_000_000], pa.timestamp("ms", "UTC"))
    with pytest.raises(SchemaError):
        conform(pa.table({"tbname": ["a"], "ts": far}), replace(TABLE, precision="ns"))
