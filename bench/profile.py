"""How long each measurement lasts.

`full` is what the promises are judged by, `short` fits half an hour, `quick` is for work on the bench itself.
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
    history_rows: int


PROFILES = {
    "full": Profile("full", 3, 120_000_000, 45_000_000, 60_000_000, 60.0, 20.0, 60, 30.0, 4_000_000, 40, 6_400_000, 50_000_000),
    "short": Profile("short", 3, 40_000_000, 10_000_000, 16_000_000, 12.0, 9.0, 30, 10.0, 1_000_000, 20, 1_920_000, 20_000_000),
    "quick": Profile("quick", 1, 2_000_000, 600_000, 1_500_000, 5.0, 4.0, 8, 3.0, 250_000, 5, 640_000, 5_000_000),
}
