"""Streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.sql.plan import StreamPlan

StreamStatus = Literal["running", "paused", "failed"]


@dataclass(frozen=True)
class StreamEntry:
    """A stream. `created` is epoch milliseconds; `reason` says why `status` is failed.

    `maker` is the user whose rights say whom its NOTIFY may tell; empty: made before that was kept.
    """

    id: int
    plan: StreamPlan
    status: StreamStatus = "running"
    created: int = 0
    reason: str = ""
    maker: str = ""

    @property
    def database(self) -> str:
        return self.plan.database

    @property
    def name(self) -> str:
        return self.plan.name
