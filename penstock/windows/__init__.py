"""Window kernels: plan + rows + state → results. Pure and columnar; no Spark, no Kafka, no clock of
its own.
"""

from __future__ import annotations

from penstock.sql.plan import StreamPlan
from penstock.windows.kernel import ROOM, Control, Delta, Emission, History, Kernel

__all__ = ["Control", "Delta", "Emission", "History", "Kernel", "make_kernel"]


def make_kernel(plan: StreamPlan, history: History | None = None, room: int = ROOM) -> Kernel:
    """The kernel that interprets *plan*; *history* is what it may read of its source again (None:
    nothing), and beyond how many rows.
    """
    from penstock.windows.choose import choose

    return choose(plan, history, room)
