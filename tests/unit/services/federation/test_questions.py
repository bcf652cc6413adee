"""Questions over a link that have one answer, and the store that is asked for rows."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from penstock.catalog.view import Catalog
from penstock.errors import PenstockError
from penstock.link.description import Description
from services.federation import reading
from services.federation.questions import Questions
from services.federation.reading import StoreReader
from tests.unit.services.federation.kit import (
    DATABASE,
    PLAIN,
    STABLE,
    TOPIC,
    VIEW,
    Deployment,
    channel,
    record,
)


class Store:
    """Answers in pieces."""

    def __init__(self, *pieces: pa.Table) -> None:
        self.pieces = pieces
        self.asked: list[tuple[str, str, str, int]] = []

    def run(self, sql: str, database: str, timezone: str, rows: int) -> Iterator[pa.Table]:
        self.asked.append((sql, database, timezone, rows))
        return iter(self.pieces)


def questions(here: Deployment, store: Any = None) -> Questions:
    def information(seen: Catalog) -> dict[str, Any]:
        return {"databases": [d.name for d in seen.databases()]}

    return Questions(here.reader, here.access, here.lookup, store or Store(), information, 500)


async def test_everybody_is_told_what_they_see(tmp_path: Path) -> None:
    here = Deployment(tmp_path)
    for user, databases in ((here.allow("ann", "READ"), ["d"]), (here.allow("bob"), [])):
        subject, peer = channel(user)
        await questions(here).inform(subject, {})
        assert peer.said("answer") == [{"ch": 3, "type": "answer", "databases": databases}]


async def test_a_table_is_described(tmp_path: Path) -> None:
    here = Deployment(tmp_path, DATABASE, PLAIN, STABLE, VIEW)
    here.born.add((STABLE.id, "garage"))
    subject, peer = channel()
    for request in (
        {"table": "meters", "database": "d"},
        {"table": "d.meters"},
        {"table": "garage", "database": "d"},
        {"table": "up", "query": "up"},
        {"table": "plain", "serial": VIEW.id},
    ):
        await questions(here).describe(subject, request)
    found = [Description.from_json(m["table"]) for m in peer.said("answer")]
    assert [(d.name, d.child) for d in found] == [
        ("meters", None),
        ("meters", None),
        ("meters", "garage"),
        ("plain", None),
        ("plain", None),
    ]
    assert found[0].versions == STABLE.schema_ids


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"table": "no", "database": "d"}, "E_NO_TABLE"),
        ({"table": "t", "query": "nobody"}, "E_NO_QUERY"),
    ],
)
async def test_what_cannot_be_described(tmp_path: Path, request_: Any, code: str) -> None:
    here = Deployment(tmp_path)
    subject, peer = channel(here.allow("ann", "READ"))
    with pytest.raises(PenstockError) as wrong:
        await questions(here).describe(subject, request_)
    assert wrong.value.code == code and peer.sent == []


async def test_a_table_in_the_scope_of_a_query_needs_read_as_well(tmp_path: Path) -> None:
    here = Deployment(tmp_path, DATABASE, PLAIN, STABLE, VIEW)
    subject, _ = channel(here.allow("bob"))
    with pytest.raises(PenstockError) as no:
        await questions(here).describe(subject, {"table": "up", "query": "d.up"})
    assert no.value.code == "E_FORBIDDEN"


async def test_rows_of_a_query_come_frame_by_frame(tmp_path: Path) -> None:
    here = Deployment(tmp_path)
    store = Store(pa.table({"v": [1, 2]}), pa.table({"v": [3]}))
    subject, peer = channel(here.allow("ann", "READ"))
    await questions(here, store).query(subject, {"sql": "SELECT v FROM plain", "database": "d"})
    assert peer.numbers() == [1, 2, 3]
    assert [header["type"] for header, _ in peer.messages()] == ["rows", "rows", "end"]
    assert store.asked == [("SELECT v FROM plain", "d", "UTC", 500)]


async def test_a_query_without_the_right_does_not_reach_the_store(tmp_path: Path) -> None:
    here = Deployment(tmp_path)
    store = Store()
    subject, peer = channel(here.allow("bob"))
    with pytest.raises(PenstockError) as no:
        await questions(here, store).query(subject, {"sql": "SELECT v FROM d.plain"})
    assert no.value.code == "E_FORBIDDEN"
    assert (store.asked, peer.sent) == ([], [])


# -------------------------------------------------------------------- the store


class Flight:
    """Stands where `pyarrow.flight.FlightClient` does."""

    def __init__(self, *batches: list[int]) -> None:
        schema = pa.schema([("v", pa.int64())], metadata={b"penstock.positions": b"{}"})
        self.schema = schema
        self._batches = [pa.record_batch({"v": b}, schema=schema) for b in batches]
        self.tickets: list[Any] = []
        self.options: Any = None
        self.error: pa.ArrowException | None = None
        self.closed = False

    def do_get(self, ticket: flight.Ticket, options: Any) -> Any:
        if self.error is not None:
            raise self.error
        self.tickets.append(json.loads(ticket.ticket))
        self._left = iter(self._batches)
        return self

    def read_chunk(self) -> Any:
        class Chunk:
            data = next(self._left)

        return Chunk

    def close(self) -> None:
        self.closed = True


class Reading(Deployment):
    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, client: Flight) -> None:
        super().__init__(directory)
        self.client = client
        self.headers: list[Any] = []
        monkeypatch.setattr(flight, "FlightClient", lambda url, **_: client)
        options = flight.FlightCallOptions

        def note(**given: Any) -> Any:
            self.headers += given["headers"]
            return options(**given)

        monkeypatch.setattr(reading.flight, "FlightCallOptions", note)
        self.store = StoreReader("grpc://store:1", "root", "secret", self.reader, self.log, None)

    def run(self, sql: str, rows: int = 3, database: str = "d") -> list[list[int]]:
        pieces = self.store.run(sql, database, "UTC", rows)
        return [piece.column("v").to_pylist() for piece in pieces]


def test_pieces_have_at_least_so_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Reading(tmp_path, monkeypatch, Flight([1, 2], [3, 4], [5]))
    assert here.run("SELECT v FROM plain") == [[1, 2, 3, 4], [5]]
    assert here.run("SELECT v FROM plain", rows=1) == [[1, 2], [3, 4], [5]]
    assert here.run("SELECT v FROM plain", rows=99) == [[1, 2, 3, 4, 5]]
    header = b"Basic " + base64.b64encode(b"root:secret")
    assert here.headers == [(b"authorization", header)]


def test_an_empty_answer_has_its_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Reading(tmp_path, monkeypatch, Flight())
    (piece,) = here.store.run("SELECT v FROM plain", "d", "UTC", 10)
    assert piece.num_rows == 0
    assert piece.schema.metadata == {b"penstock.positions": b"{}"}


def test_the_answer_has_all_that_was_there_before_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Reading(tmp_path, monkeypatch, Flight([1]))
    here.catalog.revision = 9
    here.log.append(TOPIC, record(PLAIN, ("plain", 1, 1)))
    here.log.append(TOPIC, record(PLAIN, ("plain", 2, 2)))
    for sql, after in (
        ("SELECT v FROM plain", {f"{TOPIC}:0": 1}),
        ("SELECT v FROM somechild", {f"{TOPIC}:0": 1}),
        ("SELECT v FROM other.x", {}),
        ("SELECT 1", {}),
    ):
        here.run(sql)
        ticket = here.client.tickets[-1]
        assert (ticket["after"], ticket["revision"], ticket["positions"]) == (after, 9, True)
    here.run("SELECT v FROM plain", database="")
    assert here.client.tickets[-1]["after"] == {}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            '{"code": "E_RESULT_TOO_LARGE", "message": "more than 5 rows"}. gRPC',
            "E_RESULT_TOO_LARGE",
        ),
        ("failed to connect to all addresses", "E_STORE_DOWN"),
        ("{half a thing", "E_STORE_DOWN"),
    ],
)
def test_errors_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: str
) -> None:
    client = Flight()
    client.error = pa.ArrowInvalid(text)
    here = Reading(tmp_path, monkeypatch, client)
    with pytest.raises(PenstockError) as wrong:
        here.run("SELECT v FROM plain")
    assert wrong.value.code == code


def test_closing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Reading(tmp_path, monkeypatch, Flight())
    here.store.close()
    assert here.client.closed
