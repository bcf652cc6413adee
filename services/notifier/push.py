"""The NOTIFY clause: a Faust app that reads `penstock.events` and hands each record's message to
the deliveries of its targets.

Faust gives the group protocol (several notifiers share the partitions), the live reader and a table
with its changelog. In the table are the cursors of targets and, a second late, how far each
partition was taken (`intake.py`). A target's first cursor is written before that place moves on, so
after kill -9 the deliveries read again from Kafka whatever had not been confirmed. Refused here:
sockets (`delivery.py`), and what is in a message (`message.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import faust
import redis.asyncio
from redis.exceptions import RedisError

from penstock import names, tls
from penstock.access import Access
from penstock.bus import Admin, Publisher
from penstock.catalog.model import StreamEntry
from penstock.catalog.reader import CatalogReader
from penstock.clock import Clock, milliseconds
from penstock.errors import BusError, SchemaError
from penstock.feed import History, Slice
from penstock.health import Health
from penstock.log import get
from penstock.reach import Outbound
from penstock.records import ControlRecord, EventsRecord, decode
from penstock.targets import NOTIFY_HINT, AllowList
from services.notifier.backpressure import Backpressure
from services.notifier.cursor import Mark
from services.notifier.delivery import Surroundings, TargetDelivery, behind
from services.notifier.intake import EventIntake
from services.notifier.message import NotifyMessage, NotifyTarget, pack, targets_of
from services.notifier.metrics import PushMetrics
from services.notifier.settings import NotifierSettings
from services.notifier.standing import TargetStanding

_PARTITIONS = names.BUILT_IN_TOPICS[names.EVENTS]
_CATALOG_PATIENCE = 10.0
_BARRIER_SECONDS = 3600
_HEARTBEAT_SECONDS = 5
_REST_EVERY = 30
log = get(__name__)


class _Cursors(faust.Table[str, Any]):
    """A table that may be written at any time: its key says the partition."""

    def partition_for_key(self, key: Any) -> int:
        return NotifyTarget.of_key(str(key))[0]


# else it would talk under this module's name
_Cursors.logger = logging.getLogger("faust.cursors")


@dataclass(frozen=True)
class _Barrier:
    """Reported when these targets have all that came before it."""

    id: str
    partition: int
    offset: int
    targets: frozenset[NotifyTarget] | None


class Push:
    """One life of the Faust app: `run` returns when it broke, or is cancelled."""

    def __init__(
        self,
        settings: NotifierSettings,
        catalog: CatalogReader,
        health: Health,
        metrics: PushMetrics,
        clock: Clock,
        client: redis.asyncio.Redis,
        publisher: Publisher,
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._health = health
        self._clock = clock
        self._redis = client
        self._metrics = metrics
        self._backpressure = Backpressure(catalog, client, publisher)
        self._standing = TargetStanding(catalog, client, settings.instance)
        self._admin = Admin(settings.kafka_bootstrap, client_id="notifier-push")
        self._deliveries: dict[NotifyTarget, TargetDelivery] = {}
        self._live: dict[int, int] = {}
        #: places of partitions as the table has them
        self._saved: dict[int, int] = {}
        self._barriers: list[_Barrier] = []
        self._jobs: set[asyncio.Task[None]] = set()
        access = Access(lambda: catalog.catalog, settings.user)
        self._outbound = Outbound(settings, access, settings.notify_allow)
        #: streams whose maker may not notify anybody (any more)
        self._silent: set[int] = set()
        self._around = Surroundings(
            settings,
            AllowList(settings.notify_allow),
            self._outbound.own.holds,
            metrics,
            self._messages,
            self._history,
            lambda partition: self._live.get(partition, 0),
            self._save,
            self._settled,
            self._anywhere,
            self._named,
        )
        self._intake = EventIntake(
            self._route,
            lambda partitions: self._offsets(self._admin.end_offsets, partitions),
            self._history,
        )
        self._app = self._make_app()

    def _history(self, partition: int, offset: int) -> History:
        return History(
            self._settings.kafka_bootstrap, self._catalog, names.EVENTS, partition, offset
        )

    def _make_app(self) -> Any:
        settings = self._settings
        app = faust.App(
            names.NOTIFIER,
            broker=f"kafka://{settings.kafka_bootstrap}",
            store="memory://",
            Table=_Cursors,
            autodiscover=False,
            broker_credentials=_credentials(settings),
            web_enabled=False,
            datadir=str(settings.data_dir / "notifier"),
            loghandlers=[],
            # every topic is made by us: the broker makes none
            topic_allow_declare=False,
            topic_disable_leader=True,
            topic_partitions=_PARTITIONS,
            # a static member is back at once after a crash, without waiting for its old session to
            # run out
            consumer_group_instance_id=settings.instance,
            broker_session_timeout=10.0,
            broker_heartbeat_interval=2.0,
            broker_rebalance_timeout=10.0,
            broker_request_timeout=15.0,
            broker_commit_interval=1.0,
            stream_recovery_delay=0.0,
            consumer_auto_offset_reset="earliest",
            stream_buffer_maxsize=32,
        )
        events = app.topic(
            names.EVENTS, key_serializer="raw", value_serializer="raw", value_type=bytes
        )
        self._cursors = app.Table("cursors", partitions=_PARTITIONS)
        self._cursors.on_recover(self._recovered)
        app.on_partitions_revoked.connect(self._revoked)

        @app.agent(events)
        async def route(stream: Any) -> None:
            async for event in stream.events():
                await self._intake.live(event.message.partition, event.message.offset, event.value)

        return app

    async def run(self) -> None:
        """Deliver until cancelled or broken.

        Raises:
            BusError: Kafka can't be used.
        """
        loop = asyncio.get_running_loop()
        topics = {names.EVENTS: _PARTITIONS, names.NOTIFIER_CURSORS: _PARTITIONS}
        await loop.run_in_executor(None, self._admin.ensure_topics, topics)
        working = [asyncio.create_task(self._keep()), asyncio.create_task(self._intake.run())]
        try:
            await self._app.start()
            working.append(asyncio.create_task(self._app.wait()))
            # whichever ends first, all of it is begun again
            done, _ = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            raise BusError("the Faust app broke", detail=str(self._app.crash_reason))
        finally:
            self._health.ready("push", False, "not delivering")
            for task in working:
                task.cancel()
            await asyncio.gather(
                *working, *(c.stop() for c in self._deliveries.values()), return_exceptions=True
            )
            self._metrics.forget()
            await self._app.stop()

    # ---------------------------------------------------------------- partitions come and go

    async def _recovered(self) -> None:
        """Cursors are complete for the partitions that are ours: begin where the targets are."""
        mine = sorted(
            tp.partition for tp in self._app.assignor.assigned_actives() if tp.topic == names.EVENTS
        )
        ends = await self._offsets(self._admin.end_offsets, mine)
        starts = await self._offsets(self._admin.start_offsets, mine)
        self._live = {p: max(self._live.get(p, 0), ends[p]) for p in mine}
        places = {_place_key(p): p for p in range(_PARTITIONS)}
        wanted = {t for s in self._catalog.catalog.streams() for t in targets_of(s)}
        with contextlib.suppress(RedisError):
            await self._backpressure.recall(
                s for s in self._catalog.catalog.streams() if targets_of(s)
            )
        for key, body in sorted(self._cursors.items()):
            if key in places:
                continue
            partition, target = NotifyTarget.of_key(key)
            if target not in wanted:
                self._cursors.pop(key)
            elif partition in self._live and not self._follows(target, partition):
                self._delivery(target).follow(partition, Mark.from_json(body), behind=True)
        for key, partition in places.items():
            if partition in self._live:
                self._saved[partition] = max(
                    int(self._cursors.get(key, {"o": 0})["o"]), starts[partition]
                )
                self._intake.begin(partition, self._saved[partition], ends[partition])
        self._health.ready("push")
        log.info("delivering", partitions=mine, targets=len(self._deliveries))

    async def _offsets(
        self,
        ask: Callable[[list[tuple[str, int]]], dict[tuple[str, int], int]],
        partitions: list[int],
    ) -> dict[int, int]:
        if not partitions:
            return {}
        found = await asyncio.get_running_loop().run_in_executor(
            None, ask, [(names.EVENTS, p) for p in partitions]
        )
        return {p: offset for (_, p), offset in found.items()}

    async def _revoked(self, *found: Any, **_: Any) -> None:
        for tp in found[1]:
            if tp.topic == names.EVENTS:
                self._live.pop(tp.partition, None)
                self._intake.leave(tp.partition)
                for delivery in self._deliveries.values():
                    delivery.leave(tp.partition)

    def _follows(self, target: NotifyTarget, partition: int) -> bool:
        delivery = self._deliveries.get(target)
        return delivery is not None and partition in delivery.cursors

    def _delivery(self, target: NotifyTarget) -> TargetDelivery:
        delivery = self._deliveries.get(target)
        if delivery is None:
            delivery = self._deliveries[target] = TargetDelivery(target, self._around)
            delivery.start()
        return delivery

    # ---------------------------------------------------------------- records

    async def _route(self, partition: int, offset: int, value: bytes | None) -> None:
        if partition not in self._live:
            return  # it went to another notifier meanwhile
        message: NotifyMessage | None = None
        try:
            message = self._message(partition, offset, value, await self._entry(value))
        except (SchemaError, ValueError, TypeError, AttributeError) as error:
            log.error(
                "a record of events cannot be used",
                partition=partition,
                offset=offset,
                error=str(error),
            )
        # before anybody gets it: who is told to read it from the log again must not believe
        # meanwhile that the log ends before it
        self._live[partition] = max(self._live.get(partition, 0), offset + 1)
        if message is not None:
            for target in message.targets:
                if not self._follows(target, partition):
                    await self._begin(target, partition, offset)
                self._deliveries[target].offer(message)
            await self._hold_back(message)
        self._barrier(partition, offset, value)

    async def _begin(self, target: NotifyTarget, partition: int, offset: int) -> None:
        """Follow from *offset* on for a target that had nothing here yet."""
        mark = Mark(offset)
        # in the changelog before the partition's place moves on: nothing is forgotten in a crash
        # between the two
        await self._cursors.send_changelog(partition, target.key(partition), mark.to_json())
        self._cursors[target.key(partition)] = mark.to_json()
        self._delivery(target).follow(partition, mark, behind=False)

    async def _entry(self, value: bytes | None) -> StreamEntry | None:
        """The stream of a record; None when it was dropped. The catalog may be a moment behind a
        stream's first events.
        """
        try:
            stream_id = decode(EventsRecord, value).stream
        except SchemaError:
            return None
        if self._catalog.catalog.next_id <= stream_id:
            loop = asyncio.get_running_loop()
            with contextlib.suppress(BusError):
                await loop.run_in_executor(
                    None, self._catalog.wait_for, lambda c: c.next_id > stream_id, _CATALOG_PATIENCE
                )
        return self._catalog.catalog.stream_by_id(stream_id)

    def _message(
        self, partition: int, offset: int, value: bytes | None, entry: StreamEntry | None
    ) -> NotifyMessage | None:
        if entry is None or not self._may_notify(entry):
            return None
        return pack(
            entry, decode(EventsRecord, value), partition, offset, milliseconds(self._clock)
        )

    def _may_notify(self, entry: StreamEntry) -> bool:
        """Tell whether the stream's maker may have anybody notified; several makers may share the
        connection to a target.
        """
        if not targets_of(entry) or not self._outbound.reach(entry.maker).nowhere:
            self._silent.discard(entry.id)
            return True
        if entry.id not in self._silent:
            self._silent.add(entry.id)
            log.warning(
                "a stream's targets are not notified",
                stream=f"{entry.database}.{entry.name}",
                maker=entry.maker,
                hint=NOTIFY_HINT,
            )
        return False

    def _anywhere(self, stream_id: int) -> bool:
        """Tell whether a stream's maker may have any host notified."""
        entry = self._catalog.catalog.stream_by_id(stream_id)
        return entry is not None and self._outbound.anywhere(entry.maker)

    def _named(self, target: NotifyTarget) -> bool:
        """Tell whether a user who may have any host notified has named *target*."""
        return any(
            target in targets_of(s) and self._outbound.anywhere(s.maker)
            for s in self._catalog.catalog.streams()
        )

    def _messages(self, piece: Slice) -> list[NotifyMessage]:
        """Messages of records that a delivery has read from the log."""
        found = []
        for offset, value in zip(piece.batch.offsets.tolist(), piece.batch.values, strict=True):
            try:
                entry = self._catalog.catalog.stream_by_id(decode(EventsRecord, value).stream)
                message = self._message(piece.partition, offset, value, entry)
            except (SchemaError, ValueError, TypeError, AttributeError):
                continue  # told by the live reader
            if message is not None:
                found.append(message)
        return found

    # ---------------------------------------------------------------- what follows from it

    def _save(self, target: NotifyTarget, partition: int, mark: Mark) -> None:
        if partition in self._live:
            self._cursors[target.key(partition)] = mark.to_json()

    def _settled(self, target: NotifyTarget) -> None:
        self._check_barriers()
        for stream_id in list(self._backpressure.held):
            if stream_id in self._deliveries[target].pending:
                self._release_if_due(stream_id)

    async def _hold_back(self, message: NotifyMessage) -> None:
        """Pause a stream whose target is too far behind."""
        if any(t.on_failure == "pause" for t in message.targets):
            waiting = behind(self._deliveries, message.stream)
            if waiting > self._settings.pause_bytes:
                await self._backpressure.hold(
                    message.stream, f"paused: a NOTIFY target is {waiting >> 10} KiB behind"
                )

    def _release_if_due(self, stream_id: int) -> None:
        entry = self._catalog.catalog.stream_by_id(stream_id)
        deliveries = [
            self._deliveries[t]
            for t in (targets_of(entry) if entry is not None else ())
            if t in self._deliveries
        ]
        caught_up = all(cursor.behind is None for c in deliveries for cursor in c.cursors.values())
        if caught_up and behind(self._deliveries, stream_id) <= self._settings.pause_bytes // 2:
            self._job(self._backpressure.release(stream_id))

    def _barrier(self, partition: int, offset: int, value: bytes | None) -> None:
        with contextlib.suppress(SchemaError, ValueError):
            control = decode(ControlRecord, value)
            if control.kind == "barrier":
                targets = None
                if control.body:
                    found = [
                        self._catalog.catalog.stream_by_id(i)
                        for i in json.loads(control.body)["streams"]
                    ]
                    targets = frozenset(
                        t for entry in found if entry is not None for t in targets_of(entry)
                    )
                self._barriers.append(_Barrier(control.id, partition, offset, targets))
                self._check_barriers()

    def _check_barriers(self) -> None:
        passed = [b for b in self._barriers if self._has_passed(b)]
        if passed:
            self._barriers = [b for b in self._barriers if b not in passed]
            for barrier in passed:
                self._job(self._report(barrier))

    def _has_passed(self, barrier: _Barrier) -> bool:
        concerned = (
            self._deliveries.values()
            if barrier.targets is None
            else [self._deliveries.get(t) for t in barrier.targets]
        )
        return all(c is None or c.has_settled(barrier.partition, barrier.offset) for c in concerned)

    async def _report(self, barrier: _Barrier) -> None:
        key = names.barrier(barrier.id)
        try:
            await self._redis.hset(
                key, f"notifier:{names.EVENTS}:{barrier.partition}", str(barrier.offset)
            )
            await self._redis.expire(key, _BARRIER_SECONDS)
        except RedisError as error:
            log.warning("a barrier waits for Redis", error=str(error))
            self._barriers.append(barrier)  # somebody waits for it: `_keep` tries again

    def _job(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    async def _keep(self) -> None:
        """Every second: say that we are there, count, pay what Redis is owed, and now and then let
        idle cursors follow.
        """
        second = 0
        while True:
            await asyncio.sleep(1.0)
            second += 1
            if self._health.conditions()["push"].ready:
                with contextlib.suppress(RedisError):
                    await self._redis.set(
                        names.notifier_heartbeat(), self._settings.instance, ex=_HEARTBEAT_SECONDS
                    )
                    await self._standing.tell(self._deliveries)
            self._check_barriers()
            self._metrics.state(
                down=sum(bool(c.down) for c in self._deliveries.values()),
                held=len(self._backpressure.held),
            )
            for stream_id in list(self._backpressure.held):
                self._release_if_due(stream_id)
            self._keep_places()
            if second % _REST_EVERY == 0:
                await self._tidy()

    def _keep_places(self) -> None:
        for partition, offset in self._intake.positions().items():
            if self._saved.get(partition) != offset:
                self._saved[partition] = offset
                self._cursors[_place_key(partition)] = {"o": offset}

    async def _tidy(self) -> None:
        wanted = {t for s in self._catalog.catalog.streams() for t in targets_of(s)}
        for target, delivery in list(self._deliveries.items()):
            if target in wanted:
                delivery.rest()
                continue
            # nobody notifies it any more: what waits for it belongs to dropped streams
            await self._deliveries.pop(target).stop()
            for partition in delivery.cursors:
                self._cursors.pop(target.key(partition), None)


def _place_key(partition: int) -> str:
    """Of a partition in the table of cursors; no target has such a key."""
    return f"{partition}|place|"


def _credentials(settings: NotifierSettings) -> Any:
    """How Faust speaks to brokers: as everybody else here does."""
    options = settings.kafka_options
    if not options:
        return None
    protocol = options["security.protocol"]
    context = tls.client(settings.kafka_ca) if protocol.endswith("SSL") else None
    if protocol == "SSL":
        return faust.SSLCredentials(context=context)
    return faust.SASLCredentials(
        username=options["sasl.username"],
        password=options["sasl.password"],
        mechanism=options["sasl.mechanism"],
        ssl_context=context,
    )
