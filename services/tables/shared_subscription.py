"""Subscriptions that several programs make for one another (their options name a `raft_group`):
only one of them gets rows.

The node that leads the table says which, so they are all connected there. It is the one that was
first, and stays it as long as it is connected. A node that has just begun to lead waits a moment
for the one that had rows from its predecessor: another one would begin with rows that are still
being worked off. How far the rows are worked off is in the table's log, and the next program begins
there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from services.tables.settings import TablesSettings
from services.tables.subscriber import Subscriber

#: seconds that a new leader waits for the program that got rows from the one before: its connection
#: has broken, so it looks around at once
GRACE_SECONDS = 1.5


def group_id(settings: TablesSettings, wanted: Any) -> int:
    """Return the id of a raftGroup; 0 for none. Raises CatalogError."""
    return settings.raft_groups.find(wanted).id if wanted is not None else 0


def together(subscribers: Iterable[Subscriber], one: Subscriber) -> list[Subscriber]:
    """The programs of *one*'s subscription that are connected here, in the order they came."""
    members = [s for s in subscribers if s.key == one.key and s.group == one.group]
    return sorted(members, key=lambda s: s.came)


def is_next(subscribers: Iterable[Subscriber], one: Subscriber, led_for: float) -> bool:
    """Whether it is *one*'s turn.

    Args:
        subscribers: all that are connected here.
        led_for: seconds that this node has led the table.
    """
    members = together(subscribers, one)
    if any(s.executes or s.cancelled for s in members):
        return False
    before = [s for s in members if s.executed]
    return one is before[0] if before else led_for >= GRACE_SECONDS and one is members[0]
