"""Topics at rest as the supervisor deals with them: looked at, watched, woken, and said to be
minded.

`rest.py` decides. A record wakes a topic through the watch; that nothing is missed is checked now
and then by where all of them end.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Mapping
from queue import SimpleQueue

import redis

from penstock import names
from penstock.bus import Admin
from penstock.runtime.clock import Clock, milliseconds
from spark_jobs.queries import Wanted
from spark_jobs.rest import TopicProgress, TopicRest, Turn, giving_way
from spark_jobs.watch import SleepWatch

#: how long a heartbeat of a topic at rest lives, and how often it is set
_BEAT_LIVES = 30
_BEAT_SECONDS = 10.0
#: how often the ends of all topics at rest are asked for
_CHECK_SECONDS = 60.0


class Resting:
    """Of one supervisor, in its thread."""

    def __init__(
        self, client: redis.Redis, admin: Admin, watch: SleepWatch, idle_seconds: float
    ) -> None:
        """*idle_seconds*: see `TopicRest`."""
        self._redis = client
        self._admin = admin
        self.watch = watch
        self.rest = TopicRest(idle_seconds)
        self._beat_at = self._check_at = 0.0
        self._fresh: list[Wanted] = []
        self._expected: SimpleQueue[str] = SimpleQueue()
        self._greeted: SimpleQueue[Wanted] = SimpleQueue()
        #: greeted before the last round: this one's catalog has them, or they are gone
        self._due: list[Wanted] = []

    def expect(self, topics: Iterable[str]) -> None:
        """Wake these topics at the next look: something is on its way to them. From any thread.

        The watch would tell of it, too, but hears of a topic that has just fallen asleep with the
        broker's next answer only.
        """
        for topic in topics:
            self._expected.put(topic)

    def greet(self, topics: Iterable[Wanted], clock: Clock) -> None:
        """Say at once that topics made just now are minded: nothing is in them yet, and whoever
        made them waits for this. From any thread.
        """
        if not self.rest.is_on:
            return
        greeted = list(topics)
        # the next look says it again
        with contextlib.suppress(redis.RedisError):
            self._beat(greeted, milliseconds(clock))
        for wanted in greeted:
            self._greeted.put(wanted)

    def keep(self, wanted: Mapping[str, Wanted]) -> list[Wanted]:
        """Forget all topics but these, and return those that are gone."""
        gone = self.rest.keep(wanted)
        # dropped before any round has seen them: whoever drops them waits until nobody minds them
        gone += [w for w in self._due if w.topic not in wanted and w not in gone]
        self._due = [self._greeted.get_nowait() for _ in range(self._greeted.qsize())]
        self.watch.remove([w.topic for w in gone])
        return gone

    def wake(self, now: float) -> list[Wanted]:
        """Return the topics that have been woken."""
        expected = [self._expected.get_nowait() for _ in range(self._expected.qsize())]
        self.watch.remove(expected)
        woken = self._wake([*self.watch.take_woken(), *expected], now)
        if now - self._check_at >= _CHECK_SECONDS:
            self._check_at = now
            missed = self._topics_with_records()
            self.watch.remove(missed)
            woken += self._wake(missed, now)
        return woken

    def _wake(self, topics: Iterable[str], now: float) -> list[Wanted]:
        return [w for w in (self.rest.wake(topic, now) for topic in topics) if w is not None]

    def _topics_with_records(self) -> list[str]:
        """Return the topics at rest that do not end where they did."""
        asleep = self.rest.asleep
        ends = self._admin.end_offsets(
            [(t, p) for t, (w, _) in asleep.items() for p in range(w.partitions)]
        )
        return [
            t
            for t, (w, quiet) in asleep.items()
            if tuple(ends[t, p] for p in range(w.partitions)) != quiet.ends
        ]

    def look(
        self, looks: Iterable[tuple[Wanted, TopicProgress]], clocked: Collection[str], now: float
    ) -> None:
        """Take in what was found of topics that are awake or new; *clocked*: those that get
        ticks.
        """
        for wanted, look in looks:
            if self.rest.look(wanted, look, now, clocked=wanted.topic in clocked):
                self._fresh.append(wanted)

    def give_way(self, needed: int, turns: Iterable[Turn], now: float) -> list[str]:
        """Choose who gives way to others that wait for *needed* slots; return the queries to stop
        though they have work.
        """
        busy = []
        for turn in giving_way(needed, turns, now):
            if turn.quiet_since is None:
                self.rest.queue(turn.topic, now)
                busy.append(turn.topic)
            else:
                self.rest.put_to_rest(turn.topic)
                self._fresh.append(self.rest.asleep[turn.topic][0])
        return busy

    def settle(self, clock: Clock) -> None:
        """Watch the topics that have fallen asleep, whose queries are stopped now, and say that all
        at rest are minded.
        """
        asleep = self.rest.asleep
        fresh = [w.topic for w in self._fresh if asleep.get(w.topic, (None,))[0] == w]
        self.watch.add({topic: asleep[topic][1].ends for topic in fresh})
        self._fresh = []
        now = clock.monotonic()
        due = now - self._beat_at >= _BEAT_SECONDS
        if due:
            self._beat_at = now
        if due or fresh:
            self._beat(
                (asleep[topic][0] for topic in (asleep if due else fresh)), milliseconds(clock)
            )

    def _beat(self, topics: Iterable[Wanted], time: int) -> None:
        with self._redis.pipeline(transaction=False) as pipe:
            for wanted in topics:
                beat = {"mode": "rest", "partitions": wanted.partitions, "lag": 0, "time": time}
                pipe.set(names.query_heartbeat(wanted.topic), json.dumps(beat), ex=_BEAT_LIVES)
            pipe.execute()
