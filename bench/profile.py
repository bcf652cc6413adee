"""How long each measurement lasts.

`full` is what the promises are judged by, `short` fits half an hour, `quick` is for work on the
bench itself.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Rows are per round, seconds per round; the value of a line is the median of its rounds."""

    name: str
    rounds: int
    batch_rows: int
    single_rows: int
    baseline_rows: int
    latency_seconds: float
    warm_seconds: float
    idle_records: int
    gateway_seconds: float
    many_rows: int
    create_streams: int
    kernel_rows: int
    stack_rows: int
    state_tables: int
    history_rows: int
    select_rows: int
    kills: int
    rest_seconds: float
    rest_databases: tuple[int, ...]


PROFILES = {
    "full": Profile(
        "full",
        rounds=3,
        batch_rows=120_000_000,
        single_rows=45_000_000,
        baseline_rows=60_000_000,
        latency_seconds=60.0,
        warm_seconds=20.0,
        idle_records=60,
        gateway_seconds=30.0,
        many_rows=4_000_000,
        create_streams=40,
        kernel_rows=6_400_000,
        stack_rows=8_000_000,
        state_tables=1_000_000,
        history_rows=50_000_000,
        select_rows=5_000_000,
        kills=20,
        rest_seconds=300.0,
        rest_databases=(200, 1000),
    ),
    "short": Profile(
        "short",
        rounds=3,
        batch_rows=40_000_000,
        single_rows=10_000_000,
        baseline_rows=32_000_000,
        latency_seconds=12.0,
        warm_seconds=9.0,
        idle_records=30,
        gateway_seconds=10.0,
        many_rows=1_000_000,
        create_streams=20,
        kernel_rows=1_920_000,
        stack_rows=4_000_000,
        state_tables=1_000_000,
        history_rows=20_000_000,
        select_rows=5_000_000,
        kills=5,
        rest_seconds=120.0,
        rest_databases=(200,),
    ),
    "quick": Profile(
        "quick",
        rounds=1,
        batch_rows=2_000_000,
        single_rows=600_000,
        baseline_rows=1_500_000,
        latency_seconds=5.0,
        warm_seconds=4.0,
        idle_records=8,
        gateway_seconds=3.0,
        many_rows=250_000,
        create_streams=5,
        kernel_rows=640_000,
        stack_rows=64_000,
        state_tables=50_000,
        history_rows=5_000_000,
        select_rows=500_000,
        kills=2,
        rest_seconds=20.0,
        rest_databases=(10,),
    ),
}
