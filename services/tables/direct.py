"""The short way of one record to Kafka: over a connection of this node's event loop to the broker
that leads the table's log.

librdkafka hands a record from thread to thread, and each of them has to be woken: on an idle
machine that costs more than all the rest of a small write. Here the loop that has read the write
sends the record, and reads the answer. One record at a time per table; nothing is ever sent twice.
What is refused in so many words is not in the log, so librdkafka may have it; when the connection
breaks, nobody knows. It logs in as librdkafka does, by PLAIN or SCRAM. Refused: brokers that want
TLS, large records, and anything while librdkafka has records of the table under way (order).
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import struct
from collections.abc import Callable, Mapping
from typing import cast

from penstock.bus import Admin, Delivery
from penstock.errors import BusError
from penstock.runtime.clock import Clock, milliseconds
from penstock.runtime.log import get
from services.tables import kafka_wire as wire
from services.tables.scram import MECHANISMS, Scram

log = get(__name__)
#: seconds after which another try is made to connect
_RETRY_SECONDS = 1.0
Answer = Callable[[Delivery | BusError | None], None]


class _Link(asyncio.Protocol):
    """One connection to one broker; answers come in the order of requests."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.waiting: dict[int, Callable[[bytes | None], None]] = {}
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are of a class of their own

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 8:
            size, correlation = struct.unpack_from(">ii", self._buffer)
            if len(self._buffer) < 4 + size:
                return
            answer = self._buffer[8 : 4 + size]
            self._buffer = self._buffer[4 + size :]
            found = self.waiting.pop(correlation, None)
            if found is not None:
                found(answer)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        waiting = self.waiting
        self.waiting = {}
        for found in waiting.values():
            found(None)


class Direct:
    """Event loop only."""

    def __init__(
        self, admin: Admin, clock: Clock, client: str, timeout: float, options: Mapping[str, str]
    ) -> None:
        """
        Args:
            options: how brokers are spoken to (`Settings.kafka_options`).
            client: name among Kafka's clients.
            timeout: seconds until a record without an answer counts as unknown.
        """
        self._admin = admin
        self._clock = clock
        self._client = client.encode()
        self._timeout = timeout
        self._options = options
        self._links: dict[str, _Link] = {}
        #: topic → where its leader is; topics that are not there go the long way
        self._brokers: dict[str, str] = {}
        self._looking: set[asyncio.Task[None]] = set()
        self._looked: dict[str, float] = {}
        self._numbers = itertools.count(1)

    def close(self) -> None:
        for task in self._looking:
            task.cancel()
        for link in self._links.values():
            if link.transport is not None:
                link.transport.close()

    def ready(self, topic: str) -> bool:
        """Whether a record can be sent now; looks for the broker when it is not known."""
        link = self._links.get(self._brokers.get(topic, ""))
        if link is not None and link.transport is not None and not link.transport.is_closing():
            return link.transport.get_write_buffer_size() == 0
        now = self._clock.monotonic()
        if now - self._looked.get(topic, -_RETRY_SECONDS) >= _RETRY_SECONDS:
            self._looked[topic] = now
            task = asyncio.get_running_loop().create_task(self._look(topic))
            self._looking.add(task)
            task.add_done_callback(self._looking.discard)
        return False

    def send(self, topic: str, value: bytes, key: bytes, answer: Answer) -> None:
        """Send a record; *answer* gets where it is, the error when nobody knows, or None when it
        certainly is not there.
        """
        link = self._links[self._brokers[topic]]
        assert link.transport is not None
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        broker = self._brokers[topic]
        now = milliseconds(self._clock)

        def take_answer(data: bytes | None) -> None:
            late.cancel()
            if data is None:
                self._brokers.pop(topic, None)
                answer(
                    BusError(
                        "the connection to Kafka broke", detail=broker, topic=topic, partition=0
                    )
                )
                return
            found = wire.parse_produced(data)
            if found.error == 0:
                answer(Delivery(topic, 0, found.offset, found.time if found.time >= 0 else now))
                return
            self._brokers.pop(topic, None)
            refused = found.error in wire.REFUSALS
            answer(
                None
                if refused
                else BusError(
                    "Kafka did not write a record",
                    detail=f"error {found.error}",
                    topic=topic,
                    partition=0,
                )
            )

        link.waiting[number] = take_answer
        records = wire.batch(key, value, now)
        link.transport.write(
            wire.produce(number, self._client, topic.encode(), records, int(self._timeout * 1000))
        )
        late = loop.call_later(self._timeout, link.transport.abort)

    async def _look(self, topic: str) -> None:
        """Find the broker that leads the log, and connect to it."""
        try:
            broker = await asyncio.to_thread(self._admin.leader_of, topic)
            link = self._links.get(broker)
            if link is None or link.transport is None:
                link = self._links[broker] = await self._connect(broker)
            if link.transport is not None:
                self._brokers[topic] = broker
        except (BusError, OSError, TimeoutError) as away:
            log.info("records go the long way", topic=topic, reason=str(away))

    async def _connect(self, broker: str) -> _Link:
        host, _, port = broker.rpartition(":")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_RETRY_SECONDS):
            _, link = await loop.create_connection(_Link, host, int(port))
        try:
            if not wire.speaks(await self._ask(link, wire.ask_versions)):
                raise BusError("the broker does not speak produce in this version", detail=broker)
            if self._options.get("security.protocol", "").startswith("SASL"):
                await self._log_in(link)
        except BaseException:
            if link.transport is not None:
                link.transport.close()
            raise
        return link

    async def _log_in(self, link: _Link) -> None:
        """Prove who this node is. Raises BusError when the broker does not believe it, or this node
        the broker.
        """
        mechanism, user, password = (
            self._options[f"sasl.{name}"] for name in ("mechanism", "username", "password")
        )
        if not wire.knows_mechanism(
            await self._ask(
                link, lambda number, client: wire.ask_mechanism(number, client, mechanism)
            )
        ):
            raise BusError(f"the broker does not take logins by {mechanism}")
        if mechanism not in MECHANISMS:
            await self._said(link, f"\0{user}\0{password}".encode())
            return
        login = Scram(mechanism, user, password, secrets.token_urlsafe(18))
        login.check(await self._said(link, login.final(await self._said(link, login.first()))))

    async def _said(self, link: _Link, said: bytes) -> bytes:
        """What the broker answers to a part of a login. Raises BusError when it refuses."""
        answer = wire.parse_authentication(
            await self._ask(link, lambda number, client: wire.authenticate(number, client, said))
        )
        if answer is None:
            raise BusError("the broker refuses the login")
        return answer

    async def _ask(self, link: _Link, request: Callable[[int, bytes], bytes]) -> bytes:
        """The answer to a *request* that is made of its number and this client's name. Raises
        BusError, TimeoutError.
        """
        found: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        number = next(self._numbers)
        link.waiting[number] = lambda data: None if found.done() else found.set_result(data)
        if link.transport is not None:
            link.transport.write(request(number, self._client))
            async with asyncio.timeout(_RETRY_SECONDS):
                answer = await found
            if answer is not None:
                return answer
        raise BusError("the connection to Kafka broke")
