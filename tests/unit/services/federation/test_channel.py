"""One channel of a link: credit, order, and parameters that nobody here knows."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from penstock.link.frames import CREDIT, FrameError, pack, split
from services.federation.channel import PARAMETERS, BadLinkRequest, check_parameters, read_rows
from services.federation.subscription import Out
from tests.unit.services.federation.kit import channel

ROWS = pa.table({"v": [1, 2]})


async def test_messages_name_their_channel() -> None:
    subject, peer = channel()
    await subject.say({"type": "end"})
    assert peer.messages() == [({"ch": 3, "type": "end"}, None)]


async def test_frames_wait_for_credit() -> None:
    subject, peer = channel()
    for _ in range(CREDIT):
        await subject.send_frame(pack({"ch": 3}, ROWS), 2)
    waiting = asyncio.create_task(subject.send_frame(pack({"ch": 3}, ROWS), 2))
    await asyncio.sleep(0)
    assert len(peer.sent) == CREDIT and not waiting.done()
    subject.add_credit(-5)
    await asyncio.sleep(0)
    assert not waiting.done()
    subject.add_credit(1)
    await waiting
    assert len(peer.sent) == CREDIT + 1
    assert subject.credit == 0
    assert subject.sent_rows._value.get() == 2 * (CREDIT + 1)


async def test_messages_of_a_subscription_come_in_order_and_only_rows_cost_credit() -> None:
    subject, peer = channel()
    await subject.give([Out({"type": "schema"}), Out({"type": "rows"}, ROWS), Out({"type": "x"})])
    kinds = [header["type"] for header, _ in peer.messages()]
    assert kinds == ["schema", "rows", "x"]
    assert peer.numbers() == [1, 2]
    assert subject.credit == CREDIT - 1


async def test_large_rows_are_packed_beside_the_loop() -> None:
    subject, peer = channel()
    large = pa.table({"v": list(range(50_000))})
    await subject.give([Out({"type": "rows"}, large)])
    assert peer.numbers() == list(range(50_000))


async def test_nothing_to_send_lets_others_work() -> None:
    subject, _ = channel()
    others: list[int] = []
    asyncio.get_running_loop().call_soon(others.append, 1)
    await subject.give([])
    assert others == [1]


async def test_a_channel_is_open_while_its_task_runs() -> None:
    subject, _ = channel()
    assert not subject.is_open
    subject.cancel()
    subject.task = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]
    assert subject.is_open
    subject.cancel()
    await asyncio.gather(subject.task, return_exceptions=True)
    assert not subject.is_open


@pytest.mark.parametrize("op", sorted(PARAMETERS))
def test_parameters_are_known_or_refused(op: str) -> None:
    known = dict.fromkeys(PARAMETERS[op], "x")
    check_parameters(op, {"ch": 1, "op": op, "credit": 5, **known})
    with pytest.raises(BadLinkRequest) as wrong:
        check_parameters(op, {"ch": 1, "op": op, "sooner": 1})
    assert wrong.value.code == "E_REQUEST"
    assert wrong.value.message == f"{op} has no parameter sooner"


@pytest.mark.parametrize("count", [2, 50_000])
async def test_rows_of_a_frame(count: int) -> None:
    table = pa.table({"v": list(range(count))})
    _, body = split(pack({"ch": 1}, table))
    assert body is not None
    assert (await read_rows(body)).equals(table)


async def test_what_is_no_frame() -> None:
    with pytest.raises(FrameError):
        await read_rows(memoryview(b"junk"))
