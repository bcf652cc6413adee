"""WHERE of NOTIFY: the events whose windows have a result that passes.

What was taken back is always told: it may have been told of before. An event on which the condition
fails or is NULL is not told. Decides alike however often a record is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import polars as pl

from penstock.runtime.log import get
from penstock.sql.event_condition import EventCondition, compile_condition
from penstock.sql.plan import Key, StreamPlan, Target
from penstock.types import ColumnType
from penstock.windows.emit.projection import Projection
from penstock.windows.rows.scope import evaluate

#: streams whose conditions are kept compiled
_KEPT = 512
log = get(__name__)


def passing(plan: StreamPlan, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those of *events* that the NOTIFY clause of *plan* lets through, in order."""
    if plan.notify is None or not plan.notify.where or not events:
        return events
    condition = _compiled(plan.notify.where, plan.target, plan.keys, plan.timezone)
    frame = pl.DataFrame(
        [
            pl.Series("_at", range(len(events)), dtype=pl.UInt32),
            *_columns(condition.results, [event.get("result") for event in events]),
            *_columns(condition.keys, [event.get("tags") for event in events]),
        ]
    )
    made, failed = evaluate(frame, Projection([condition.passes.alias("_pass")]))
    if failed is not None:
        log.error("a condition of NOTIFY fails", stream=plan.name, events=failed.height)
    passed = set(made.filter("_pass").get_column("_at").to_list())
    return [
        event
        for at, event in enumerate(events)
        if at in passed or event.get("eventType") == "WINDOW_INVALIDATION"
    ]


@lru_cache(_KEPT)
def _compiled(where: str, target: Target, keys: tuple[Key, ...], timezone: str) -> EventCondition:
    return compile_condition(where, target, keys, timezone)


def _columns(
    wanted: Mapping[str, ColumnType], lines: Sequence[dict[str, Any] | None]
) -> list[pl.Series]:
    """Return the values of *lines* as columns with their types; NULL where a line has none."""
    return [
        _typed(name, [(line or {}).get(name) for line in lines], kind)
        for name, kind in wanted.items()
    ]


def _typed(name: str, values: list[Any], kind: ColumnType) -> pl.Series:
    """Return *values*, which JSON had, with their type; decimals are texts there."""
    if kind.kind == "DECIMAL":
        return pl.Series(name, values, dtype=pl.String).cast(kind.polars(), strict=False)
    return pl.Series(name, values, dtype=kind.polars(), strict=False)
