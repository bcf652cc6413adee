"""Delivery to one target: one connection, one bounded queue a partition, messages in order, each at
least once.

A message counts as delivered when the target has confirmed it (how is the connection's business).
What was not confirmed is sent again over the next connection, with the same ids. While the target
is down a DROP target loses what comes, and a PAUSE target keeps it: in the queue, past its bound in
Kafka. Nobody else waits for either.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from websockets.exceptions import WebSocketException

from penstock.errors import BusError, PenstockError
from penstock.feeds.feed import FeedHistory
from penstock.feeds.slices import Slice
from penstock.outbound.kafka_topic import is_kafka
from penstock.outbound.targets import NOTIFY_HINT, TargetRefused, is_web, label_of, reason_of
from penstock.runtime import traces, vital
from penstock.runtime.log import get
from services.notifier.cursor import Mark, PartitionCursor
from services.notifier.delivery_pace import DeliveryPace
from services.notifier.delivery_spans import DeliverySpans
from services.notifier.http_target import HttpTarget
from services.notifier.kafka_target import KafkaTarget
from services.notifier.message import NotifyMessage, NotifyTarget
from services.notifier.surroundings import Surroundings
from services.notifier.target_connection import ConnectionBroke, TargetConnection, TargetFailed
from services.notifier.unsettled import UnsettledMessages
from services.notifier.websocket_target import WebSocketTarget

log = get(__name__)


def _connection_to(target: NotifyTarget, around: Surroundings) -> TargetConnection:
    if is_kafka(target.url):
        return KafkaTarget(target, around)
    return HttpTarget(target, around) if is_web(target.url) else WebSocketTarget(target, around)


class TargetDelivery:
    """All that goes to one target."""

    def __init__(self, target: NotifyTarget, around: Surroundings) -> None:
        self.target = target
        self._around = around
        self.cursors: dict[int, PartitionCursor] = {}
        self.unsettled = UnsettledMessages()
        #: why nothing can be delivered at the moment
        self.down = ""
        self._label = label_of(target.url)
        self._spans = DeliverySpans(target, self._label)
        self._connection = _connection_to(target, around)
        #: streams whose maker may not have this target notified
        self._refused: frozenset[int] = frozenset()
        self._histories: dict[int, FeedHistory] = {}
        self._wake = asyncio.Event()
        self._pace = DeliveryPace(self._connection.limits, around.settings.retry_min)
        self._task: asyncio.Task[None] | None = None

    # ---------------------------------------------------------------- what the process tells it

    def start(self) -> None:
        self._task = vital.task(self._run(), f"delivery {self._label}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        for partition in list(self._histories):
            self._close_history(partition)

    def follow(self, partition: int, mark: Mark, *, behind: bool) -> None:
        """Deliver a partition from *mark* on; *behind*: the live reader has given records above it
        already.
        """
        self.cursors[partition] = PartitionCursor(
            mark, bound=self._around.settings.push_bytes, behind=behind
        )
        self._wake.set()

    def leave(self, partition: int) -> None:
        """The partition is another notifier's now."""
        self.cursors.pop(partition, None)
        self._spans.leave(partition)
        # if it comes back, it is read from another place
        self._close_history(partition)

    def offer(self, message: NotifyMessage) -> None:
        """A message from the live reader."""
        if self.cursors[message.partition].offer(message):
            self.unsettled.add(message)
            self._around.metrics.count_offer(message)
        self._wake.set()

    def events_waiting(self, stream_id: int) -> int:
        """Events of a stream that the target has not got yet, of before this process those that
        were read from the log again.
        """
        return self.unsettled.events(stream_id) + sum(
            cursor.read_again(stream_id) for cursor in self.cursors.values()
        )

    def has_settled(self, partition: int, offset: int) -> bool:
        cursor = self.cursors.get(partition)
        return cursor is None or cursor.has_settled(offset)

    def rest(self) -> None:
        """Move marks up where there was nothing for this target."""
        for partition, cursor in self.cursors.items():
            if cursor.rest(self._around.live(partition)):
                self._around.save(self.target, partition, cursor.mark)

    # ---------------------------------------------------------------- delivery

    async def _run(self) -> None:
        while True:
            try:
                await self._window()
                try:
                    await self._connection.open()
                    await self._deliver()
                finally:
                    await self._connection.close()
            except ConnectionBroke as error:
                # a connection that broke is opened again at once; one that breaks before anything
                # went through means down
                if self._pace.delay:
                    await self._sit_out(error)
                self._pace.note_break()
            except (OSError, WebSocketException, PenstockError, ValueError) as error:
                await self._sit_out(error)
            except vital.FAULTS as error:
                log.error("delivery failed", target=self._label, error=type(error).__name__)
                await self._sit_out(error)

    async def _deliver(self) -> None:
        """Deliver over the connection, which is open, until it breaks."""
        while True:
            window = await self._window()
            refused = self._check(window)
            mine = [m for m in window if m.stream not in refused]
            self._spans.attempt(mine)
            try:
                await self._connection.send(mine)
            except TimeoutError:
                self._pace.note_slowness(len(window))
                raise
            if self.down:
                log.info("target is back", target=self._label)
            self.down = ""
            self._pace.note_success()
            self._settle(window, delivered=True, but=refused)

    def _check(self, window: list[NotifyMessage]) -> frozenset[int]:
        """The streams whose messages must not go where the connection goes: users who may name any
        host share it with others.

        Raises:
            TargetRefused: nobody may (any more).
        """
        if self._connection.listed:
            return frozenset()
        streams = {p.stream: p.name for p in window}
        refused = frozenset(s for s in streams if not self._around.may_go_anywhere(s))
        if len(refused) == len(streams) and not self._around.may_be_any_host(self.target):
            raise TargetRefused(f"{self._label} may not be notified", hint=NOTIFY_HINT)
        for stream in refused - self._refused:
            log.warning(
                "a stream's target is not notified",
                target=self._label,
                stream=streams[stream],
                hint=NOTIFY_HINT,
            )
        self._refused |= refused
        return refused

    async def _window(self) -> list[NotifyMessage]:
        """The next messages; waits until there are any."""
        while True:
            self._wake.clear()
            found: list[NotifyMessage] = []
            for partition, cursor in list(self.cursors.items()):
                if not cursor and cursor.behind is not None:
                    await self._refill(partition, cursor)
                at_once = self._pace.at_once
                found += cursor.waiting(at_once - len(found), self._connection.limits.size)
                if len(found) >= at_once:
                    break
            if found:
                return found
            if all(t.behind is None for t in self.cursors.values()):
                await self._wake.wait()

    async def _refill(self, partition: int, cursor: PartitionCursor) -> None:
        """Fill the queue of a partition from the log."""
        assert cursor.behind is not None
        live = self._around.live(partition)
        if cursor.behind >= live:
            cursor.refill((), cursor.behind, live)
        else:
            try:
                slices = await self._read(partition, cursor.behind)
            except BusError as error:
                await self._pass_over(error, cursor, live)
                return
            for piece in slices:
                mine = [m for m in self._around.messages(piece) if self.target in m.targets]
                cursor.refill(mine, piece.next, self._around.live(partition))
        if cursor.behind is None:
            self._close_history(partition)
            self._around.on_settled(self.target)

    async def _read(self, partition: int, offset: int) -> list[Slice]:
        """Read on in the log, from *offset* when nothing has been read yet. Raises BusError."""
        if partition not in self._histories:
            self._histories[partition] = self._around.history(partition, offset)
        try:
            return await self._histories[partition].read()
        except BaseException:
            # a cancelled read may have taken records: its reader is of no use any more
            self._close_history(partition)
            raise

    async def _pass_over(self, error: BusError, cursor: PartitionCursor, live: int) -> None:
        """Give up what is no longer in the log; wait a moment when it cannot be read for now."""
        if error.code == "E_OFFSET_GONE":
            log.error(
                "events were deleted before they were delivered",
                target=self._label,
                offset=cursor.behind,
            )
            cursor.refill((), live, live)
            return
        log.warning("events cannot be read for now", error=str(error))
        await asyncio.sleep(self._around.settings.retry_max)

    def _close_history(self, partition: int) -> None:
        history = self._histories.pop(partition, None)
        if history is not None:
            history.close()

    def _settle(
        self, window: list[NotifyMessage], *, delivered: bool, but: frozenset[int] = frozenset()
    ) -> None:
        """*but*: streams whose messages were not delivered in any case."""
        moved: dict[int, list[NotifyMessage]] = {}
        for message in window:
            moved.setdefault(message.partition, []).append(message)
        for partition, messages in moved.items():
            cursor = self.cursors.get(partition)
            if cursor is not None:
                cursor.settle(messages)
                self._around.save(self.target, partition, cursor.mark)
        for message in window:
            cursor = self.cursors.get(message.partition)
            waited = cursor is not None and cursor.was_offered(message)
            came = delivered and message.stream not in but
            self._around.metrics.count_outcome(message, delivered=came, waited=waited)
            if waited:
                self.unsettled.remove(message)
            self._spans.settle(message, delivered=came)
            if name := traces.name_of(message.trace):
                said = "a target was told" if came else "a target was not told"
                log.info(
                    said,
                    target=self._label,
                    stream=message.name,
                    trace=name,
                    events=message.events,
                )
        self._around.on_settled(self.target)

    # ---------------------------------------------------------------- while it is down

    async def _sit_out(self, error: BaseException) -> None:
        """Wait before the next attempt. A target that drops loses what there is and what comes
        meanwhile.
        """
        reason = reason_of(error)
        if reason != self.down:
            log.warning(
                "target is down",
                target=self._label,
                on_failure=self.target.on_failure,
                error=reason,
            )
        self.down = reason
        self._pace.note_failure()
        asked = error.retry_after if isinstance(error, TargetFailed) else 0.0
        for partition in list(self._histories):
            self._close_history(partition)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(self._pace.delay, asked)):
                if self.target.on_failure == "drop":
                    await self._drop()
                await asyncio.Event().wait()

    async def _drop(self) -> None:
        """Settle what comes without delivering it, until cancelled or until it cannot be read."""
        try:
            while True:
                self._settle(await self._window(), delivered=False)
        except vital.FAULTS as error:
            log.error("messages cannot be read", target=self._label, error=type(error).__name__)


def behind(deliveries: Mapping[NotifyTarget, TargetDelivery], stream_id: int) -> int:
    """Characters of one stream that the slowest of its targets has not got yet."""
    return max((c.unsettled.characters(stream_id) for c in deliveries.values()), default=0)
