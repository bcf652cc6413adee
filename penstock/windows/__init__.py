"""Window kernels: plan + rows + state → results. Pure and columnar; no Spark, no Kafka, no clock of
its own.
"""

from __future__ import annotations

from penstock.sql.plan import StreamPlan
from penstock.windows.context import KernelContext
from penstock.windows.kernel import ROOM, Control, Delta, Emission, History, Kernel

__all__ = ["Control", "Delta", "Emission", "History", "Kernel", "KernelContext", "make_kernel"]


def make_kernel(
    plan: StreamPlan,
    history: History | None = None,
    room: int = ROOM,
    context: KernelContext | None = None,
) -> Kernel:
    """Return the kernel that interprets *plan*.

    Args:
        history: what it may read of its source again; None: nothing.
        room: how many live rows it keeps before it relies on that.
        context: what it shares with other kernels of the process; None: nothing.
    """
    from penstock.windows.choose import choose

    return choose(plan, history, room, context or KernelContext())
