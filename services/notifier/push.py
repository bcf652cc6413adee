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
from collections.abc import Callable
from typing import Any

import redis.asyncio
from redis.exceptions import RedisError

from penstock import names
from penstock.auth.access import Access
from penstock.bus import Admin, Publisher
from penstock.catalog.reader import CatalogReader
from penstock.errors import BusError, SchemaError
from penstock.feeds.feed import FeedHistory
from penstock.outbound.reach import Outbound
from penstock.outbound.targets import AllowList
from penstock.runtime.clock import Clock
from penstock.runtime.health import Health
from penstock.runtime.log import get
from services.notifier.backpressure import Backpressure
from services.notifier.barriers import Barriers
from services.notifier.cursor import Mark
from services.notifier.delivery import TargetDelivery, behind
from services.notifier.faust_app import PARTITIONS, make_app
from services.notifier.intake import EventIntake
from services.notifier.jobs import Jobs
from services.notifier.message import NotifyMessage, NotifyTarget, targets_of
from services.notifier.metrics import PushMetrics
from services.notifier.packing import Packer
from services.notifier.settings import NotifierSettings
from services.notifier.standing import TargetStanding
from services.notifier.surroundings import Surroundings

_HEARTBEAT_SECONDS = 5
_REST_EVERY = 30
log = get(__name__)


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
        self._redis = client
        self._metrics = metrics
        self._backpressure = Backpressure(catalog, client, publisher)
        self._standing = TargetStanding(catalog, client, settings.instance)
        self._admin = Admin(settings.kafka_bootstrap, client_id="notifier-push")
        self._deliveries: dict[NotifyTarget, TargetDelivery] = {}
        self._live: dict[int, int] = {}
        #: places of partitions as the table has them
        self._saved: dict[int, int] = {}
        self._jobs = Jobs()
        self._barriers = Barriers(catalog, client, self._deliveries, self._jobs)
        access = Access(lambda: catalog.catalog, settings.user)
        outbound = Outbound(settings, access, settings.notify_allow)
        self._packer = Packer(catalog, outbound, clock)
        self._around = Surroundings(
            settings,
            AllowList(settings.notify_allow),
            outbound.own.holds,
            metrics,
            self._packer.pack_slice,
            self._history,
            lambda partition: self._live.get(partition, 0),
            self._save,
            self._on_settled,
            self._packer.may_go_anywhere,
            self._packer.may_be_any_host,
            clock,
        )
        self._intake = EventIntake(
            self._route,
            lambda partitions: self._offsets(self._admin.end_offsets, partitions),
            self._history,
        )
        self._app, self._cursors = make_app(
            settings,
            on_event=self._intake.live,
            on_recovered=self._begin_partitions,
            on_revoked=self._leave_partitions,
        )

    def _history(self, partition: int, offset: int) -> FeedHistory:
        return FeedHistory(
            self._settings.kafka_bootstrap, self._catalog, names.EVENTS, partition, offset
        )

    async def run(self) -> None:
        """Deliver until cancelled or broken.

        Raises:
            BusError: Kafka can't be used.
        """
        loop = asyncio.get_running_loop()
        topics = {names.EVENTS: PARTITIONS, names.NOTIFIER_CURSORS: PARTITIONS}
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

    async def _begin_partitions(self) -> None:
        """Cursors are complete for the partitions that are ours: begin where the targets are."""
        mine = sorted(
            tp.partition for tp in self._app.assignor.assigned_actives() if tp.topic == names.EVENTS
        )
        ends = await self._offsets(self._admin.end_offsets, mine)
        starts = await self._offsets(self._admin.start_offsets, mine)
        self._live = {p: max(self._live.get(p, 0), ends[p]) for p in mine}
        with contextlib.suppress(RedisError):
            await self._backpressure.recall(
                s for s in self._catalog.catalog.streams() if targets_of(s)
            )
        self._begin_deliveries()
        for partition in mine:
            place = self._cursors.get(_place_key(partition), {"o": 0})
            self._saved[partition] = max(int(place["o"]), starts[partition])
            self._intake.begin(partition, self._saved[partition], ends[partition])
        self._health.ready("push")
        log.info("delivering", partitions=mine, targets=len(self._deliveries))

    def _begin_deliveries(self) -> None:
        """Follow for each target that a stream names from its cursor on; forget the others."""
        places = {_place_key(p) for p in range(PARTITIONS)}
        wanted = self._targets()
        for key, body in sorted(self._cursors.items()):
            if key in places:
                continue
            partition, target = NotifyTarget.of_key(key)
            if target not in wanted:
                self._cursors.pop(key)
            elif partition in self._live and not self._follows(target, partition):
                self._delivery(target).follow(partition, Mark.from_json(body), behind=True)

    def _targets(self) -> set[NotifyTarget]:
        return {t for s in self._catalog.catalog.streams() for t in targets_of(s)}

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

    async def _leave_partitions(self, *found: Any, **_: Any) -> None:
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
            message = self._packer.pack(
                partition, offset, value, await self._packer.find_stream(value)
            )
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
        self._barriers.take(partition, offset, value)

    async def _begin(self, target: NotifyTarget, partition: int, offset: int) -> None:
        """Follow from *offset* on for a target that had nothing here yet."""
        mark = Mark(offset)
        # in the changelog before the partition's place moves on: nothing is forgotten in a crash
        # between the two
        await self._cursors.send_changelog(partition, target.key(partition), mark.to_json())
        self._cursors[target.key(partition)] = mark.to_json()
        self._delivery(target).follow(partition, mark, behind=False)

    # ---------------------------------------------------------------- what follows from it

    def _save(self, target: NotifyTarget, partition: int, mark: Mark) -> None:
        if partition in self._live:
            self._cursors[target.key(partition)] = mark.to_json()

    def _on_settled(self, target: NotifyTarget) -> None:
        self._barriers.check()
        for stream_id in list(self._backpressure.held):
            if self._deliveries[target].unsettled.had(stream_id):
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
            self._jobs.start(self._backpressure.release(stream_id))

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
            self._barriers.check()
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
        wanted = self._targets()
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
