"""Processing time behind the exchange, which the streams of all databases share."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import names
from penstock.records import ControlRecord
from penstock.windows.kernel import EARLIEST
from spark_jobs.processor.clocks import Clocks, numbered
from spark_jobs.processor.pending import Pending
from spark_jobs.state import StateFiles
from tests.unit.spark_jobs.exchange_kit import Exchange

T0 = 1_700_006_400_000
DELAYED = (
    "TRIGGER MAX_DELAY 5s INTO {0} AS SELECT _wstart ws, count(*) n, g FROM m"
    " PARTITION BY g INTERVAL(1h)"
)
SILENT = (
    "TRIGGER WINDOW_CLOSE IDLE_TIMEOUT 10s INTO {0} AS SELECT _wstart ws, count(*) n, g FROM m"
    " PARTITION BY g INTERVAL(1m)"
)
FILLED = SILENT + " FILL(NULL)"


@pytest.fixture
def exchange(tmp_path: Path) -> Exchange:
    return Exchange(tmp_path)


@pytest.mark.parametrize("text", [DELAYED, SILENT], ids=["max delay", "idle time-out"])
def test_a_tick_is_no_business_of_streams_over_other_databases(
    exchange: Exchange, text: str
) -> None:
    mine = exchange.database("mine", partitions=1)
    other = exchange.database("other", partitions=1)
    plan = exchange.stream(mine, text.format("o"))
    exchange.stream(other, text.format("p"))
    exchange.tick(mine, T0)
    exchange.tick(other, T0)
    exchange.rows(mine, plan, [("d1", T0, 1)], T0)
    exchange.tick(other, T0 + 7_200_000)
    assert exchange.results(plan) == []
    exchange.tick(mine, T0 + 12_000)
    assert [(r["ws"], r["n"]) for r in exchange.results(plan)] == [(T0, 1)]


def test_a_tick_of_an_earlier_generation_counts(exchange: Exchange) -> None:
    before = exchange.database("grown", partitions=1)
    plan = exchange.stream(before, DELAYED.format("o"))
    exchange.tick(before, T0)
    exchange.rows(before, plan, [("d1", T0, 1)], T0)
    exchange.grow(before, 2)
    exchange.tick(before, T0 + 6_000)
    assert [(r["ws"], r["n"]) for r in exchange.results(plan)] == [(T0, 1)]


@pytest.mark.parametrize("text", [SILENT, FILLED], ids=["interval kernel", "general kernel"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_group_is_silent_when_no_partition_can_have_rows_of_it_any_more(
    exchange: Exchange, text: str, restarted: bool
) -> None:
    database = exchange.database("behind", partitions=2)
    plan = exchange.stream(database, text.format("o"))
    for partition in (0, 1):
        exchange.tick(database, T0, partition)
    exchange.rows(database, plan, [("d1", T0, 1)], T0, partition=1)
    exchange.tick(database, T0 + 60_000, partition=0)
    if restarted:
        exchange.processor.close()
        exchange.restarted()
    exchange.rows(database, plan, [("d1", T0 + 1, 1)], T0 + 1_000, partition=1)
    exchange.tick(database, T0 + 2_000, partition=1)
    assert exchange.results(plan) == []
    exchange.tick(database, T0 + 60_000, partition=1)
    assert [(r["ws"], r["n"]) for r in exchange.results(plan)] == [(T0, 2)]


def test_what_is_known_of_a_topics_time_goes_with_its_last_stream(exchange: Exchange) -> None:
    database = exchange.database("gone", partitions=1)
    plans = [exchange.stream(database, SILENT.format(name)) for name in ("o", "p")]
    exchange.tick(database, T0)
    for plan, left in zip(plans, (True, False), strict=True):
        exchange.control(database, ControlRecord("stream_off", stream=plan.stream_id))
        exchange.processor.keep()
        saved = StateFiles(str(exchange.directory / "state")).load()
        assert saved is not None
        assert bool(saved.waiting.get(f"clock {database.id}")) is left


def test_a_new_generation_of_a_topic_is_waited_for() -> None:
    clocks = Clocks(Pending({}))

    def hear(generation: int, partition: int, time: int) -> int:
        sender = names.exchange_producer(
            7, names.ingest_topic("a", generation=generation), partition
        )
        clocks.hear(ControlRecord("tick", time=time, producer=sender, body=numbered(generation)))
        return clocks.lowest([7])

    assert clocks.lowest([7]) == EARLIEST
    assert hear(1, 0, 50) == 50
    assert hear(2, 0, 70) == EARLIEST
    assert hear(1, 0, 80) == EARLIEST, "nothing comes from there any more"
    assert hear(2, 1, 60) == 60
    assert hear(2, 1, 55) == 60
    assert clocks.lowest([7, 8]) == EARLIEST
