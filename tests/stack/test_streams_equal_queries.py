"""The law of streams that follow everything: whatever was written, in whatever order and while
whatever else happened, a stream's results are what the same SELECT gives over the table.

Each seed makes a database, a dozen streams and a history of writes: out of order, over one another,
in parts, deleted, from several clients at once; streams begin in the middle and fill their history,
or are paused for a while. Virtual tables, whose rows have to come in order, have tables of their
own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

import penstock
from penstock.mesh.running import RunningMesh
from tests.nightly import NIGHTLY
from tests.stack.names import unique

T0 = 1_700_006_400_000
#: PARTITION BY → types of its columns
KEYS = {
    ("tbname",): ("VARCHAR(192)",),
    ("g",): ("INT",),
    ("a % 3",): ("DOUBLE",),
    ("upper(s)",): ("VARCHAR(8)",),
    (): (),
    ("g", "s"): ("INT", "VARCHAR(8)"),
}
TRIGGERS = ("AT_ONCE", "WINDOW_CLOSE")
SESSION = "SESSION(ts, 2s)"
TIMED = ("INTERVAL(10s)", "INTERVAL(10s) SLIDING(5s)", "INTERVAL(10s, 3s)")
#: windows that need their rows in one order: rows of one time in several tables have none
ORDERED = ("STATE_WINDOW(a)", "EVENT_WINDOW START WITH a = 1 END WITH a = 2")
CONDITIONS = ("", " WHERE a > 0", " WHERE b IS NOT NULL", " WHERE s <> 'y'")
ANY_ORDER = "count(*) AS n, sum(a) AS sa, avg(b) AS ab, min(b) AS mi, max(a) AS mx, count(s) AS cs, spread(b) AS sp"
ONE_ORDER = ", first(b) AS fb, last(a) AS la"


@dataclass(frozen=True)
class Pair:
    """A stream, how its results are read, and the query that has to give the same."""

    name: str
    create: str
    results: str
    query: str


def windowed(
    name: str, keys: tuple[str, ...], window: str, where: str, options: str, source: str = "m"
) -> Pair:
    """A stream of windows over *source*, its results in `of_<name>`."""
    aliases = [f"k{i}" for i in range(len(keys))]
    values = ANY_ORDER + (ONE_ORDER if keys == ("tbname",) and source == "m" else "")
    columns = ", ".join([*aliases, "w", *(v.rsplit(" ", 1)[1] for v in values.split(", "))])
    by = (
        f" PARTITION BY {', '.join(f'{k} AS {a}' for k, a in zip(keys, aliases, strict=True))}"
        if keys
        else ""
    )
    tags = (
        f" TAGS ({', '.join(f'{a} {t}' for a, t in zip(aliases, KEYS[keys], strict=True))})"
        if keys
        else ""
    )
    said = "".join(f"{k} AS {a}, " for k, a in zip(keys, aliases, strict=True))
    body = f"_wstart AS w, {values} FROM {source}{where}{by} {window}"
    create = f"CREATE STREAM {name} {options} INTO of_{name}{tags} AS SELECT {body}"
    return Pair(name, create, f"SELECT {columns} FROM of_{name}", f"SELECT {said}{body}")


def pairs(random_: random.Random) -> tuple[list[Pair], list[Pair]]:
    """Streams to begin with, and those to create when there are rows already."""
    choice = random_.choice
    follows = "IGNORE EXPIRED 0 IGNORE UPDATE 0"
    kinds = [
        (keys, window)
        for keys in KEYS
        for window in (*TIMED, *((SESSION,) if len(keys) < 2 else ()))
    ]
    kinds += [(("tbname",), window) for window in ORDERED]
    early = []
    later = []
    for i, (keys, window) in enumerate(random_.sample(kinds, 10)):
        late = random_.random() < 0.4
        options = f"TRIGGER {choice(TRIGGERS)} {follows}{' FILL_HISTORY 1' if late else ''}"
        (later if late else early).append(
            windowed(f"s{i}", keys, window, choice(CONDITIONS), options)
        )
    body = f"ts, a * 2 AS a2, b FROM m{choice(CONDITIONS)} PARTITION BY tbname"
    create = f"CREATE STREAM plain TRIGGER AT_ONCE IGNORE UPDATE 0 INTO rp TAGS (t VARCHAR(192)) AS SELECT {body} AS t"
    early.append(
        Pair("plain", create, "SELECT t, ts, a2, b FROM rp", f"SELECT tbname AS t, {body}")
    )
    # one over the results of another
    body = "_wstart AS w, count(*) AS n, sum(a2) AS sa FROM rp PARTITION BY t AS k0 INTERVAL(15s)"
    create = f"CREATE STREAM over TRIGGER AT_ONCE {follows} INTO ro TAGS (k0 VARCHAR(192)) AS SELECT {body}"
    early.append(Pair("over", create, "SELECT k0, w, n, sa FROM ro", f"SELECT t AS k0, {body}"))
    joined = [
        (keys, window) for keys in ((), ("tbname",), ("g",)) for window in (*TIMED, SESSION)
    ] + [(("tbname",), ORDERED[0])]
    for i, (keys, window) in enumerate(random_.sample(joined, 3)):
        where = "" if window in ORDERED else choice(CONDITIONS)
        early.append(windowed(f"v{i}", keys, window, where, "TRIGGER AT_ONCE", "joined"))
    return early, later


class Story:
    """What happens to the tables, and meanwhile to the streams."""

    def __init__(self, db: penstock.Connection, seed: int) -> None:
        self.db = db
        self.random = random.Random(seed)
        self.tables = [f"t{i}" for i in range(self.random.choice([2, 6, 12]))]
        self.paused: list[Pair] = []
        db.execute(f"CREATE DATABASE {db.database} PARTITIONS {self.random.choice([1, 2, 3, 4])}")
        db.execute("CREATE STABLE m (ts TIMESTAMP, a INT, b DOUBLE, s VARCHAR(8)) TAGS (g INT)")
        db.execute(
            "; ".join(f"CREATE TABLE {t} USING m TAGS ({i % 3})" for i, t in enumerate(self.tables))
        )
        self._make_joined()
        self.streams, self.later = pairs(self.random)
        for pair in self.streams:
            db.execute(pair.create)

    def _make_joined(self) -> None:
        """A virtual supertable over tables of which each is written in order."""
        #: how far each table has come, in ms
        self.come = {f"n{i}": 0 for i in range(6)}
        self.db.execute(
            "CREATE STABLE n (ts TIMESTAMP, a INT, b DOUBLE, s VARCHAR(8)) TAGS (g INT)"
        )
        self.db.execute("; ".join(f"CREATE TABLE {t} USING n TAGS (0)" for t in self.come))
        self.db.execute(
            "CREATE VIRTUAL STABLE joined (ts TIMESTAMP, a INT, b DOUBLE, s VARCHAR(8)) TAGS (g INT)"
        )
        for i in range(5):
            a, b, s = (self.random.choice(list(self.come)) for _ in range(3))
            self.db.execute(
                f"CREATE VTABLE j{i} (a FROM {a}.a, b FROM {b}.b, s FROM {s}.s) USING joined TAGS ({i % 2})"
            )

    def grow(self) -> None:
        """Write what comes next to some of the tables that are joined."""
        rows = []
        for table in self.random.sample(list(self.come), 3):
            for row in self.rows(self.random.choice([0, 1, 5, 40]), 0, 1):
                self.come[table] += self.random.choice([500, 500, 1000, 2500])
                rows.append({**row, "tbname": table, "ts": T0 + self.come[table]})
        if rows:
            self.db.write("n", rows)

    def rows(self, count: int, low: int, high: int) -> list[dict[str, Any]]:
        choice = self.random.choice
        return [
            {
                "tbname": choice(self.tables),
                "ts": T0 + self.random.randrange(low, high) * 500,
                "a": choice([None, 0, 1, 1, 2, 2, 3]),
                "b": choice([None, self.random.randrange(40) / 4]),
                "s": choice([None, "x", "y", "Z"]),
            }
            for _ in range(count)
        ]

    def write(self, at: int) -> None:
        """Around half second *at*: batches one after the other or at once, parts of rows, or a
        range to delete.
        """
        kind = self.random.random()
        low = max(0, at - 60)
        high = at + 60
        if kind < 0.6:
            batches = [self.rows(self.random.choice([1, 5, 60, 400]), low, high) for _ in range(4)]
            with ThreadPoolExecutor(self.random.choice([1, 4])) as clients:
                assert sum(clients.map(lambda rows: self.db.write("m", rows), batches)) == sum(
                    map(len, batches)
                )
        elif kind < 0.8:
            for row in self.rows(15, low, high):
                value = "NULL" if row["a"] is None else row["a"]
                self.db.execute(
                    f"INSERT INTO {row['tbname']} (ts, a) VALUES ({row['ts']}, {value})"
                )
        else:
            first = T0 + self.random.randrange(at + 1) * 500
            last = first + self.random.choice([0, 3000, 9000])
            self.db.execute(
                f"DELETE FROM {self.random.choice([*self.tables, 'm'])} WHERE ts >= {first} AND ts <= {last}"
            )

    def meddle(self) -> None:
        """A stream begins, is paused, or goes on."""
        if self.later and self.random.random() < 0.3:
            self.streams.append(self.later.pop())
            self.db.execute(self.streams[-1].create)
        if self.random.random() < 0.15:
            pair = self.random.choice(self.streams)
            self.db.execute(f"PAUSE STREAM {pair.name}")
            self.paused.append(pair)
        elif self.paused and self.random.random() < 0.4:
            self.db.execute(f"RESUME STREAM {self.paused.pop().name}")

    def end(self) -> None:
        for pair in self.paused:
            self.db.execute(f"RESUME STREAM {pair.name}")
        for pair in self.later:
            self.db.execute(pair.create)
        self.streams += self.later
        self.db.drain(depth=2)
        for pair in self.streams:
            if "WINDOW_CLOSE" in pair.create:
                self.db.execute(f"FLUSH STREAM {pair.name}")
        self.db.drain(depth=1)


def plainly(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(
        repr(tuple(v.isoformat() if isinstance(v, datetime) else v for v in row)) for row in rows
    )


@pytest.fixture
def db(mesh: RunningMesh) -> Iterator[penstock.Connection]:
    with penstock.connect(
        mesh.gateway_url,
        password=mesh.password,
        database=unique("law"),
        options=penstock.ConnectionOptions(timeout=150),
    ) as connection:
        yield connection


@pytest.mark.parametrize("seed", range(30 if NIGHTLY else 2))
def test_a_stream_is_the_query_over_its_table(db: penstock.Connection, seed: int) -> None:
    story = Story(db, seed)
    for step in range(story.random.choice([4, 12])):
        story.meddle()
        story.write(step * 20)
        for _ in range(3):
            story.grow()
    story.end()
    for pair in story.streams:
        expected = plainly(db.query(pair.query).rows)
        found = plainly(db.query(pair.results).rows)
        assert found == expected, f"seed {seed}: {pair.create}"
    for pair in reversed(story.streams):
        db.execute(f"DROP STREAM {pair.name}")
