"""What clocks on the wall of one time zone show: local time, days and months of ticks.

A local time is ticks, too: those of the same reading in UTC. A local time that a change of the
clocks leaves out is read with the offset before the change; one that exists twice is the first.
Does not know windows.
"""

from __future__ import annotations

import zoneinfo
from typing import Literal, cast

import numpy as np
import polars as pl

from penstock.sql.plan import TICKS_PER_SECOND
from penstock.windows.clocks.ticks import Ticks

_MONTHS_1900_TO_1970 = 70 * 12
_FIXED_ZONES = ("UTC", "Etc/UTC", "Etc/GMT", "GMT", "Zulu", "Etc/Zulu", "Universal")


class WallClock:
    """The clock of one time zone, in ticks of one precision."""

    def __init__(self, precision: str, timezone: str) -> None:
        self._unit = cast(Literal["ms", "us", "ns"], precision)
        self._zone = timezone
        #: whether it shows UTC all year
        self.utc = timezone in _FIXED_ZONES
        if not self.utc:
            zoneinfo.ZoneInfo(timezone)

    def to_local(self, times: Ticks) -> Ticks:
        """Local times of UTC times."""
        if self.utc:
            return times
        local = (
            pl.Series(times, dtype=pl.Int64)
            .cast(pl.Datetime(self._unit, "UTC"))
            .dt.convert_time_zone(self._zone)
        )
        return local.dt.replace_time_zone(None).cast(pl.Int64).to_numpy()

    def to_utc(self, local: Ticks) -> Ticks:
        """UTC times of local times."""
        if self.utc:
            return local
        naive = self._series(local)
        times = naive.dt.replace_time_zone(self._zone, ambiguous="earliest", non_existent="null")
        if times.null_count():
            # clocks jump forward over this time: read it with the offset that was valid before the
            # jump
            hours = 3 * 3600 * TICKS_PER_SECOND[self._unit]
            before = self._series(local - hours).dt.replace_time_zone(
                self._zone, ambiguous="earliest", non_existent="null"
            )
            times = times.cast(pl.Int64).fill_null(before.cast(pl.Int64) + hours)
        return times.cast(pl.Int64).to_numpy()

    def month_of(self, times: Ticks) -> Ticks:
        """Months since 1900-01 of each UTC time, in local time."""
        local = self._series(self.to_local(times))
        frame = local.to_frame("t").select(
            (pl.col("t").dt.year().cast(pl.Int64) - 1900) * 12
            + pl.col("t").dt.month().cast(pl.Int64)
            - 1,
        )
        return frame.to_series().to_numpy()

    def first_of_month(self, months: Ticks) -> Ticks:
        """Local time at which each month begins, counted from 1900-01."""
        days = (
            (months - _MONTHS_1900_TO_1970)
            .astype("datetime64[M]")
            .astype("datetime64[D]")
            .astype(np.int64)
        )
        return days * (86_400 * TICKS_PER_SECOND[self._unit])

    def add_months(self, local: Ticks, months: int) -> Ticks:
        """Local times moved on by calendar months."""
        moved = (
            self._series(local)
            .to_frame("t")
            .select(pl.col("t").dt.offset_by(f"{months}mo").dt.timestamp(self._unit))
        )
        return moved.to_series().to_numpy()

    def _series(self, ticks: Ticks) -> pl.Series:
        return pl.Series(ticks, dtype=pl.Int64).cast(pl.Datetime(self._unit))
