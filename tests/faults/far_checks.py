"""Checks of what is neither a stream nor its source: tables with copies on several nodes, and rows
that travel to another deployment.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, suppress

import polars as pl

import penstock
from penstock.errors import PenstockError
from tests.faults.check import Check
from tests.faults.load import Load
from tests.faults.table_load import GROUP
from tests.faults.verdict import two_leaders
from tests.stack.conftest import eventually
from tests.stack.federation_kit import clause, settings_of

_COLUMNS = ["ts", "n"]
_TYPES = ["TIMESTAMP", "BIGINT"]
_EVERY_SECONDS = 0.05


class StreamTables(Check):
    """A table of a raft group: what its producer was told is in it comes to a subscriber, each row
    once and in order.
    """

    name = "HA tables"

    def setup(self) -> None:
        self._table = f"{self.db}.trades"
        self._halt = threading.Event()
        self._resources = ExitStack()
        self._acked: list[int] = []
        self._seen: list[int] = []
        mesh = self.world.mesh
        client = self._resources.enter_context(
            penstock.connect(
                mesh.gateway_url,
                password=mesh.password,
                options=penstock.ConnectionOptions(timeout=180),
            )
        )
        client.ha.create(GROUP, penstock.table(_COLUMNS, _TYPES), self._table, 10_000)
        subscription = client.ha.subscribe(
            self._table,
            self._take,
            self.db,
            offset=0,
            options=penstock.SubscriptionOptions(msg_as_table=True, reconnect=True),
        )
        self._resources.callback(subscription.close)
        self._handle = client.ha.table(self._table)
        self._resources.callback(self._handle.close)
        self._thread = threading.Thread(target=self._write, name="producer", daemon=True)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._halt.wait(_EVERY_SECONDS):
            number += 1
            # of a write without an answer nobody knows whether it is there: it may be, once
            with suppress(PenstockError):
                self._handle.append({"ts": [time.time_ns() // 10**6], "n": [number]})
                self._acked.append(number)

    def _take(self, message: penstock.Message) -> None:
        self._seen += message.table.column("n").to_pylist()

    def verify(self, load: Load) -> None:
        self._halt.set()
        self._thread.join(120)
        assert self._acked, "no row was acked"
        eventually(lambda: set(self._acked) <= set(self._seen), 30)
        assert self._seen == sorted(set(self._seen)), "a subscriber sees each row once, in order"
        assert not two_leaders(self.world.mesh.kafka_bootstrap, self._table), (
            "two leaders wrote in one epoch"
        )

    def close(self) -> None:
        with suppress(Exception):
            self._halt.set()
            self._resources.close()


class External(Check):
    """Over a link: a view carries the rows to a table that an external stream stands for, and a
    window reads them back from there.
    """

    name = "external streams"

    def setup(self) -> None:
        self.client.execute(
            "CREATE STABLE far (ts TIMESTAMP, v DOUBLE, k INT, state INT) TAGS (site VARCHAR(8))",
            database=self.db,
        )
        self.client.execute(
            f"CREATE EXTERNAL STREAM away {clause(settings_of(self.world.mesh, f'{self.db}.far'))}",
            database=self.db,
        )
        self.client.execute(
            "CREATE MATERIALIZED VIEW carried INTO away AS SELECT * FROM m", database=self.db
        )
        query = "SELECT _wstart AS w, count(*) AS c, sum(v) AS s FROM away PARTITION BY tbname AS src INTERVAL(5s)"
        self.stream("returned", query, "TRIGGER AT_ONCE", tags="TAGS (src VARCHAR(16))")

    def verify(self, load: Load) -> None:
        sent = load.all()
        eventually(lambda: self.ask("SELECT count(*) FROM far").item() >= sent.height, 30)
        found = self.ask("SELECT tbname, ts, v, k, state, site FROM far")
        self.same(
            found,
            sent.select("tbname", pl.col("ts").cast(found.schema["ts"]), "v", "k", "state", "site"),
            "rows of far",
        )
        grouped = sent.group_by("tbname", w=pl.col("ts") // 5000 * 5000).agg(
            c=pl.len().cast(pl.Int64), s=pl.col("v").sum()
        )

        def came_back() -> bool:
            back = self.ask("SELECT src, w, c, s FROM returned_r")
            self.same(
                back,
                grouped.select("tbname", pl.col("w").cast(back.schema["w"]), "c", "s"),
                "windows over the link",
            )
            return True

        eventually(came_back, 30)

    def drop(self) -> None:
        super().drop()
        self.execute("DROP MATERIALIZED VIEW IF EXISTS carried")
        self.execute("DROP EXTERNAL STREAM IF EXISTS away")
