"""What the services and streams of a mesh did between two looks at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

#: the metric with the rows that a service has taken since its start
ROWS_METRIC = {
    "gateway": "penstock_gateway_rows",
    "store": "penstock_store_rows_total",
    "spark": "penstock_stream_rows_in",
}
#: for `StreamCount`, in its order
STREAMS = (
    "SELECT source_db, stream_name, status, rows_in, rows_out, late_rows, failed_rows, lag_records"
    " FROM information_schema.ins_streams"
)


@dataclass(frozen=True)
class ServiceCount:
    """Of one service: seconds of CPU and rows since its start, and bytes of memory (PSS)."""

    cpu: float
    memory: int
    rows: float | None


@dataclass(frozen=True)
class StreamCount:
    """Of one stream, as `ins_streams` has it; `lag` in records that are not worked on yet."""

    database: str
    name: str
    status: str
    rows_in: int
    rows_out: int
    late: int
    failed: int
    lag: int


@dataclass(frozen=True)
class ActivitySample:
    """What there is at one moment; `at` in seconds of a clock that only grows."""

    at: float
    services: Mapping[str, ServiceCount]
    streams: Sequence[StreamCount]


def rate(before: float | None, after: float | None, seconds: float) -> float | None:
    """Return how fast a count grew; None when it began anew, or is not known."""
    if before is None or after is None or seconds <= 0 or after < before:
        return None
    return (after - before) / seconds


def services_table(
    state: Mapping[str, Any], before: ActivitySample, after: ActivitySample
) -> Table:
    """List the services of *state* with what they used between two looks."""
    table = Table(box=None, pad_edge=False)
    table.add_column("service")
    table.add_column("state")
    for heading in ("CPU %", "memory MB", "rows/s", "restarts"):
        table.add_column(heading, justify="right")
    seconds = after.at - before.at
    nothing = ServiceCount(0.0, 0, None)
    for name, service in state["services"].items():
        old = before.services.get(name, nothing)
        new = after.services.get(name, nothing)
        busy = rate(old.cpu, new.cpu, seconds)
        table.add_row(
            name,
            service["state"],
            "" if busy is None else f"{busy * 100:.0f}",
            f"{new.memory / 1e6:.0f}",
            _number(rate(old.rows, new.rows, seconds)),
            str(service["restarts"]),
        )
    return table


def streams_table(before: ActivitySample, after: ActivitySample) -> Table:
    """List the streams, those with the largest lag first."""
    table = Table(box=None, pad_edge=False)
    table.add_column("stream", overflow="fold")
    table.add_column("status")
    for heading in ("rows in/s", "rows out/s", "late", "failed", "lag records"):
        table.add_column(heading, justify="right")
    seconds = after.at - before.at
    known = {(s.database, s.name): s for s in before.streams}
    for stream in sorted(after.streams, key=lambda s: (-s.lag, s.database, s.name)):
        old = known.get((stream.database, stream.name))
        table.add_row(
            Text(f"{stream.database}.{stream.name}"),
            stream.status,
            _number(rate(old.rows_in if old else None, stream.rows_in, seconds)),
            _number(rate(old.rows_out if old else None, stream.rows_out, seconds)),
            f"{stream.late:,}",
            f"{stream.failed:,}",
            f"{stream.lag:,}",
        )
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
