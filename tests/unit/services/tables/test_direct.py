"""The short way of a record to Kafka, with a broker that answers in the same event loop."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any

import pytest

from penstock.bus import Delivery
from penstock.errors import BusError
from penstock.runtime.clock import ManualClock
from services.tables import kafka_wire as wire
from services.tables.direct import Direct

TOPIC = "st.ha.trades"
NOW = 1_800_000_000_000_000_000


class Broker(asyncio.Transport):
    """One connection of a broker; what it answers to which request a test may change."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._protocol = protocol
        self.requests: list[tuple[int, bytes]] = []
        self.answers: dict[int, Callable[[], bytes | None]] = {
            wire.VERSIONS: lambda: struct.pack(">hihhh", 0, 1, wire.PRODUCE, 3, 11),
            wire.PRODUCE: lambda: produced(0, 17, 5_000),
            wire.HANDSHAKE: lambda: struct.pack(">hi", 0, 0),
            wire.AUTHENTICATE: lambda: struct.pack(">hhi", 0, -1, 0),
        }
        #: bytes of an answer that arrive at a time
        self.piece = 1 << 20
        self.closed = False
        self.unsent = 0
        protocol.connection_made(self)

    def write(self, data: Any) -> None:
        _, kind, _, number, name = struct.unpack_from(">ihhih", data)
        self.requests.append((kind, bytes(data[14 + name :])))
        body = self.answers[kind]()
        if body is not None:
            answer = struct.pack(">ii", len(body) + 4, number) + body
            asyncio.get_running_loop().call_soon(self._deliver, answer)

    def _deliver(self, answer: bytes) -> None:
        for at in range(0, len(answer), self.piece):
            self._protocol.data_received(answer[at : at + self.piece])

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.cut()

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def cut(self) -> None:
        self.closed = True
        self._protocol.connection_lost(None)

    def kinds(self) -> list[int]:
        return [kind for kind, _ in self.requests]


def produced(error: int, offset: int, time: int) -> bytes:
    topic = TOPIC.encode()
    head = struct.pack(">ih", 1, len(topic)) + topic + struct.pack(">ii", 1, 0)
    return head + struct.pack(">hqqi", error, offset, time, 0)


class Kafka:
    """Brokers as they are connected to, and where a topic's leader is."""

    def __init__(self) -> None:
        self.brokers: list[Broker] = []
        self.asked = 0
        self.leader: str | BusError = "kafka:9092"
        self.set_up: Callable[[Broker], None] = lambda broker: None

    def leader_of(self, topic: str) -> str:
        self.asked += 1
        if isinstance(self.leader, BusError):
            raise self.leader
        return self.leader

    async def connect(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Any:
        assert (host, port) == ("kafka", 9092)
        protocol = factory()
        broker = Broker(protocol)
        self.set_up(broker)
        self.brokers.append(broker)
        return broker, protocol


class Way:
    """The subject, its broker, and what it has answered."""

    def __init__(self, kafka: Kafka, timeout: float = 30.0, **options: str) -> None:
        self.kafka = kafka
        self.clock = ManualClock(NOW)
        admin: Any = kafka
        wanted = {name.replace("_", "."): value for name, value in options.items()}
        self.direct = Direct(admin, self.clock, "N1", timeout, wanted)
        self.answered = asyncio.Event()
        self.answers: list[Delivery | BusError | None] = []

    async def look(self) -> bool:
        """Have it look for the broker; say if it is ready then."""
        self.direct.ready(TOPIC)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        return self.direct.ready(TOPIC)

    def _take(self, answer: Delivery | BusError | None) -> None:
        self.answers.append(answer)
        self.answered.set()

    async def send(self, value: bytes = b"record") -> Delivery | BusError | None:
        self.answered.clear()
        self.direct.send(TOPIC, value, b"trades", self._take)
        await self.answered.wait()
        return self.answers[-1]

    @property
    def broker(self) -> Broker:
        return self.kafka.brokers[-1]


@pytest.fixture
async def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    made = Kafka()
    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", made.connect)
    return made


async def test_it_looks_for_the_broker_first_and_then_a_record_gets_its_place(kafka: Kafka) -> None:
    way = Way(kafka)
    assert not way.direct.ready(TOPIC)
    assert await way.look()
    assert await way.send() == Delivery(TOPIC, 0, 17, 5_000)
    assert way.broker.kinds() == [wire.VERSIONS, wire.PRODUCE]
    assert wire.batch(b"trades", b"record", NOW // 10**6) in way.broker.requests[-1][1]


async def test_a_topic_that_does_not_note_times_gets_that_of_sending(kafka: Kafka) -> None:
    way = Way(kafka)
    await way.look()
    way.broker.answers[wire.PRODUCE] = lambda: produced(0, 3, -1)
    assert await way.send() == Delivery(TOPIC, 0, 3, NOW // 10**6)


async def test_answers_may_come_in_pieces(kafka: Kafka) -> None:
    way = Way(kafka)
    kafka.set_up = lambda broker: setattr(broker, "piece", 3)
    assert await way.look()
    assert await way.send() == Delivery(TOPIC, 0, 17, 5_000)


async def test_what_is_refused_in_so_many_words_is_not_in_the_log(kafka: Kafka) -> None:
    way = Way(kafka)
    await way.look()
    for error in wire.REFUSALS:
        way.broker.answers[wire.PRODUCE] = lambda error=error: produced(error, -1, -1)
        assert await way.send() is None
        assert not way.direct.ready(TOPIC), "the leader has to be looked for again"
        way.clock.advance(1.1)
        assert await way.look()


async def test_after_another_error_nobody_knows(kafka: Kafka) -> None:
    way = Way(kafka)
    await way.look()
    way.broker.answers[wire.PRODUCE] = lambda: produced(7, -1, -1)
    error = await way.send()
    assert isinstance(error, BusError) and "error 7" in error.detail
    assert error.topic == TOPIC


async def test_a_connection_that_breaks_leaves_records_unknown(kafka: Kafka) -> None:
    way = Way(kafka)
    await way.look()
    way.broker.answers[wire.PRODUCE] = lambda: None
    way.direct.send(TOPIC, b"record", b"trades", way.answers.append)
    way.broker.cut()
    (error,) = way.answers
    assert isinstance(error, BusError) and "kafka:9092" in error.detail
    assert not way.direct.ready(TOPIC)
    way.clock.advance(1.1)
    assert await way.look(), "a new connection is made"
    assert len(kafka.brokers) == 2


async def test_a_broker_that_does_not_answer_in_time_is_hung_up_on(kafka: Kafka) -> None:
    way = Way(kafka, timeout=0.01)
    await way.look()
    way.broker.answers[wire.PRODUCE] = lambda: None
    assert isinstance(await way.send(), BusError)
    assert way.broker.closed


async def test_it_is_not_ready_while_the_broker_is_slow_to_read(kafka: Kafka) -> None:
    way = Way(kafka)
    await way.look()
    way.broker.unsent = 1
    assert not way.direct.ready(TOPIC)


async def test_it_asks_for_the_leader_once_a_second_at_most(kafka: Kafka) -> None:
    kafka.leader = BusError("the topic has no leader at the moment")
    way = Way(kafka)
    assert not await way.look()
    assert not await way.look()
    assert kafka.asked == 1
    way.clock.advance(1.1)
    kafka.leader = "kafka:9092"
    assert await way.look()
    assert kafka.asked == 2


async def test_a_broker_of_another_protocol_is_not_used(kafka: Kafka) -> None:
    kafka.set_up = lambda broker: broker.answers.update(
        {wire.VERSIONS: lambda: struct.pack(">hihhh", 0, 1, wire.PRODUCE, 9, 11)}
    )
    way = Way(kafka)
    assert not await way.look()
    assert way.broker.closed


async def test_a_login_by_plain_says_name_and_password(kafka: Kafka) -> None:
    way = Way(
        kafka,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="ann",
        sasl_password="secret",
    )
    assert await way.look()
    assert way.broker.kinds() == [wire.VERSIONS, wire.HANDSHAKE, wire.AUTHENTICATE]
    assert way.broker.requests[-1][1].endswith(b"\0ann\0secret")


@pytest.mark.parametrize(
    ("request_kind", "answer"),
    [
        (wire.HANDSHAKE, struct.pack(">hi", 33, 0)),
        (wire.AUTHENTICATE, struct.pack(">hhi", 58, -1, 0)),
    ],
    ids=["the mechanism is not taken", "the password is wrong"],
)
async def test_a_login_that_is_refused(kafka: Kafka, request_kind: int, answer: bytes) -> None:
    kafka.set_up = lambda broker: broker.answers.update({request_kind: lambda: answer})
    way = Way(
        kafka,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="ann",
        sasl_password="secret",
    )
    assert not await way.look()
    assert way.broker.closed


async def test_a_login_by_scram_does_not_believe_a_broker_without_the_password(
    kafka: Kafka,
) -> None:
    way = Way(
        kafka,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username="ann",
        sasl_password="secret",
    )
    assert not await way.look()
    (first,) = [said for kind, said in way.broker.requests if kind == wire.AUTHENTICATE]
    assert b"n,,n=ann,r=" in first and b"secret" not in first


async def test_closing_hangs_up(kafka: Kafka) -> None:
    way = Way(kafka)
    await way.look()
    way.direct.close()
    assert way.broker.closed
    assert not way.direct.ready(TOPIC)
