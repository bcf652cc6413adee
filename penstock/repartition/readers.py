"""Readers of a topic whose database gets more partitions: in which generation's topic they begin,
and when they turn to the next one's.

A reader has each topic to its end before it turns, so that it misses nothing. A token tells by the
number of its partitions of which generation it is. Offsets go on from one generation to the next,
so a token of a topic that is gone is a place in those that came after.
"""

from __future__ import annotations

from penstock.catalog.view import Catalog
from penstock.feeds.cursor import Cursor


def earliest(catalog: Catalog, topic: str) -> str:
    """The oldest topic that is left of *topic* and those it took the place of."""
    home = catalog.database_of_topic(topic)
    return next(iter(home.former_topics), topic) if home is not None else topic


def resume(catalog: Catalog, topic: str, cursor: Cursor) -> tuple[str, Cursor]:
    """Return the topic in which a reader of *topic* goes on that comes back with *cursor*, and
    where.
    """
    home = catalog.database_of_topic(topic)
    counts = [count for _, count in home.lineage] if home is not None else []
    if home is None or len(cursor.offsets) not in counts:
        return topic, cursor
    own = counts.index(len(cursor.offsets))
    if own >= home.removed:
        return home.lineage[own][0], cursor
    following, partitions = home.lineage[home.removed]
    return following, spread(cursor, partitions)


def spread(cursor: Cursor, partitions: int) -> Cursor:
    """The same place in a later generation's topic. What producers had brought there all came
    before that one began.
    """
    return Cursor({q: cursor.offsets[q % len(cursor.offsets)] for q in range(partitions)})


def turn(catalog: Catalog, topic: str, cursor: Cursor) -> Cursor | None:
    """Return where a reader that has come to the end of *topic* goes on, or None when it has not
    come there, or there is no end.
    """
    ends = catalog.ends(topic)
    home = catalog.database_of_topic(topic)
    if home is None or not ends or any(cursor.offsets.get(p, 0) <= end for p, end in ends.items()):
        return None
    topics = [known for known, _ in home.lineage]
    return Cursor(catalog.begins(topics[topics.index(topic) + 1]))
