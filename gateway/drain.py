"""POST /v1/drain?db=…&depth=n: returns when everything written so far has gone through.

Owns the rounds of barriers. One round: a barrier into every partition of the topics concerned, then
a wait until scan, exchange and store have reported it. Results of a stream come behind the barrier
that pushed them out, so a chain of n streams takes n rounds and one more for the store. A stream
that fills its history keeps what comes meanwhile, barriers or not: a round waits until that has
come out, too. Then one barrier behind the window events: the notifier reports it when NOTIFY's
targets have them all (one that is down holds it back if its streams are ON_FAILURE PAUSE). After
the time-out it gives up and says who is missing.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterable

import redis
from aiohttp import web

from gateway import http
from gateway.children import text
from gateway.ddl.definer import Definer
from gateway.guard import RequestGuard, user_of
from gateway.intake import database_of
from penstock import names
from penstock.auth.access import Access
from penstock.coordination.redis_link import ask
from penstock.errors import BusError, SchemaError
from penstock.records import ControlRecord

MAX_DEPTH = 32


class Drain:
    """The handler."""

    def __init__(self, definer: Definer, client: redis.Redis, access: Access) -> None:
        self._definer = definer
        self._redis = client
        self._access = access

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.post("/v1/drain", guard.wrap(self._drain))]

    async def _drain(self, request: web.Request) -> web.Response:
        depth = request.query.get("depth", "1")
        if not depth.isdecimal() or not 0 <= int(depth) <= MAX_DEPTH:
            raise SchemaError(f"depth is 0 to {MAX_DEPTH}", code="E_BODY")
        database = request.query.get("db")
        user = user_of(request)
        home = self._definer.catalog.database(database) if database is not None else None
        if home is None or not self._access.sees(user, home):
            self._access.require(user, "WRITE", None)
        topics = self._topics(database)
        await asyncio.to_thread(self.through, topics, int(depth))
        await asyncio.to_thread(self._await_notifications, topics)
        return http.json_response({"drained": sorted(topics), "rounds": int(depth) + 1})

    def through(self, topics: dict[str, int], depth: int) -> None:
        """Return when what is written to *topics* so far has gone through chains of *depth*
        streams. Blocks.
        """
        for _ in range(depth + 1):
            self._round(topics)
            if self._await_history(topics):
                self._round(topics)

    def _topics(self, database: str | None) -> dict[str, int]:
        """Return the topics of a database, and those that results of its streams flow into."""
        catalog = self._definer.catalog
        if database is None:
            return catalog.topics()
        home = database_of(catalog, database)
        topics = {home.topic: home.partitions} | {
            t.topic: t.partitions for t in catalog.tables(home.name)
        }
        found = True
        while found:
            found = False
            for stream in catalog.streams():
                target = catalog.table_by_id(stream.plan.target.table_id)
                if (
                    target is not None
                    and target.topic not in topics
                    and topics.keys() & catalog.source_topics(stream.plan).keys()
                ):
                    topics[target.topic] = target.partitions
                    found = True
        return topics

    def _round(self, topics: dict[str, int]) -> None:
        # an id for each topic: the exchange tells it apart by that
        waiting: dict[str, set[str]] = {}
        for topic, partitions in topics.items():
            barrier = secrets.token_hex(8)
            waiting[barrier] = set(self._fields(topic, partitions))
            self._definer.send(topic, range(partitions), ControlRecord("barrier", id=barrier))
        self._wait(waiting)

    def _await_history(self, topics: dict[str, int]) -> bool:
        """Wait until streams over these topics have filled their history; tell whether one was at
        it.
        """
        found = False
        while before := self._filling(topics):
            found = True
            try:
                self._definer.watch.until(
                    lambda: not self._filling(topics),
                    "a stream is still filling its history",
                    "SHOW STREAMS says how far it is",
                )
            except BusError:
                # it takes as long as there is history; only what moves no more is waited for in
                # vain
                if self._filling(topics) == before:
                    raise
        return found

    def _filling(self, topics: dict[str, int]) -> dict[tuple[int, str], str]:
        """Return how far streams over these topics are with their history, by stream and field of
        its status.
        """
        if not self._definer.watch.wait_for_jobs:
            return {}
        catalog = self._definer.catalog
        streams = [
            s
            for s in catalog.streams()
            if s.plan.fill_history and topics.keys() & catalog.source_topics(s.plan).keys()
        ]
        found = {}
        for stream in streams:
            said = ask(lambda s=stream: self._redis.hgetall(names.stream_status(s.id)))  # type: ignore[misc]
            found.update(
                {
                    (stream.id, text(f)): text(v)
                    for f, v in said.items()
                    if text(f).startswith(names.FILLING)
                }
            )
        return found

    def _await_notifications(self, topics: dict[str, int]) -> None:
        """Wait until NOTIFY's targets have the events of streams over these topics; without a
        notifier there is nothing to wait for.
        """
        catalog = self._definer.catalog
        streams = []
        for stream in catalog.streams():
            read = topics.keys() & catalog.source_topics(stream.plan).keys()
            if stream.plan.notify is not None and stream.plan.notify.urls and read:
                streams.append(stream.id)
        if not streams or not self._alive(names.notifier_heartbeat()):
            return
        barrier = secrets.token_hex(8)
        partitions = range(names.BUILT_IN_TOPICS[names.EVENTS])
        self._definer.send(
            names.EVENTS,
            partitions,
            ControlRecord("barrier", id=barrier, body=json.dumps({"streams": streams})),
        )
        self._wait({barrier: {f"notifier:{names.EVENTS}:{p}" for p in partitions}})

    def _alive(self, key: str) -> bool:
        return bool(ask(lambda: self._redis.exists(key)))

    def _wait(self, waiting: dict[str, set[str]]) -> None:
        """Wait until every barrier has all its fields."""

        def done() -> bool:
            for barrier, fields in waiting.items():
                if fields:
                    fields -= {text(k) for k in self._redis.hkeys(names.barrier(barrier))}
            return not any(waiting.values())

        try:
            self._definer.watch.until(
                done, "not everything is through yet", "`penstock status` shows who lags"
            )
        except BusError as error:
            missing = sorted(set().union(*waiting.values()))[:8]
            raise BusError(
                error.message,
                code=error.code,
                detail=f"{error.detail}; missing {', '.join(missing)}",
                hint=error.hint,
            ) from None

    def _fields(self, topic: str, partitions: int) -> Iterable[str]:
        scanned = self._definer.watch.wait_for_jobs and self._definer.catalog.is_scanned(topic)
        readers = ("scan", "store") if scanned else ("store",)
        for reader in readers:
            yield from (f"{reader}:{topic}:{p}" for p in range(partitions))
        if scanned:
            yield from (
                f"exchange:{names.EXCHANGE}:{p}"
                for p in range(names.BUILT_IN_TOPICS[names.EXCHANGE])
            )
