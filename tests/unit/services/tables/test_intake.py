"""Rows of producers: what a write says of itself, who may write, and where the answers come from."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from aiohttp import web

from penstock.errors import PenstockError, RemoteError
from services.tables.intake import ProducerIntake
from tests.unit.services.tables.kit import Log, Node, rows, stream_table
from tests.unit.services.tables.served_node import (
    SETTINGS,
    ServedNode,
    Socket,
    ask,
    content,
    make_request,
)

ROWS = "/v1/tables/ha/trades/rows"


def body(
    sequence: object = 1, producer: str = "p", data: pa.Table | None = None, **more: object
) -> bytes:
    """A write as producers send it."""
    said = {"producer": producer, "seq": sequence} | more
    table = (rows(1, 2) if data is None else data).replace_schema_metadata(
        {f"penstock.{name}": str(value) for name, value in said.items()}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


class Intake(ServedNode):
    """A node that takes writes of ann."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.intake = ProducerIntake(SETTINGS, self.lookup, self.others)
        self.confirmed: list[float] = []
        self.intake.on_confirmed = self.confirmed.append
        self.ann = self.allow("ann", "WRITE")

    async def post(self, data: bytes, **more: Any) -> web.Response:
        """What a write over HTTP is answered, when Kafka has taken all there is."""
        user = more.pop("user", self.ann)
        asked = asyncio.create_task(
            ask(self.intake.routes(), "POST", ROWS, data, user=user, **more)
        )
        while not asked.done():
            await asyncio.sleep(0)
            if self.nodes[0].session is not None:
                self.nodes[0].settle()
        return await asked


@pytest.fixture
async def served(tmp_path: Path) -> Intake:
    table = stream_table()
    return Intake(Node("N1", table, Log(table.topic), tmp_path, asyncio.get_running_loop()))


async def refusal(served: Intake, data: bytes, **more: Any) -> PenstockError:
    with pytest.raises(PenstockError) as wrong:
        await served.post(data, **more)
    return wrong.value


async def test_a_write_over_http_is_answered_when_it_is_in_the_log(served: Intake) -> None:
    served.lead_here()
    answer = await served.post(body())
    assert content(answer) == {"rows": 2, "node": "N1"}
    assert served.nodes[0].numbers() == [1, 2]
    assert len(served.confirmed) == 1
    again = await served.post(body())
    assert content(again) == {"rows": 2, "node": "N1"}
    assert served.nodes[0].numbers() == [1, 2], "the same write counts once"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"junk", "not an Arrow IPC stream"),
        (body("one"), "no write"),
        (body(0), "sequence number from 1 on"),
        (body(1 << 63), "sequence number from 1 on"),
        (body(producer=""), "at most 128 characters"),
        (body(producer="p" * 129), "at most 128 characters"),
        (body(producer="o:action"), "name is one of a subscription's offset"),
        (body(producer="u:3:action"), "name is one of a subscription's offset"),
        (body(settled="x"), "no write"),
        (body(after="x"), "no write"),
    ],
)
async def test_what_is_no_write(served: Intake, data: bytes, words: str) -> None:
    served.lead_here()
    error = await refusal(served, data)
    assert error.code == "E_BODY"
    assert words in error.message
    assert served.nodes[0].numbers() == []


async def test_rows_that_do_not_fit_and_writes_out_of_order(served: Intake) -> None:
    served.lead_here()
    error = await refusal(served, body(data=pa.table({"ts": ["x"]})))
    assert error.code == "E_ROW"
    error = await refusal(served, body(9, settled=1))
    assert error.code == "E_SEQUENCE"
    error = await refusal(served, body(5, after=2))
    assert error.code == "E_SEQUENCE"


async def test_who_may_not_write(served: Intake) -> None:
    served.lead_here()
    reader = served.allow("bob", "READ")
    assert (await refusal(served, body(), user=reader)).code == "E_FORBIDDEN"


async def test_a_write_is_passed_on_to_the_leader(served: Intake) -> None:
    served.lead_elsewhere()
    served.others.answers["http://n2"] = (200, {"rows": 2, "node": "N2"})
    answer = await served.post(body())
    assert content(answer) == {"rows": 2, "node": "N2"}
    assert served.others.calls == [("POST", f"http://n2{ROWS}", body())]
    served.others.answers["http://n2"] = (429, {"error": {"code": "E_OVERLOAD"}})
    assert (await served.post(body())).status == 429


async def test_a_write_that_was_passed_on_once_is_not_passed_on_again(served: Intake) -> None:
    served.lead_elsewhere()
    assert (await refusal(served, body(), forwarded=True)).code == "E_NOT_LEADER"
    assert served.others.calls == []


async def test_without_a_leader_a_write_goes_nowhere(served: Intake) -> None:
    assert (await refusal(served, body())).code == "E_NOT_LEADER"
    served.standing.leader = "N1"
    assert (await refusal(served, body())).code == "E_NOT_LEADER", "it is about to lead"


async def test_a_leader_without_a_majority_refuses_writes(served: Intake) -> None:
    served.lead_here()
    session = served.nodes[0].session
    assert session is not None
    session.leadership.refuses = "no quorum: of group 11's 3 members N1 is there, 2 are needed"
    assert (await refusal(served, body())).code == "E_NO_QUORUM"


async def test_a_producer_asks_how_far_it_is(served: Intake) -> None:
    path = "/v1/tables/ha/trades/producer"
    with pytest.raises(RemoteError):
        await ask(served.intake.routes(), "GET", f"{path}?id=p", user="ann")
    served.lead_here()
    asked = await ask(served.intake.routes(), "GET", f"{path}?id=p", user="ann")
    assert content(asked) == {"sequence": 0}
    await served.post(body(1))
    await served.post(body(2))
    asked = await ask(served.intake.routes(), "GET", f"{path}?id=p", user="ann")
    assert content(asked) == {"sequence": 2}


# -------------------------------------------------------------------- over a WebSocket


class Producer:
    """A connection of ann's."""

    def __init__(self, served: Intake, socket: Socket, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(web, "WebSocketResponse", socket)
        self.served = served
        self.socket = socket

    def answers(self) -> list[Any]:
        return [a for text in self.socket.texts[1:] for a in text["answers"]]

    async def run(self, count: int) -> None:
        """Serve the connection until *count* answers have come, and hang up."""
        app = web.Application()
        app.add_routes(self.served.intake.routes())
        request = make_request("GET", "/v1/append?table=ha.trades")
        request["user"] = "ann"
        serving = asyncio.create_task(app._handle(request))
        while len(self.answers()) < count and not serving.done():
            await asyncio.sleep(0)
            if self.served.nodes[0].session is not None:
                self.served.nodes[0].settle()
        self.socket.leave()
        await serving


async def test_each_write_of_a_connection_has_its_answer(
    served: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.lead_here()
    socket = Socket(body(1), body(2), b"junk", body(4), stays=True)
    producer = Producer(served, socket, monkeypatch)
    await producer.run(4)
    assert socket.texts[0]["leads"] is True
    assert socket.texts[0]["node"] == "N1"
    by_sequence = {a["seq"]: a for a in producer.answers()}
    assert by_sequence[1]["rows"] == by_sequence[2]["rows"] == 2
    assert by_sequence[-1]["error"]["code"] == "E_BODY"
    assert by_sequence[4]["rows"] == 2, "4 is settled, so nothing before it is missing"
    assert served.intake.producers == 0
    assert len(served.confirmed) == 3


async def test_a_producer_learns_who_leads(served: Intake, monkeypatch: pytest.MonkeyPatch) -> None:
    served.lead_elsewhere()
    socket = Socket(body(1), stays=True)
    producer = Producer(served, socket, monkeypatch)
    await producer.run(1)
    assert socket.texts[0]["leads"] is False
    (answer,) = producer.answers()
    assert answer["error"]["code"] == "E_NOT_LEADER"
    assert answer["leader"] == {"node": "N2", "url": "http://n2", "epoch": 0}


async def test_a_right_that_is_taken_away_ends_writing(
    served: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.lead_here()
    socket = Socket(stays=True)
    producer = Producer(served, socket, monkeypatch)
    app = web.Application()
    app.add_routes(served.intake.routes())
    request = make_request("GET", "/v1/append?table=ha.trades")
    request["user"] = "ann"
    serving = asyncio.create_task(app._handle(request))
    await socket.until(lambda: len(socket.texts) == 1)
    assert served.intake.producers == 1
    served.allow("ann", "READ")
    socket.say(body(1))
    await socket.until(lambda: len(producer.answers()) == 1)
    assert producer.answers()[0]["error"]["code"] == "E_FORBIDDEN"
    socket.leave()
    await serving
    assert served.nodes[0].numbers() == []


async def test_large_writes_are_read_beside_the_loop(served: Intake) -> None:
    served.lead_here()
    answer = await served.post(body(data=rows(*range(10_000))))
    assert content(answer)["rows"] == 10_000
