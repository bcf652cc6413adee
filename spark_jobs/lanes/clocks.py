"""Processing time behind the exchange, where ticks come from several source partitions.

Each partition passes its ticks on behind the rows that came before them. So all rows that came
before a moment are there when every partition has said that the moment is over, and not when the
fastest has: another one may be behind. Keeps what it knows in the lane's state. Refuses to know
streams.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable

from penstock import names
from penstock.records import ControlRecord
from penstock.windows.kernel import EARLIEST

_KEY = "clock "


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

    def __init__(self, state: dict[str, list[str]]) -> None:
        """*state*: a part of it that is saved; keys of others stay as they are."""
        self._state = state

    def hear(self, control: ControlRecord) -> None:
        """Take note of a tick."""
        owner = told_by(control)
        if owner is None or control.producer is None or not control.body:
            return  # an earlier version passed it on
        topic, _, partition = control.producer.split(":", 2)[2].rpartition(":")
        partitions = int(json.loads(control.body)["partitions"])
        known_topic, known = self._read(owner)
        if known_topic and names.generation(topic) < names.generation(known_topic):
            return
        if topic != known_topic:
            known = dict.fromkeys(range(partitions), EARLIEST)
        known[int(partition)] = max(known.get(int(partition), EARLIEST), control.time)
        self._state[f"{_KEY}{owner}"] = [topic, *(f"{p}@{time}" for p, time in known.items())]

    def lowest(self, owners: Iterable[int]) -> int:
        """Return up to when (ms) all rows of the topics of *owners* have come; `EARLIEST` where a
        partition has not said anything yet.
        """
        times = [time for owner in owners for time in self._read(owner)[1].values() or [EARLIEST]]
        return min(times, default=EARLIEST)

    def keep(self, owners: Container[int]) -> None:
        """Forget topics of all owners but these."""
        for key in [k for k in self._state if k.startswith(_KEY)]:
            if int(key.removeprefix(_KEY)) not in owners:
                del self._state[key]

    def _read(self, owner: int) -> tuple[str, dict[int, int]]:
        """The topic of an owner that is heard of, and the time of each of its partitions."""
        topic, *lines = self._state.get(f"{_KEY}{owner}", [""])
        pairs = (line.split("@") for line in lines)
        return topic, {int(partition): int(time) for partition, time in pairs}
