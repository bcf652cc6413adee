"""What the options of a stream mean for the general kernel."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.sql.plan import TICKS_PER_SECOND, Duration, StreamPlan


@dataclass(frozen=True)
class Rules:
    """The options of one plan, decided."""

    #: a repeat takes the place of the row before it
    replaces: bool
    #: rows that are late count
    keeps_late: bool
    #: what is published depends on the single writes, not just on the live rows after the call
    by_write: bool
    #: history may have published windows that are open, which the trigger does not
    shows_open: bool
    #: what becomes of windows is told
    notifies: bool
    #: ticks between two publications by the clock; 0: the clock publishes nothing
    every: int

    @classmethod
    def of(cls, plan: StreamPlan) -> Rules:
        """Decide what the options of *plan* mean."""
        precision = plan.source.precision
        continuous = plan.trigger.kind == "continuous_window_close"
        # the result of a stream is a keyed table: a repeat replaces whatever the options say, and
        # nothing expires
        always = continuous or plan.source.result_of is not None
        # a row of a virtual table grows with each origin's part: the whole one replaces the part
        grows = plan.source.kind == "virtual"
        hour = 3600 * TICKS_PER_SECOND[precision] if continuous else 0
        return cls(
            replaces=always or grows or not plan.ignore_update,
            keeps_late=always or not plan.ignore_expired,
            by_write=plan.notify is not None or plan.trigger.kind == "max_delay" or continuous,
            shows_open=plan.fill_history and plan.trigger.kind == "window_close",
            notifies=plan.notify is not None,
            every=_ticks(plan.trigger.every, precision) or hour,
        )


def _ticks(length: Duration | None, precision: str) -> int:
    return length.ticks(precision) if length else 0
