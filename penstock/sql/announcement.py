"""Plans as control records have them, which whoever may read a topic can see."""

from __future__ import annotations

from dataclasses import replace

from penstock.sql.plan import StreamPlan


def announced(plan: StreamPlan) -> str:
    """Return *plan* as JSON for the processors: without the addresses of NOTIFY, the name of the
    key that signs, and the statement, which has them, too. These are in the catalog alone.
    """
    notify = plan.notify
    if notify is not None:
        notify = replace(notify, urls=(), signed_by="")
    return replace(plan, sql="", notify=notify).to_json()
