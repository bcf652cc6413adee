"""Who computes the windows of a plan: DuckDB, where it computes what the kernels do, and else the
kernels of streams.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from penstock.sql.plan import Fill, StreamPlan
from services.store import interval_sql, session_sql

#: "interval": DuckDB groups rows. "session": rows are numbered by session, and DuckDB groups them
WindowEngine: TypeAlias = Literal["interval", "session", "kernels"]
#: rows of a plan that is only looked at
_ANY_ROWS = "FROM rows"


def engine_of(plan: StreamPlan) -> WindowEngine:
    """Return who computes the windows of *plan*."""
    plan = unfilled(plan)
    if interval_sql.sql(plan, _ANY_ROWS) is not None:
        return "interval"
    return "kernels" if session_sql.sessions(plan, _ANY_ROWS) is None else "session"


def unfilled(plan: StreamPlan) -> StreamPlan:
    """Return *plan* without FILL, which a query does once all windows are there."""
    return replace(plan, fill=Fill("none"))
