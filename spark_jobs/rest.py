"""Which topics are at rest, and who gives way when task slots are short: pure decisions.

A topic is at rest when all that it holds is worked on and saved, nothing has come for a while, and
no stream needs ticks from it. Then no query reads it: one consumer watches all of them, and the
next record wakes it. A processor does nothing by itself. Rows, results of other streams, controls,
barriers, stretches of a history and ticks are records, and the position says where to go on. So the
law: rest never changes a result, only when it comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock import names
from spark_jobs.queries import Wanted

#: who is quiet for so long may be put to rest early where others wait for its slots
_QUIET_SECONDS = 4.0
#: a query that always has work is stopped for others that wait after so many seconds
TURN_SECONDS = 20.0
#: how long a topic that was woken may take until it is read
_WAKE_SECONDS = 30.0


@dataclass(frozen=True)
class TopicProgress:
    """The end of each partition of a topic, and the offset up to which it is worked on and saved.

    Attributes:
        sure: false if `saved` may be about an earlier topic of the same name.
    """

    ends: tuple[int, ...]
    saved: tuple[int, ...]
    sure: bool = True

    @property
    def done(self) -> bool:
        """True when nothing is left to do."""
        return self.sure and not self.lag

    @property
    def lag(self) -> int:
        """Count the records that are not worked on yet."""
        return sum(max(end - saved, 0) for saved, end in zip(self.saved, self.ends, strict=True))

    @property
    def hindmost(self) -> int:
        """Return the partition in which most records wait."""
        return max(range(len(self.ends)), key=lambda p: self.ends[p] - self.saved[p])


@dataclass(frozen=True)
class Quiet:
    """A topic ends at `ends`, has since `since` (monotonic seconds), and nothing is left to do."""

    ends: tuple[int, ...]
    since: float


def listen(before: Quiet | None, progress: TopicProgress, now: float) -> Quiet | None:
    """Return how quiet a topic is at *now*; None: it is not."""
    if not progress.done:
        return None
    same = before is not None and before.ends == progress.ends
    return before if same else Quiet(progress.ends, now)


@dataclass(frozen=True)
class Turn:
    """A query that has slots: how many, since when, and since when its topic is quiet."""

    topic: str
    slots: int
    since: float
    quiet_since: float | None


def giving_way(needed: int, turns: Iterable[Turn], now: float) -> list[Turn]:
    """Return the queries to stop for others that wait for *needed* slots: who is quiet first, the
    longest quiet of them first, then who has had its turn. The exchange is everybody's and stays.
    """
    quiet: list[tuple[float, Turn]] = []
    busy: list[tuple[float, Turn]] = []
    for turn in turns:
        if turn.topic == names.EXCHANGE:
            continue
        if turn.quiet_since is not None and now - turn.quiet_since >= _QUIET_SECONDS:
            quiet.append((turn.quiet_since, turn))
        elif now - turn.since >= TURN_SECONDS:
            busy.append((turn.since, turn))
    chosen: list[Turn] = []
    for _, turn in sorted(quiet, key=_by_time) + sorted(busy, key=_by_time):
        if needed <= 0:
            break
        chosen.append(turn)
        needed -= turn.slots
    return chosen


def _by_time(pair: tuple[float, Turn]) -> float:
    return pair[0]


class TopicRest:
    """Knows of every topic whether it is at rest. Neither reads nor writes anything."""

    def __init__(self, idle_seconds: float) -> None:
        """*idle_seconds*: how long nothing comes until a topic is at rest; 0: none ever is."""
        self._idle = idle_seconds
        #: topics at rest
        self.asleep: dict[str, tuple[Wanted, Quiet]] = {}
        self._seen: dict[str, Wanted] = {}
        self._quiet: dict[str, Quiet] = {}
        #: since when a topic that is awake waits for its turn
        self._waits: dict[str, float] = {}
        self._woken: dict[str, float] = {}

    @property
    def is_on(self) -> bool:
        """Return False where no topic ever rests."""
        return self._idle > 0

    def new_topics(self, wanted: Mapping[str, Wanted]) -> list[Wanted]:
        """Return the topics at which nobody has looked yet."""
        if not self.is_on:
            return []
        return [w for t, w in wanted.items() if self._seen.get(t) != w]

    def keep(self, wanted: Mapping[str, Wanted]) -> list[Wanted]:
        """Forget all topics but these, and return those that are gone."""
        gone = [w for t, w in self._seen.items() if wanted.get(t) != w]
        for item in gone:
            del self._seen[item.topic]
            self.asleep.pop(item.topic, None)
            self._quiet.pop(item.topic, None)
            self._waits.pop(item.topic, None)
            self._woken.pop(item.topic, None)
        return gone

    def look(self, wanted: Wanted, progress: TopicProgress, now: float, *, clocked: bool) -> bool:
        """Take in how far a topic is that is awake, or that nobody has seen yet;
        return True if it is at rest now.

        Args:
            clocked: a stream needs ticks from it.
        """
        if not self.is_on:
            return False
        topic = wanted.topic
        first = self._seen.get(topic) != wanted
        self._seen[topic] = wanted
        quiet = listen(None if first else self._quiet.get(topic), progress, now)
        self._quiet.pop(topic, None)
        if quiet is not None:
            self._quiet[topic] = quiet
            if not clocked and (first or now - quiet.since >= self._idle):
                self.put_to_rest(topic)
                return True
        if first:
            self._waits[topic] = now
        return False

    def put_to_rest(self, topic: str) -> None:
        """Count a topic that is quiet as one at rest."""
        self.asleep[topic] = (self._seen[topic], self._quiet.pop(topic))
        self._waits.pop(topic, None)
        self._woken.pop(topic, None)

    def wake(self, topic: str, now: float) -> Wanted | None:
        """Count a topic as awake, and return it; None if it was not at rest."""
        found = self.asleep.pop(topic, None)
        if found is None:
            return None
        self._waits[topic] = self._woken[topic] = now
        return found[0]

    def queue(self, topic: str, now: float) -> None:
        """Let a topic whose turn is over wait behind all others."""
        self._waits[topic] = self._woken[topic] = now

    def quiet_since(self, topic: str) -> float | None:
        """Return since when a topic is quiet that is awake; None: it is not."""
        quiet = self._quiet.get(topic)
        return None if quiet is None else quiet.since

    def is_waking(self, topic: str, now: float) -> bool:
        """Return True while a topic that was woken may still be on its way."""
        return now - self._woken.get(topic, float("-inf")) < _WAKE_SECONDS

    def awake(self, wanted: Mapping[str, Wanted]) -> dict[str, Wanted]:
        """Return the topics to read, who has waited longest first, the exchange before all."""
        return dict(
            sorted(
                ((t, w) for t, w in wanted.items() if t not in self.asleep),
                key=lambda item: (item[0] != names.EXCHANGE, self._waits.get(item[0], 0.0)),
            )
        )
