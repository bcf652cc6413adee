"""Which kernel a plan needs: the incremental one where it can do the work, the general one for the
rest.
"""

from __future__ import annotations

from penstock.sql.plan import StreamPlan
from penstock.windows.context import KernelContext
from penstock.windows.emit.result import target_identity
from penstock.windows.filter import FilterKernel
from penstock.windows.force import ForceKernel
from penstock.windows.general.kernel import GeneralKernel
from penstock.windows.interval.kernel import IntervalKernel, supports
from penstock.windows.kernel import History, Kernel
from penstock.windows.pause import PausableKernel
from penstock.windows.virtual import JoinKernel


def choose(plan: StreamPlan, history: History | None, room: int, context: KernelContext) -> Kernel:
    """The kernel for *plan*, which can be paused."""
    inner = _inner(plan, history, room, context)
    if plan.source.kind == "virtual":
        inner = JoinKernel(plan, inner, history)
    return PausableKernel(inner, target_identity(plan), history)


def _inner(plan: StreamPlan, history: History | None, room: int, context: KernelContext) -> Kernel:
    if plan.window is None:
        return FilterKernel(plan, history, context)
    if plan.trigger.kind == "force_window_close":
        return ForceKernel(plan, history, context)
    if supports(plan):
        return IntervalKernel(plan, history, context)
    return GeneralKernel(plan, history, room, context)
