"""Processing time behind the exchange, which the streams of all databases share."""

from __future__ import annotations

from pathlib import Path

import pytest

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
