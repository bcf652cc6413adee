"""A service that a supervisor keeps running, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.mesh.layout import Layout
from penstock.mesh.process import ChildProcess
from penstock.mesh.services import ServicePlan

State = Literal["waiting", "starting", "ready", "unready", "backoff", "failed", "stopped"]
_STARTING: frozenset[State] = frozenset(("waiting", "starting", "backoff"))


@dataclass
class Kept:
    """A service and what became of it."""

    service: ServicePlan
    state: State = "waiting"
    why: str = ""
    child: ChildProcess | None = None
    restarts: int = 0
    delay: float = 0.0
    not_before: float = 0.0
    ready_since: float | None = None
    ever_ready: bool = False
    #: since when it does not answer, and when it is killed after it was told to stop
    silent_since: float | None = None
    kill_at: float | None = None
    check: Future[str] | None = field(default=None, repr=False)

    def to_dict(self, layout: Layout) -> dict[str, Any]:
        return {
            "state": self.state,
            "why": self.why,
            "pid": self.child.pid if self.child else None,
            "started": self.child.started if self.child else None,
            "restarts": self.restarts,
            "log": str(layout.log(self.service.name)),
        }


def pause_between_looks(states: Iterable[State]) -> float:
    """Return how many seconds a supervisor sleeps if no child ends and no signal comes: few while
    somebody waits for a service.
    """
    found = set(states)
    if found & _STARTING:
        return 0.1
    return 0.5 if "unready" in found else 1.0
