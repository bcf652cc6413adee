"""Processing time behind the exchange, where ticks come from several source partitions.

Each partition passes its ticks on behind the rows that came before them. So all rows that came
before a moment are there when every partition has said that the moment is over, and not when the
fastest has: another one may be behind. What is known is part of the processor's state.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable

from penstock import names
from penstock.records import ControlRecord
from penstock.windows.kernel import EARLIEST
from spark_jobs.processor.pending import Pending


def told_by(control: ControlRecord) -> int | None:
    """Return the id of the database or table whose topic a control was passed on from; None: it was
    not passed on.
    """
    return None if control.producer is None else int(control.producer.split(":", 2)[1])


def numbered(partitions: int) -> str:
    """Return the body of a tick from one of so many partitions."""
    return json.dumps({"partitions": partitions})


class Clocks:
    """How far the partitions of each source topic are, by the owner of the topic."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending

    def hear(self, control: ControlRecord) -> None:
        """Take note of a tick."""
        owner = told_by(control)
        if owner is None or control.producer is None or not control.body:
            return  # an earlier version passed it on
        topic, _, partition = control.producer.split(":", 2)[2].rpartition(":")
        partitions = int(json.loads(control.body)["partitions"])
        known_topic, known = self._pending.clock(owner)
        if known_topic and names.generation(topic) < names.generation(known_topic):
            return
        if topic != known_topic:
            known = dict.fromkeys(range(partitions), EARLIEST)
        known[int(partition)] = max(known.get(int(partition), EARLIEST), control.time)
        self._pending.set_clock(owner, topic, known)

    def lowest(self, owners: Iterable[int]) -> int:
        """Return up to when (ms) all rows of the topics of *owners* have come; `EARLIEST` where a
        partition has not said anything yet.
        """
        known = (self._pending.clock(owner)[1] for owner in owners)
        times = [time for of_topic in known for time in of_topic.values() or [EARLIEST]]
        return min(times, default=EARLIEST)

    def keep(self, owners: Container[int]) -> None:
        """Forget topics of all owners but these."""
        self._pending.keep_clocks(owners)
