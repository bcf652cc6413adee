"""One shard of a materialized view: rows from the source's link to the target's, in order, each exactly once, for as long as it lives.

Both ends are links, the deployment's own tables included, so every pairing of local and remote is one piece of code. What the target has
is known from the target's own log: every row goes with its place in the source's log. The note of how far the pump has come is only a
lower bound for what it reads again. A link that breaks is made anew after a pause that doubles; meanwhile rows wait where they are, in
the source's log.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from penstock import names
from penstock.cursor import TokenError
from penstock.errors import PenstockError, RemoteError
from penstock.link.client import Address, Channel, Link, LinkLost, connect_any
from penstock.link.description import Description
from penstock.log import get
from penstock.partition import partition as partition_number
from penstock.partition import partition_of
from services.federation.persistent import Persistent
from services.federation.settings import FederationSettings

log = get(__name__)


@dataclass(frozen=True)
class Place:
    """A table of some deployment: replicas of each shard, and its name there."""

    shards: tuple[tuple[Address, ...], ...]
    database: str
    name: str


@dataclass(frozen=True)
class Job:
    """What one pump does: `sql` is in the source's own names."""

    view: str
    view_id: int
    created: int
    shard: int
    source: tuple[Address, ...]
    sql: str
    database: str
    timezone: str
    target: Place
    begin: str
    #: id of this deployment
    deployment: str
    #: the source has one shard only
    alone: bool = True


class Pump(Persistent):
    """Runs until `stop`."""

    def __init__(self, job: Job, settings: FederationSettings, directory: Path) -> None:
        super().__init__(f"pump-{job.view}-{job.shard}", settings, view=job.view, shard=job.shard)
        self.job = job
        self._note = directory / f"{job.view_id}-{job.created}-{job.shard}.json"
        self._noted_at = 0.0

    def forget(self) -> None:
        """The view is gone: so is the note of how far it had come."""
        self._note.unlink(missing_ok=True)

    def passes(self, error: PenstockError) -> bool:
        return isinstance(error, LinkLost) or error.code in ("E_TIMEOUT", "E_BUS", "E_FENCED", "E_KAFKA_DOWN", "E_OVERLOAD")

    # ---------------------------------------------------------------- one connection

    def work(self) -> None:
        job, wait = self.job, self._settings.connect_seconds
        with connect_any(job.source, timeout=wait, ping_seconds=self._settings.ping_seconds) as source:
            targets = _Targets(job, wait, self._settings.ping_seconds)
            try:
                self._carry(source, targets)
            finally:
                targets.close()

    def _carry(self, source: Link, targets: _Targets) -> None:
        job = self.job
        channel, opened = self._subscribe(source)
        description = Description.from_json(opened["table"])
        token = str(opened["token"])
        #: frames without an ack, oldest first, each with the token that holds once it and all before it are acked
        under_way: deque[tuple[Channel, str | None]] = deque()
        targets.check()
        self.report.state, self.report.error = "running", ""
        while not self._halt.is_set():
            message = channel.get(0.0 if under_way else 0.2)
            if message is None and under_way:
                token = self._acked(under_way, 0.05) or token
            while under_way and (len(under_way) >= self._settings.window or self._ready(under_way[0][0])):
                token = self._acked(under_way, self._settings.ack_seconds) or token
            if message is not None:
                given = message.header.get("token")
                if message.kind == "schema":
                    description = Description.from_json(message.header["table"])
                if message.rows is not None:
                    producer = names.view_producer(
                        job.deployment, job.created, job.view_id, job.shard, description.id, int(message.header["partition"])
                    )
                    sent = targets.send(producer, message.rows, stable=description.is_stable)
                    under_way.extend((c, None) for c in sent[:-1])
                    under_way.append((sent[-1], given))
                elif message.kind == "delete" and (what := targets.deletion(description, message.header)) is not None:
                    producer = names.view_producer(
                        job.deployment, job.created, job.view_id, job.shard, description.id, int(message.header["partition"])
                    )
                    sent = targets.delete(producer, what)
                    under_way.extend((c, None) for c in sent[:-1])
                    under_way.append((sent[-1], given))
                elif given is not None and not under_way:
                    token = str(given)
                self.report.lag = message.header.get("behind", self.report.lag)
            if not under_way and not self.report.lag:
                self.report.level_at = time.time()
            self._keep(token)
        while under_way:
            token = self._acked(under_way, self._settings.ack_seconds) or token
        self._keep(token, now=True)

    def _subscribe(self, source: Link) -> tuple[Channel, dict[str, object]]:
        """From where the note says; a source that was made anew is read from its beginning."""
        job = self.job
        start = self._noted() or job.begin
        for start_at in (start, "earliest"):
            channel = source.subscribe(job.sql, job.database, start=start_at, positions=True, timezone=job.timezone)
            try:
                return channel, channel.expect("subscribed", self._settings.ack_seconds).header
            except PenstockError as error:
                if error.code != TokenError.code or start_at == "earliest":
                    raise
                log.warning("the source was made anew; the view begins at its beginning", view=job.view)
        raise AssertionError("unreachable")

    @staticmethod
    def _ready(channel: Channel) -> bool:
        return channel.waiting

    def _acked(self, under_way: deque[tuple[Channel, str | None]], timeout: float) -> str | None:
        """Take the oldest frame's ack, if it comes in time; the token that holds now."""
        channel, token = under_way[0]
        message = channel.get(timeout)
        if message is None:
            if timeout >= self._settings.ack_seconds:
                raise RemoteError("the target does not confirm rows", code="E_TIMEOUT", detail=f"within {timeout:g} s")
            return None
        under_way.popleft()
        self.report.rows += int(message.header["rows"])
        return token

    # ---------------------------------------------------------------- how far it has come

    def _noted(self) -> str | None:
        try:
            held = json.loads(self._note.read_text(encoding="utf-8"))
            self.report.rows = max(self.report.rows, int(held["rows"]))
            return str(held["token"])
        except (FileNotFoundError, ValueError, KeyError):
            return None

    def _keep(self, token: str, now: bool = False) -> None:
        if not now and time.monotonic() - self._noted_at < self._settings.checkpoint_seconds:
            return
        self._noted_at = time.monotonic()
        body = json.dumps({"token": token, "rows": self.report.rows})
        self._note.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._note.with_suffix(".new")
        fresh.write_text(body, encoding="utf-8")
        os.replace(fresh, self._note)


class _Targets:
    """Channels to the target's shards, one for each producer; opened when first used."""

    def __init__(self, job: Job, timeout: float, ping_seconds: float) -> None:
        self._job, self._timeout, self._ping = job, timeout, ping_seconds
        self._links: dict[int, Link] = {}
        self._channels: dict[tuple[int, str], Channel] = {}
        self._target: Description | None = None

    def check(self) -> None:
        """Reach every shard now, so that a target that is away is known before there are rows."""
        for shard in range(len(self._job.target.shards)):
            self._link(shard)

    def _link(self, shard: int) -> Link:
        if shard not in self._links:
            self._links[shard] = connect_any(self._job.target.shards[shard], timeout=self._timeout, ping_seconds=self._ping)
        return self._links[shard]

    def send(self, producer: str, rows: pa.Table, *, stable: bool) -> list[Channel]:
        """Send rows on their way; the channel of each frame (an ack will come for each)."""
        shards = len(self._job.target.shards)
        if shards == 1:
            return [self._send(0, producer, rows)]
        by = pl.Series(rows.column("tbname")) if stable else pl.Series(rows.column("_time").cast(pa.int64()).cast(pa.string()))
        numbers = partition_of(by, shards)
        parts = [(shard, rows.filter(pa.array((numbers == shard).to_list()))) for shard in range(shards)]
        return [self._send(shard, producer, part) for shard, part in parts if part.num_rows]

    def deletion(self, source: Description, header: dict[str, Any]) -> dict[str, Any] | None:
        """What a DELETE in one partition of the source takes from the target, and no row more; None: it cannot be said over there.

        A source partition speaks for its own child tables only: rows of others may be on their way already, newer than the DELETE.
        """
        if self._target is None:
            self._target = self._link(0).describe(self._job.target.name, self._job.target.database)
        there, partition, tables = self._target, int(header["partition"]), header.get("tables")
        if (there.time_column.lower(), there.precision) != (source.time_column.lower(), source.precision) or not self._job.alone:
            return None
        if tables is not None:
            tables = [t for t in tables if partition_number(t, source.partitions) == partition]
        if tables == [] or (tables is None and (there.partitions != source.partitions or len(self._job.target.shards) > 1)):
            return None
        only = partition if tables is None else None
        return {"tables": tables, "partition": only, **{k: header[k] for k in ("low", "high", "offset")}}

    def delete(self, producer: str, what: dict[str, Any]) -> list[Channel]:
        """A DELETE of a range goes to every shard."""
        sent = []
        for shard in range(len(self._job.target.shards)):
            channel = self._channel(shard, producer)
            channel.send({"delete": what})
            sent.append(channel)
        return sent

    def _send(self, shard: int, producer: str, rows: pa.Table) -> Channel:
        channel = self._channel(shard, producer)
        channel.send({"seq": 0}, rows)
        return channel

    def _channel(self, shard: int, producer: str) -> Channel:
        channel = self._channels.get((shard, producer))
        if channel is None:
            channel = self._link(shard).append(self._job.target.name, self._job.target.database, producer=producer)
            channel.expect("opened", 60.0)
            self._channels[shard, producer] = channel
        return channel

    def close(self) -> None:
        for link in self._links.values():
            link.close()
