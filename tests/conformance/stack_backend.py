"""Cases through the whole mesh: real Kafka, Redis, Spark and the SQL front end.

All cases run side by side in one mesh with a manual clock, each in a database of its own and twice:
with one partition, and with three and a barrier after every event. `run` hands out what came of it.
Drained means that a barrier record came back.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
import traceback
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import redis
from confluent_kafka import KafkaException

from penstock import names
from penstock.bus import Publisher
from penstock.catalog.reader import CatalogReader
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh, running_mesh
from penstock.records import ControlRecord, encode
from penstock.sql.plan import StreamPlan
from tests.conformance.case import Case, Outcome, Row, tags_of
from tests.conformance.listener import Listener

#: cases played at the same time; every database costs the mesh a query and a worker per partition
WIDTH = 6
#: with kills all cases of a group are open at the same time, and each start of the driver starts
#: all their queries
KILL_WIDTH = 24
_TIMEOUT = httpx.Timeout(300.0)
#: its group: the options
_CREATE_DATABASE = re.compile(r"CREATE DATABASE \w+(.*)", re.IGNORECASE | re.DOTALL)
#: a busy machine is slow, not wrong
PATIENT = {"PENSTOCK_GATEWAY_LIVE_TIMEOUT": "180"}


class Refused(Exception):
    """The front end refused a statement."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key


class StackBackend:
    """Starts a mesh and plays the cases; `run` waits for one of them."""

    def __init__(self, *, kill: int, cases: Sequence[Case]) -> None:
        self._exit = ExitStack()
        directory = Path(
            self._exit.enter_context(tempfile.TemporaryDirectory(prefix="penstock-conformance-"))
        )
        self._mesh = self._exit.enter_context(
            running_mesh(directory / "mesh", clock="manual", environment=PATIENT)
        )
        self._listener = self._exit.enter_context(Listener())
        self._catalog = self._exit.enter_context(
            CatalogReader(self._mesh.kafka_bootstrap, client_id="conformance")
        )
        self._publisher = self._exit.enter_context(
            Publisher(self._mesh.kafka_bootstrap, client_id="conformance")
        )
        # a group begins when all of the one before have a worker, and is half fed when those have
        # ended: the pool takes cases in order
        width = KILL_WIDTH if kill else WIDTH
        groups = [cases[i : i + width] for i in range(0, len(cases), width)]
        self._killers = [Killer(self._mesh, kill, len(group)) for group in groups]
        self._pool = ThreadPoolExecutor(max_workers=width)
        self._outcomes: dict[str, Future[Outcome]] = {
            c.id: self._pool.submit(self._both, i, c, self._killers[i // width])
            for i, c in enumerate(cases)
        }

    def run(self, case: Case) -> Outcome:
        """See `Backend`."""
        return self._outcomes[case.id].result()

    def close(self) -> None:
        """Stop the mesh."""
        self._pool.shutdown(cancel_futures=True)
        if any(killer.wanted for killer in self._killers):
            # so often in the middle of each case; of cases that are refused there is no middle
            killed = [killer.killed for killer in self._killers if killer.killed]
            print(f"killed_mid={min(killed, default=0)} groups={len(killed)}")
        self._exit.close()

    def _both(self, number: int, case: Case, killer: Killer) -> Outcome:
        try:
            first = self._play(f"c{number}_1", case, killer, partitions=1)
            if killer.wanted:
                return first
            second = self._play(f"c{number}_3", case, killer, partitions=3)
        except Exception as error:
            return Outcome(
                case.id, crash=f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
            )
        finally:
            killer.done()
        if _differ(first, second):
            first.error = "runs_differ"
            first.crash = f"with three partitions: {json.dumps(second.to_json())[:1500]}"
        return first

    def _play(self, database: str, case: Case, killer: Killer, *, partitions: int) -> Outcome:
        outcome = Outcome(case.id)
        with httpx.Client(
            base_url=self._mesh.gateway_url,
            auth=(self._mesh.user, self._mesh.password),
            timeout=_TIMEOUT,
        ) as http:
            play = _Play(self, http, database, case, partitions, killer)
            try:
                play.run(outcome)
            except Refused as refusal:
                outcome.error = refusal.key
            finally:
                play.drop()
        return outcome


class Killer:
    """Kills the Spark driver while the cases of a group are half fed."""

    def __init__(self, mesh: RunningMesh, wanted: int, cases: int) -> None:
        self.wanted = wanted
        self._mesh = mesh
        self._left = cases
        self._lock = threading.Condition()
        self._half = 0
        self.killed = 0

    def half_fed(self) -> None:
        """A case has had half of its events: waits until all are there and the driver has been
        killed.
        """
        if not self.wanted:
            return
        with self._lock:
            self._half += 1
            self._lock.notify_all()
            self._lock.wait_for(lambda: self._half >= self._left or self.killed, timeout=600)
            if not self.killed:
                self._kill_all()
                self._lock.notify_all()

    def _kill_all(self) -> None:
        for _ in range(self.wanted):
            pid = self._mesh.kill("spark")
            self.killed += 1
            self._mesh.wait_ready("spark", not_pid=pid, seconds=300)

    def done(self) -> None:
        """A case ended (perhaps before its half): nobody waits for it."""
        with self._lock:
            self._left -= 1
            self._lock.notify_all()


class _Play:
    """One case in one database."""

    def __init__(
        self,
        backend: StackBackend,
        http: httpx.Client,
        database: str,
        case: Case,
        partitions: int,
        killer: Killer,
    ) -> None:
        self.backend = backend
        self.http = http
        self.database = database
        self.case = case
        self.partitions = partitions
        self.killer = killer
        self.clock = case.clock_start
        self.path = f"/{database}"

    def run(self, outcome: Outcome) -> None:
        """Play all events and note what came out."""
        options, tables = _of_home(self.case.tables)
        self.sql(
            f"CREATE DATABASE {self.database} PARTITIONS {self.partitions}{options}", database=None
        )
        for statement in tables:
            self.sql(statement)
        if not any(e[0] == "CREATE_STREAM" for e in self.case.events):
            self.create()
        half = len(self.case.events) // 2
        for i, event in enumerate(self.case.events):
            if i == half:
                self.killer.half_fed()
            self.event(event, outcome)
            if self.partitions > 1:
                self.drain()
        self.drain()
        outcome.rows = self.rows()
        outcome.tables = self.children()
        outcome.notify = self.notifications()

    def event(self, event: tuple[Any, ...], outcome: Outcome) -> None:
        """Play one event."""
        kind = event[0]
        if kind == "BATCH":
            self.insert([(t, r) for t, r in event[1]])
        elif len(event) == 2 and isinstance(event[1], dict):
            self.insert([(kind, event[1])])
        elif kind == "CREATE_STREAM":
            self.create()
        elif kind == "SNAPSHOT":
            self.drain()
            outcome.snapshots.append(self.rows())
        elif kind == "ADVANCE":
            self.clock += event[1]
            self.tick()
        elif kind == "DELETE":
            time = self.time_column(event[1])
            self.sql(
                f"DELETE FROM {event[1]} WHERE `{time}` >= {event[2]} AND `{time}` <= {event[3]}"
            )
        elif kind in ("PAUSE", "RESUME"):
            self.sql(
                f"{kind} STREAM {self.stream_name()}{' IGNORE UNTREATED' if len(event) > 1 else ''}"
            )
        else:
            raise ValueError(f"unknown event {kind}")

    def create(self) -> None:
        """The statement under test; notifications come to our own listener."""
        own = self.backend._listener.address
        text = re.sub(r"(wss?)://[^'\"]*", lambda _: f"ws://{own}{self.path}", self.case.stream)
        self.sql(text)
        self.tick()

    def stream_name(self) -> str:
        found = re.search(
            r"CREATE\s+STREAM\s+(?:IF\s+NOT\s+EXISTS\s+)?(\S+)", self.case.stream, re.IGNORECASE
        )
        assert found is not None
        return found[1]

    def plan(self) -> StreamPlan:
        """The stream's plan, from the catalog."""
        name = self.stream_name().rpartition(".")[2].strip("`")
        found = self.backend._catalog.wait_for(
            lambda c: c.stream(self.database, name) is not None
        ).stream(self.database, name)
        assert found is not None
        return found.plan

    def tick(self) -> None:
        """Move processing time on every partition of the database."""
        record = encode(ControlRecord("tick", time=self.clock))
        topic = names.ingest_topic(self.database)
        for sent in [
            self.backend._publisher.publish(topic, record, partition=p)
            for p in range(self.partitions)
        ]:
            sent.result(30)

    def time_column(self, table: str) -> str:
        catalog = self.backend._catalog.catalog
        found = catalog.table(self.database, table)
        child = catalog.child(self.database, table)
        found = catalog.table_by_id(child.stable_id) if child is not None else found
        return found.time_column if found is not None else "ts"

    def insert(self, rows: list[tuple[str, Row]]) -> None:
        """One write: one statement, rows in order."""
        parts = []
        for table, row in rows:
            columns = {self.time_column(table) if k == "ts" else k: v for k, v in row.items()}
            parts.append(
                f"{table} ({', '.join(f'`{c}`' for c in columns)}) VALUES ({', '.join(_literal(v) for v in columns.values())})"
            )
        self.sql("INSERT INTO " + " ".join(parts))

    def drain(self) -> None:
        """Barriers through the source and what flows from it."""
        answer = self.http.post("/v1/drain", params={"db": self.database, "depth": 1})
        if answer.status_code != 200:
            raise RuntimeError(f"drain: {answer.text[:600]}")

    def rows(self) -> list[Row]:
        """The result table by partition values, then first column, without the group id."""
        plan = self.plan()
        target = plan.target
        columns = [c.name for c in target.columns]
        tags, shown = tags_of(target)
        keyed = {o.name for o in plan.outputs if o.sql.strip("`").startswith("_k")}
        parts = [
            c.name
            for c, origin in zip(target.columns, target.column_of, strict=True)
            if origin in keyed
        ] + tags
        listed = ", ".join(f"`{c}`" for c in (*columns, *tags))
        found = self.query(
            f"SELECT tbname AS penstock_child, {listed} FROM `{target.database}`.`{target.table}`"
        )

        def rank(row: Row) -> tuple[Any, ...]:
            order = [
                (row[p] is not None, str(type(row[p])), row[p] if row[p] is not None else 0)
                for p in parts
            ]
            return order, row["penstock_child"] if not parts else "", row[columns[0]]

        return [{c: row[c] for c in (*columns, *shown)} for row in sorted(found, key=rank)]

    def children(self) -> list[str]:
        target = self.plan().target
        return sorted(
            {
                r["c"]
                for r in self.query(
                    f"SELECT DISTINCT tbname AS c FROM `{target.database}`.`{target.table}`"
                )
            }
        )

    def notifications(self) -> list[Row]:
        """Events that our listener got for this case; a NOTIFY stream's come with the drain that
        asks the notifier too.
        """
        return self.backend._listener.events(self.path)

    def query(self, text: str) -> list[Row]:
        """Rows with times as epoch integers."""
        answer = self.http.post(
            "/v1/query",
            json={"sql": text, "database": self.database, "timezone": self.case.timezone},
            headers={"Accept": "application/vnd.apache.arrow.stream"},
        )
        self._check(answer)
        table = pa.ipc.open_stream(answer.content).read_all()
        fields = [
            pa.field(f.name, pa.int64()) if pa.types.is_timestamp(f.type) else f
            for f in table.schema
        ]
        rows: list[Row] = table.cast(pa.schema(fields)).to_pylist()
        return rows

    def sql(self, text: str, database: str | None = "") -> None:
        """Execute a statement.

        Raises:
            Refused: with its key.
        """
        where = self.database if database == "" else database
        answer = self.http.post(
            "/v1/query", json={"sql": text, "database": where, "timezone": self.case.timezone}
        )
        self._check(answer)

    def _check(self, answer: httpx.Response) -> None:
        if answer.status_code >= 400:
            body = (
                answer.json()
                if answer.headers.get("content-type", "").startswith("application/json")
                else {}
            )
            error = body.get("error", body)
            raise Refused(
                str(error.get("code", answer.status_code)),
                str(error.get("message", answer.text[:300])),
            )

    def drop(self) -> None:
        """Give the mesh its workers back."""
        try:
            for stream in self.backend._catalog.catalog.streams(self.database):
                self.sql(f"DROP STREAM IF EXISTS `{stream.name}`")
            self.sql(f"DROP DATABASE IF EXISTS {self.database}", database=None)
        except (Refused, httpx.HTTPError, PenstockError, KafkaException, redis.RedisError) as error:
            print(f"could not drop {self.database}: {error}")


def _of_home(statements: Sequence[str]) -> tuple[str, list[str]]:
    """Return the options of the database that *statements* make and use, and the other statements.

    A case is played several times at once, each time in a database of its own: its name is not
    the case's.
    """
    options = ""
    rest = []
    for statement in statements:
        made = _CREATE_DATABASE.match(statement)
        if made is not None:
            options = made.group(1)
        elif not statement.upper().startswith("USE "):
            rest.append(statement)
    return options, rest


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return repr(value)


def _differ(first: Outcome, second: Outcome) -> bool:
    """Whether the two runs of a case gave different things; events may come in another order
    between child tables.
    """
    plain = (first.rows, first.tables, first.error, first.snapshots) == (
        second.rows,
        second.tables,
        second.error,
        second.snapshots,
    )
    return not plain or _unordered(first.notify) != _unordered(second.notify)


def _unordered(events: list[Row]) -> list[str]:
    return sorted(
        json.dumps({k: v for k, v in e.items() if k != "eventTime"}, sort_keys=True) for e in events
    )
