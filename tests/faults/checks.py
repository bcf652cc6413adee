"""What has to hold whatever happens."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import polars as pl

from penstock import names
from penstock.bus import Admin, Reader
from penstock.catalog import entries
from penstock.catalog.reader import CatalogReader
from penstock.codec import TableCodec, schema_ids
from penstock.errors import PenstockError
from penstock.rows.partition import partition
from tests.faults.check import Check
from tests.faults.far_checks import External, StreamTables
from tests.faults.load import TABLES, Load
from tests.stack.conftest import eventually
from tests.stack.notifier_kit import Receiver


class Rows(Check):
    """Nothing that was acknowledged is lost, and nothing counts twice."""

    name = "acked rows"

    def setup(self) -> None:
        pass

    def verify(self, load: Load) -> None:
        found = self.ask("SELECT tbname, ts, v, k, state, site FROM m")
        expected = load.all().select(
            "tbname", pl.col("ts").cast(found.schema["ts"]), "v", "k", "state", "site"
        )
        self.same(found, expected, "rows of m")


_CALC = "SELECT tbname AS t, _wstart AS w, count(*) AS c, sum(v) AS s FROM m PARTITION BY tbname"
#: kind of window → its clause; what closes is flushed at the end
WINDOWS = {
    "interval": "INTERVAL(5s)",
    "sliding": "INTERVAL(8s) SLIDING(2s)",
    "session": "SESSION(ts, 3s)",
    "state": "STATE_WINDOW(state)",
    "event": "EVENT_WINDOW START WITH k = 3 END WITH k = 11",
    "count": "COUNT_WINDOW(10)",
}


class Windows(Check):
    """Every kind of window, on close, at once and by the clock: what SELECT computes over the
    rows.
    """

    name = "windows"

    def setup(self) -> None:
        for kind, clause in WINDOWS.items():
            options = "TRIGGER WINDOW_CLOSE" + (" WATERMARK 1s" if kind == "count" else "")
            self._make(f"w_{kind}", clause, options)
        self._make("at_once", WINDOWS["interval"], "TRIGGER AT_ONCE")
        self._make("delayed", WINDOWS["interval"], "TRIGGER MAX_DELAY 5s")

    def _make(self, name: str, clause: str, options: str) -> None:
        query = f"SELECT _wstart AS w, count(*) AS c, sum(v) AS s FROM m PARTITION BY tbname AS src {clause}"
        self.stream(name, query, options, tags="TAGS (src VARCHAR(16))")

    def verify(self, load: Load) -> None:
        for name, kind in [
            *((f"w_{k}", k) for k in WINDOWS),
            ("at_once", "interval"),
            ("delayed", "interval"),
        ]:
            found = self.ask(f"SELECT src, w, c, s FROM {name}_r")
            expected = self.ask(f"{_CALC} {WINDOWS[kind]}").rename({"t": "src"})
            if kind in ("count", "event"):  # the last one of a table is not over, FLUSH or not
                found, expected = (
                    f.filter(pl.col("w") < self._last(load)) for f in (found, expected)
                )
            assert expected.height > TABLES, f"{name}: too few windows to say anything"
            self.same(found, expected, name)

    @staticmethod
    def _last(load: Load) -> pl.Expr:
        """Where windows may be open still: behind the newest row of the slowest table, less the
        length of the longest one.
        """
        newest = load.all().group_by("tbname").agg(pl.col("ts").max())["ts"].min()
        assert isinstance(newest, int)
        return pl.lit(newest - 30_000).cast(pl.Datetime("ms", "UTC"))


class Groups(Check):
    """Groups that cross partitions, over the exchange."""

    name = "groups over partitions"

    def setup(self) -> None:
        self.stream(
            "sites",
            "SELECT _wstart AS w, count(*) AS c, sum(v) AS s FROM m PARTITION BY site INTERVAL(5s)",
            "TRIGGER AT_ONCE",
        )

    def verify(self, load: Load) -> None:
        grouped = (
            load.all()
            .group_by("site", w=pl.col("ts") // 5000 * 5000)
            .agg(c=pl.len().cast(pl.Int64), s=pl.col("v").sum())
        )
        found = self.ask("SELECT w, c, s FROM sites_r")
        self.same(found, grouped.select(pl.col("w").cast(found.schema["w"]), "c", "s"), "sites")


class Chain(Check):
    """A stream over a stream's result."""

    name = "chained streams"
    depth = 2

    def setup(self) -> None:
        self.stream(
            "first",
            "SELECT _wstart AS w, count(*) AS c FROM m PARTITION BY tbname INTERVAL(5s)",
            "TRIGGER AT_ONCE",
        )
        self.stream(
            "second",
            "SELECT _wstart AS w, sum(c) AS c FROM first_r PARTITION BY tbname INTERVAL(20s)",
            "TRIGGER AT_ONCE",
        )

    def verify(self, load: Load) -> None:
        grouped = (
            load.all()
            .group_by("tbname", w=pl.col("ts") // 20_000 * 20_000)
            .agg(c=pl.len().cast(pl.Int64))
        )
        found = self.ask("SELECT w, c FROM second_r")
        self.same(found, grouped.select(pl.col("w").cast(found.schema["w"]), "c"), "second")


class Notifications(Check):
    """Window events: exactly once and in order by resume token, at least once with a stable
    messageId to a target of NOTIFY.
    """

    name = "notifications"

    def setup(self) -> None:
        self._resources = ExitStack()
        self._receiver = Receiver()
        self._receiver.up()
        self._resources.callback(self._receiver.down)
        notify = f"NOTIFY ('{self._receiver.url}') ON ('WINDOW_CLOSE') ON_FAILURE PAUSE"
        self.stream(
            "told",
            "SELECT _wstart AS w, count(*) AS c FROM m PARTITION BY tbname INTERVAL(5s)",
            "TRIGGER WINDOW_CLOSE",
            notify=notify,
        )
        self._subscription = self.client.subscribe(
            f"{self.db}.told", what="events", patience=300
        ).open()
        self._seen: list[tuple[str, int]] = []
        self._thread = threading.Thread(target=self._listen, name="subscriber", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with suppress(PenstockError, OSError):
            for update in self._subscription:
                self._seen += [
                    (e["tableName"], e["windowStart"])
                    for e in update.items
                    if e["eventType"] == "WINDOW_CLOSE"
                ]

    @contextmanager
    def meanwhile(self) -> Iterator[None]:
        """The target is away while the fault happens; what it misses waits for it."""
        self._receiver.down()
        try:
            yield
        finally:
            self._receiver.up()

    def verify(self, load: Load) -> None:
        found = self.ask("SELECT tbname AS t, w FROM told_r")
        expected = Counter((t, int(w.timestamp() * 1000)) for t, w in found.iter_rows())
        eventually(lambda: len(self._seen) >= sum(expected.values()), 30)
        assert Counter(self._seen) == expected, "a subscriber sees each window once"
        assert _in_order(self._seen), "a subscriber sees the windows of a table in their order"

        def told() -> list[tuple[str, int]]:
            messages = {m["messageId"]: m for m in list(self._receiver.messages)}.values()
            return [
                (e["tableName"], e["windowStart"])
                for m in messages
                for s in m["streams"]
                for e in s["events"]
            ]

        eventually(lambda: Counter(told()) == expected, 30)
        assert _in_order(told()), "a target is told of the windows of a table in their order"

    def close(self) -> None:
        with suppress(Exception):
            self._subscription.close()
        with suppress(Exception):
            self._resources.close()


def _in_order(events: list[tuple[str, int]]) -> bool:
    last: dict[str, int] = {}
    for table, start in events:
        if start <= last.get(table, -1):
            return False
        last[table] = start
    return True


class Once(Check):
    """In the log itself no result is there twice, and the catalog has one writer an epoch. Looks at
    what the other checks' streams left.
    """

    name = "published once"

    def setup(self) -> None:
        self.stream(
            "closed",
            "SELECT _wstart AS w, count(*) AS c FROM m PARTITION BY tbname INTERVAL(5s)",
            "TRIGGER WINDOW_CLOSE",
        )

    def verify(self, load: Load) -> None:
        bootstrap = self.world.mesh.kafka_bootstrap
        with CatalogReader(bootstrap, client_id="faults") as catalog:
            tables = [t for t in catalog.catalog.tables(self.db) if t.result_of is not None]
        values = read_topic(bootstrap, names.ingest_topic(self.db))
        for table in tables:
            codec = TableCodec(table)
            for place, all_values in values.items():
                own = [
                    v
                    for v, i in zip(all_values, schema_ids(all_values), strict=True)
                    if i in table.schema_ids
                ]
                decoded = codec.decode(own)
                highest: dict[str, tuple[int, int]] = {}
                for producer, offset, ordinal in decoded.records.select(
                    "producer", "offset", "ordinal"
                ).iter_rows():
                    assert (offset, ordinal) > highest.get(producer, (-1, -1)), (
                        f"{table.name}[{place}]: {producer} again at {offset}"
                    )
                    highest[producer] = (offset, ordinal)
                if table.name == "closed_r":
                    assert decoded.rows.height == decoded.rows.unique(["tbname", "w"]).height, (
                        "a closed window is published once"
                    )
                    assert all(
                        partition(t, table.partitions) == place
                        for t in decoded.rows["tbname"].unique()
                    )
        epochs = [
            entries.read(v).epoch for v in read_topic(bootstrap, names.CATALOG, committed=True)[0]
        ]
        assert epochs == sorted(epochs), "a writer of the catalog wrote after its successor"


def read_topic(bootstrap: str, topic: str, *, committed: bool = False) -> dict[int, list[bytes]]:
    """The values of a whole topic, by partition."""
    admin = Admin(bootstrap)
    ends = {
        tp: e
        for tp, e in admin.end_offsets((topic, p) for p in range(admin.topics()[topic])).items()
        if e
    }
    starts = admin.start_offsets(ends)
    left = {tp: starts[tp] for tp, e in ends.items() if e > starts[tp]}
    found: dict[int, list[bytes]] = {p: [] for _, p in ends}
    with Reader(bootstrap, left, client_id="faults", committed=committed, ends=True) as reader:
        while not set(left) <= reader.at_end.keys():
            for batch in reader.read(50_000, 1.0):
                found[batch.partition] += [v for v in batch.values if v is not None]
    return found


CHECKS: tuple[type[Check], ...] = (
    Rows,
    Windows,
    Groups,
    Chain,
    Notifications,
    Once,
    StreamTables,
    External,
)
