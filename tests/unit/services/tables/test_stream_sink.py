"""Results of streams into a stream table: each once, and how far they are taken over."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from penstock.catalog.model import Database, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.codec import TableCodec
from penstock.rows.versions import DELETE, UPSERT
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.tables import stream_sink
from services.tables.settings import TablesSettings
from services.tables.stream_sink import StreamSinks, inlets_of
from services.tables.writes import offset_producer
from tests.unit.services.kit import MemoryLog, MemoryReader
from tests.unit.services.tables.kit import NOW, Log, Node, stream_table

COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("n", ColumnType("BIGINT")),
    Column("other", ColumnType("INT")),
)


def inlet(table: Table, starts: dict[str, int] | None = None) -> Table:
    """The table beside *table* that a stream writes to."""
    options = {"inlet_of": str(table.id), "inlet_from": json.dumps(starts or {})}
    return Table(
        300,
        "ha",
        "inlet",
        "plain",
        "in.ha",
        1,
        "ms",
        (TableVersion(301, COLUMNS),),
        options=options,
    )


class Sink:
    """A leader of a stream table, and the log of its inlet."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = stream_table()
        self.node = Node("N1", table, Log(table.topic), directory, asyncio.get_running_loop())
        self.inlet = inlet(table)
        self.log = MemoryLog()
        self.readers: list[MemoryReader] = []
        monkeypatch.setattr(stream_sink, "Reader", self._reader)
        monkeypatch.setattr(stream_sink, "_LOOK_SECONDS", 0.0)
        monkeypatch.setattr(stream_sink, "_RETRY_SECONDS", 0.0)
        catalog: Any = SimpleNamespace(catalog=Catalog([Database(100, "ha"), table, self.inlet]))
        keeper: Any = SimpleNamespace(all=lambda: [self.node.replica])
        election: Any = SimpleNamespace(session=lambda group, table_id: self.node.session)
        admin: Any = self.log
        self.sinks = StreamSinks(TablesSettings(alias="N1"), catalog, keeper, election, admin)

    def _reader(self, bootstrap: str, offsets: Any, **more: Any) -> MemoryReader:
        made = self.log.reader(bootstrap, offsets)
        self.readers.append(made)
        return made

    def publish(
        self, *numbers: int, offset: int, producer: str | None = "s:12", op: int = UPSERT
    ) -> None:
        """A record of results, as a stream writes them."""
        count = len(numbers)
        frame = pl.DataFrame(
            {
                "tbname": ["inlet"] * count,
                "ts": [NOW // 10**6] * count,
                "n": list(numbers),
                "other": [1] * count,
                "_op": [op] * count,
            },
            schema_overrides={"_op": pl.Int8, "other": pl.Int32},
        )
        (value,) = TableCodec(self.inlet).encode(
            frame, max_bytes=100_000, producer=producer, from_offset=0, offset=offset
        )
        self.log.append("in.ha", value)

    async def until(self, check: Any) -> None:
        while not check():
            self.node.settle()
            await asyncio.sleep(0.001)  # threads read and decode meanwhile

    def taken(self) -> int:
        """How far the inlet is taken over, as the table's log says."""
        known = self.node.replica.copy.producers.get(offset_producer("inlet/300/0"))
        return known.sequence if known is not None else -1

    async def run(self, check: Any) -> None:
        task = asyncio.create_task(self.sinks.run())
        await self.until(check)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sink:
    made = Sink(tmp_path, monkeypatch)
    made.node.lead(1)
    made.node.settle()
    return made


def test_inlets_are_the_tables_that_say_so() -> None:
    table = stream_table()
    beside = inlet(table)
    reader: Any = SimpleNamespace(catalog=Catalog([Database(100, "ha"), table, beside]))
    assert inlets_of(reader, table) == [beside]
    assert inlets_of(reader, beside) == []


async def test_results_become_rows_and_the_place_is_kept(sink: Sink) -> None:
    sink.publish(1, 2, offset=5)
    sink.publish(3, offset=6)
    await sink.run(lambda: sink.taken() == 2)
    assert sink.node.numbers() == [1, 2, 3]


async def test_what_was_published_twice_is_there_once(sink: Sink) -> None:
    sink.publish(1, offset=5)
    sink.publish(1, offset=5)
    sink.publish(2, offset=6)
    await sink.run(lambda: sink.taken() == 3)
    assert sink.node.numbers() == [1, 2]


async def test_deletes_and_records_of_nobody_are_left_out(sink: Sink) -> None:
    sink.publish(1, offset=5)
    sink.publish(1, offset=6, op=DELETE)
    sink.publish(7, offset=7, producer=None)
    sink.log.append("in.ha", b"\0\0\0\0\1a control record")
    sink.publish(2, offset=8)
    await sink.run(lambda: sink.taken() == 5)
    assert sink.node.numbers() == [1, 2]


async def test_it_goes_on_where_it_was(sink: Sink) -> None:
    sink.publish(1, offset=5)
    await sink.run(lambda: sink.taken() == 1)
    sink.publish(2, offset=6)
    await sink.run(lambda: sink.taken() == 2)
    assert sink.node.numbers() == [1, 2]
    assert len(sink.readers) == 2


async def test_an_inlet_begins_where_it_was_made(sink: Sink) -> None:
    sink.publish(1, offset=5)
    sink.publish(2, offset=6)
    object.__setattr__(
        sink.inlet, "options", dict(sink.inlet.options) | {"inlet_from": json.dumps({"0": 1})}
    )
    await sink.run(lambda: sink.taken() == 2)
    assert sink.node.numbers() == [2]


async def test_results_that_are_gone_are_not_skipped(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.publish(1, offset=5)
    await sink.run(lambda: sink.taken() == 1)
    for offset in (6, 7, 8):
        sink.publish(offset, offset=offset)
    sink.log.starts["in.ha", 0] = 3
    said: list[str] = []
    warn: Any = lambda text, **more: said.append(more["error"])  # noqa: E731
    monkeypatch.setattr(stream_sink.log, "warning", warn)
    await sink.run(lambda: len(said) > 1)
    assert "results were deleted before they were taken over" in said[0]
    assert sink.node.numbers() == [1]


async def test_nothing_is_taken_over_where_the_table_is_not_led(sink: Sink) -> None:
    session = sink.node.session
    assert session is not None
    sink.publish(1, offset=5)
    session.end("N2 leads since epoch 2")
    ticks = iter(range(20))
    await sink.run(lambda: next(ticks) > 10)
    assert sink.readers == []
