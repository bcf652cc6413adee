"""Databases and the generations of their topics, and snodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.names import ingest_topic
from penstock.sql.plan import Duration, Precision


@dataclass(frozen=True)
class Move:
    """A database on its way to a topic of the next generation with so many partitions; what is
    false or empty has yet to happen.
    """

    partitions: int
    #: writers of ours hold what they get
    halted: bool = False
    #: of each partition of the old topic, the offset of the control record that ends it
    ended: tuple[int, ...] = ()


@dataclass(frozen=True)
class Database:
    """Without `keep` rows are kept for ever. `max_ahead` is how far in the future a time may lie.

    `dot_to_underscore`: measurements of line protocol with dots become tables with underscores;
    otherwise they are refused.
    """

    id: int
    name: str
    precision: Precision = "ms"
    keep: Duration | None = None
    partitions: int = 4
    max_ahead: Duration = Duration(1, "d")
    #: copies that Kafka keeps of its rows
    replica: int = 1
    options: Mapping[str, str] = field(default_factory=dict)
    #: where each partition of the topics of earlier generations ended, the first one's first
    former: tuple[tuple[int, ...], ...] = ()
    #: how many of those are not there any more
    removed: int = 0
    move: Move | None = None
    dot_to_underscore: bool = False

    @property
    def generation(self) -> int:
        """Grows when the number of partitions does."""
        return len(self.former) + 1

    @property
    def topic(self) -> str:
        """Carries the rows of all tables that have no topic of their own."""
        return ingest_topic(self.name, generation=self.generation)

    @property
    def next_topic(self) -> str:
        """Topic of the next generation."""
        return ingest_topic(self.name, generation=self.generation + 1)

    @property
    def former_topics(self) -> dict[str, int]:
        """Topics of earlier generations that are still there, the first one's first, and how many
        partitions each has.
        """
        return {t: n for t, n in self.lineage[self.removed : -1]}

    @property
    def lineage(self) -> list[tuple[str, int]]:
        """Topics of all generations, the first one's first, and how many partitions each had."""
        counts = [*map(len, self.former), self.partitions]
        return [(ingest_topic(self.name, generation=i), n) for i, n in enumerate(counts, 1)]


@dataclass(frozen=True)
class Snode:
    """A node that keeps backups of what the stream jobs need to go on elsewhere. `created` is epoch
    milliseconds.
    """

    id: int
    dnode: int
    created: int = 0

    @property
    def name(self) -> str:
        return f"snode{self.dnode}"
