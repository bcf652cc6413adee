"""A processor's counters travel in its state and come back from it."""

from __future__ import annotations

import polars as pl

from penstock.runtime.health import SECONDS
from penstock.windows.kernel import Delta
from spark_jobs.processor.stats import FRAME, Stats


def test_counters_are_part_of_the_state() -> None:
    stats = Stats(rows_in=5, late=2, error="x")
    frames = {"rows": pl.DataFrame({"a": [1, 2, 3]})}
    saved = stats.into(Delta(frames, full=True))
    size = stats.state_bytes
    again = Stats()
    plain = again.take(saved)
    assert size > 0 and again == stats and plain.full
    stats.into(Delta(frames, full=False))
    assert stats.state_bytes == 2 * size
    stats.into(Delta(frames, full=True))
    assert stats.state_bytes == size
    assert plain.frames.keys() == frames.keys() and FRAME in saved.frames


def test_state_from_before_there_were_counters() -> None:
    stats = Stats()
    delta = Delta({}, full=False)
    assert stats.take(delta) is delta and stats == Stats()


def test_results_are_counted_by_how_long_they_took() -> None:
    stats = Stats()
    for seconds in (0.0, SECONDS[0], SECONDS[1], SECONDS[-1] + 1):
        stats.follow(seconds)
    assert stats.followed == [2, 1, *[0] * (len(SECONDS) - 2), 1]
    again = Stats()
    again.take(stats.into(Delta({}, full=True)))
    assert again.followed == stats.followed and again.followed_seconds == sum(
        (*SECONDS[:2], SECONDS[-1] + 1)
    )
