"""Which queries should run, and in which mode: pure decisions of the supervisor.

One query per ingestion topic and one for the exchange. A query that is far behind catches up in
micro-batches; one that has caught up runs in real time. One that failed is started again: at once
if it had run for a while, else after a pause that doubles. Refused: a query for which there are no
task slots left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock import names
from penstock.catalog.view import Catalog

Mode = Literal["realtime", "microbatch"]
#: task slots that stay free, so that no query ever waits for another one's task
SPARE_SLOTS = 2
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
#: a query that ran for so long did not fail of how it begins: a pause would only keep results
#: waiting
_GROWN_UP = 10.0
#: an hour of quiet forgives earlier failures
_FORGIVEN = 3600.0


@dataclass(frozen=True)
class Wanted:
    """A topic to read. `id` tells a topic from an earlier one of the same name: state is kept under
    it.
    """

    topic: str
    partitions: int
    id: int


@dataclass(frozen=True)
class Running:
    """What the supervisor knows of a query."""

    wanted: Wanted
    mode: Mode
    active: bool
    lag: int = 0


@dataclass(frozen=True)
class Action:
    """`start` in `mode`, or `stop`; a switch is a stop, and a start in the next round."""

    kind: Literal["start", "stop"]
    wanted: Wanted
    mode: Mode = "realtime"


def topics_to_read(catalog: Catalog) -> dict[str, Wanted]:
    """Every topic that has to be read, by name."""
    found = {names.EXCHANGE: Wanted(names.EXCHANGE, names.BUILT_IN_TOPICS[names.EXCHANGE], 0)}
    for database in catalog.databases():
        found[database.topic] = Wanted(database.topic, database.partitions, database.id)
    for table in catalog.tables():
        if table.topic not in found and catalog.is_scanned(table.topic):
            found[table.topic] = Wanted(table.topic, table.partitions, table.id)
    return found


def decide(
    wanted: Mapping[str, Wanted],
    running: Mapping[str, Running],
    lags: Mapping[str, int],
    *,
    backlog: int,
    slots: int,
) -> tuple[list[Action], list[Wanted]]:
    """Return what to do now, and the topics there are no slots for."""
    kept = {t: r for t, r in running.items() if wanted.get(t) == r.wanted and r.active}
    actions = _stops(wanted, running, kept, backlog)
    used = sum(r.wanted.partitions for r in kept.values()) + SPARE_SLOTS
    starved = []
    for topic, item in wanted.items():
        if topic in kept:
            continue
        if used + item.partitions > slots:
            starved.append(item)
            continue
        used += item.partitions
        mode: Mode = "microbatch" if lags.get(topic, 0) > backlog else "realtime"
        actions.append(Action("start", item, mode))
    return actions, starved


def _stops(
    wanted: Mapping[str, Wanted],
    running: Mapping[str, Running],
    kept: Mapping[str, Running],
    backlog: int,
) -> list[Action]:
    """Return the stops of queries that are wanted no more, and of those in real time that are too
    far behind.
    """
    gone = [r for t, r in running.items() if wanted.get(t) != r.wanted]
    behind = [r for r in kept.values() if r.mode == "realtime" and r.lag > backlog]
    return [Action("stop", r.wanted) for r in (*gone, *behind)]


@dataclass(frozen=True)
class Failures:
    """How often a query has failed of late, when it last did, and how long it pauses then."""

    count: int = 0
    last: float = float("-inf")
    pause: float = 0.0

    def another(self, now: float, ran: float = 0.0) -> Failures:
        """Return what there is after a failure at *now* of a query that ran for *ran* seconds."""
        forgiven = now - self.last > _FORGIVEN
        pause = _FIRST_PAUSE
        if ran >= _GROWN_UP:
            pause = 0.0
        elif self.pause and not forgiven:
            pause = min(self.pause * 2, _LONGEST_PAUSE)
        return Failures(1 if forgiven else self.count + 1, now, pause)

    def may_start(self, now: float) -> bool:
        """Whether the pause after the last failure is over."""
        return now >= self.last + self.pause
