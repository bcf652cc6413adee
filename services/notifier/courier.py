"""Delivery to one target: one connection, one bounded queue a partition, messages in order, each at
least once.

A message counts as delivered when the target answered the ping behind it: a WebSocket peer answers
frames in order, so by then it has read the message. What was not confirmed is sent again over the
next connection, with the same messageId. While the target is down a DROP target loses what comes,
and a PAUSE target keeps it: in the queue, past its bound in Kafka. Nobody else waits for either.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from penstock import vital
from penstock.errors import BusError, PenstockError
from penstock.feed import History, Slice
from penstock.log import get
from penstock.targets import (
    NOTIFY_HINT,
    AllowList,
    TargetRefused,
    endpoint,
    label_of,
    reason_of,
    resolve,
)
from services.notifier.metrics import PushMetrics
from services.notifier.parcel import Parcel, Target
from services.notifier.settings import NotifierSettings
from services.notifier.track import Mark, Track

_WINDOW_MESSAGES = 256
_WINDOW_SIZE = 1 << 20
log = get(__name__)


@dataclass(frozen=True)
class Surroundings:
    """What a courier asks of the process it runs in."""

    settings: NotifierSettings
    allowed: AllowList
    #: whether an address and port are the mesh's own
    is_own: Callable[[str, int], bool]
    metrics: PushMetrics
    #: parcels in records read from the log
    parcels: Callable[[Slice], list[Parcel]]
    history: Callable[[int, int], History]
    #: where the live reader stands in a partition
    live: Callable[[int], int]
    save: Callable[[Target, int, Mark], None]
    #: called after marks have moved
    settled: Callable[[Target], None]
    #: whether the maker of a stream may have hosts notified that are not `allowed`
    anywhere: Callable[[int], bool] = lambda _: False
    #: whether anybody who may has a stream with this target
    named: Callable[[Target], bool] = lambda _: False


class Courier:
    """All that goes to one target."""

    def __init__(self, target: Target, around: Surroundings) -> None:
        self.target = target
        self._around = around
        self.tracks: dict[int, Track] = {}
        #: characters and events offered and not settled, by stream
        self.pending: Counter[int] = Counter()
        self._events: Counter[int] = Counter()
        #: why nothing can be delivered at the moment
        self.down = ""
        self._label = label_of(target.url)
        #: whether everybody's messages may go where the connection goes
        self._listed = True
        #: streams whose maker may not have this target notified
        self._refused: frozenset[int] = frozenset()
        self._histories: dict[int, History] = {}
        self._wake = asyncio.Event()
        self._at_once = _WINDOW_MESSAGES
        self._delay = 0.0
        self._task: asyncio.Task[None] | None = None

    # ---------------------------------------------------------------- what the process tells it

    def start(self) -> None:
        self._task = vital.task(self._run(), f"courier {self._label}")

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
        self.tracks[partition] = Track(mark, bound=self._around.settings.push_bytes, behind=behind)
        self._wake.set()

    def leave(self, partition: int) -> None:
        """The partition is another notifier's now."""
        self.tracks.pop(partition, None)
        # if it comes back, it is read from another place
        self._close_history(partition)

    def offer(self, parcel: Parcel) -> None:
        """A parcel from the live reader."""
        if self.tracks[parcel.partition].offer(parcel):
            self.pending[parcel.stream] += len(parcel.text)
            self._events[parcel.stream] += parcel.events
            self._around.metrics.offered(parcel)
        self._wake.set()

    def events_waiting(self, stream_id: int) -> int:
        """Events of a stream that the target has not got yet, of before this process those that
        were read from the log again.
        """
        return self._events[stream_id] + sum(
            track.read_again(stream_id) for track in self.tracks.values()
        )

    def has_settled(self, partition: int, offset: int) -> bool:
        track = self.tracks.get(partition)
        return track is None or track.has_settled(offset)

    def rest(self) -> None:
        """Move marks up where there was nothing for this target."""
        for partition, track in self.tracks.items():
            if track.rest(self._around.live(partition)):
                self._around.save(self.target, partition, track.mark)

    # ---------------------------------------------------------------- delivery

    async def _run(self) -> None:
        while True:
            try:
                await self._window()
                async with await self._connect() as connection:
                    await self._deliver(connection)
            except ConnectionClosed as error:
                # a connection that broke is opened again at once; one that breaks before anything
                # went through means down
                if self._delay:
                    await self._sit_out(error)
                self._delay = self._delay or self._around.settings.retry_min
            except (OSError, WebSocketException, PenstockError, ValueError) as error:
                await self._sit_out(error)
            except vital.FAULTS as error:
                log.error("delivery failed", target=self._label, error=type(error).__name__)
                await self._sit_out(error)

    async def _connect(self) -> ClientConnection:
        settings = self._around.settings
        where = endpoint(self.target.url)
        async with asyncio.timeout(settings.connect_seconds):
            found = await resolve(
                where,
                self._around.allowed,
                self._around.is_own,
                anywhere=self._around.named(self.target),
            )
            self._listed = found.listed
            # a connection that is made already follows no redirect
            reached = await _reached(found.address, where.port)
            return await connect(
                self.target.url,
                sock=reached,
                proxy=None,
                compression=None,
                max_size=1 << 20,
                max_queue=4,
                open_timeout=None,
                close_timeout=1.0,
                ping_interval=settings.ping_seconds,
                ping_timeout=settings.ack_seconds,
            )

    async def _deliver(self, connection: ClientConnection) -> None:
        listening = asyncio.create_task(_ignore(connection))
        try:
            while True:
                window = await self._window()
                refused = self._check(window)
                try:
                    async with asyncio.timeout(self._around.settings.ack_seconds):
                        for parcel in window:
                            if parcel.stream not in refused:
                                await connection.send(parcel.text)
                        await (await connection.ping())
                except TimeoutError:
                    # too slow for that much at a time
                    self._at_once = max(len(window) // 4, 1)
                    connection.transport.abort()
                    raise
                if self.down:
                    log.info("target is back", target=self._label)
                self.down = ""
                self._delay = 0.0
                self._at_once = min(self._at_once * 2, _WINDOW_MESSAGES)
                self._settle(window, delivered=True, but=refused)
        finally:
            listening.cancel()

    def _check(self, window: list[Parcel]) -> frozenset[int]:
        """The streams whose messages must not go where the connection goes: users who may name any
        host share it with others.

        Raises:
            TargetRefused: nobody may (any more).
        """
        if self._listed:
            return frozenset()
        streams = {p.stream: p.name for p in window}
        refused = frozenset(s for s in streams if not self._around.anywhere(s))
        if len(refused) == len(streams) and not self._around.named(self.target):
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

    async def _window(self) -> list[Parcel]:
        """The next parcels; waits until there are any."""
        while True:
            self._wake.clear()
            found: list[Parcel] = []
            for partition, track in list(self.tracks.items()):
                if not track and track.behind is not None:
                    await self._refill(partition, track)
                found += track.waiting(self._at_once - len(found), _WINDOW_SIZE)
                if len(found) >= self._at_once:
                    break
            if found:
                return found
            if all(t.behind is None for t in self.tracks.values()):
                await self._wake.wait()

    async def _refill(self, partition: int, track: Track) -> None:
        assert track.behind is not None
        live = self._around.live(partition)
        if track.behind >= live:
            track.refill((), track.behind, live)
        else:
            if partition not in self._histories:
                self._histories[partition] = self._around.history(partition, track.behind)
            try:
                slices = await self._histories[partition].read()
            except (
                BaseException
            ) as error:  # a cancelled read may have taken records: its reader is of no use any more
                self._close_history(partition)
                if not isinstance(error, BusError):
                    raise
                if error.code == "E_OFFSET_GONE":
                    log.error(
                        "events were deleted before they were delivered",
                        target=self._label,
                        offset=track.behind,
                    )
                    track.refill((), live, live)
                    return
                log.warning("events cannot be read for now", error=str(error))
                await asyncio.sleep(self._around.settings.retry_max)
                return
            for piece in slices:
                mine = [p for p in self._around.parcels(piece) if self.target in p.targets]
                track.refill(mine, piece.next, self._around.live(partition))
        if track.behind is None:
            self._close_history(partition)
            self._around.settled(self.target)

    def _close_history(self, partition: int) -> None:
        history = self._histories.pop(partition, None)
        if history is not None:
            history.close()

    def _settle(
        self, window: list[Parcel], *, delivered: bool, but: frozenset[int] = frozenset()
    ) -> None:
        """*but*: streams whose messages were not delivered in any case."""
        moved: dict[int, list[Parcel]] = {}
        for parcel in window:
            moved.setdefault(parcel.partition, []).append(parcel)
        for partition, parcels in moved.items():
            track = self.tracks.get(partition)
            if track is not None:
                track.settle(parcels)
                self._around.save(self.target, partition, track.mark)
        for parcel in window:
            track = self.tracks.get(parcel.partition)
            waited = track is not None and track.was_offered(parcel)
            came = delivered and parcel.stream not in but
            self._around.metrics.settled(parcel, delivered=came, waited=waited)
            if waited:
                self.pending[parcel.stream] -= len(parcel.text)
                self._events[parcel.stream] -= parcel.events
            if parcel.trace is not None:
                said = "a target was told" if came else "a target was not told"
                log.info(
                    said,
                    target=self._label,
                    stream=parcel.name,
                    trace=parcel.trace,
                    events=parcel.events,
                )
        self._around.settled(self.target)

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
        settings = self._around.settings
        self._delay = min(max(self._delay * 2, settings.retry_min), settings.retry_max)
        for partition in list(self._histories):
            self._close_history(partition)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._delay):
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


async def _reached(address: str, port: int) -> socket.socket:
    """Connect to an address that was checked."""
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(kind, socket.SOCK_STREAM)
    made.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(made, (address, port))
    except BaseException:
        made.close()
        raise
    return made


async def _ignore(connection: ClientConnection) -> None:
    """Take what a target says, so that its answers to pings get through; closing is noticed by who
    sends.
    """
    with contextlib.suppress(ConnectionClosed):
        async for _ in connection:
            pass


def behind(couriers: Mapping[Target, Courier], stream_id: int) -> int:
    """Characters of one stream that the slowest of its targets has not got yet."""
    return max((c.pending[stream_id] for c in couriers.values()), default=0)
