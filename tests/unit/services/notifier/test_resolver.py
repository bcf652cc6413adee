"""Requests for subscriptions: what is asked for, whether it may be read, and where it begins."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import names
from penstock.auth.access import Access
from penstock.catalog.model import Child, Database, Entry, Grant, Table, TableVersion, User
from penstock.catalog.view import Catalog
from penstock.errors import PenstockError
from penstock.feeds.cursor import Cursor
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.notifier.resolver import (
    BadHubRequest,
    ResolvedSubscription,
    SubscriptionResolver,
    parse_request,
)
from services.notifier.subscription import EventSubscription, RowSubscription
from tests.unit.services.notifier.kit import entry

COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT")))
DATABASE = Database(1, "db", partitions=2)
METERS = Table(7, "db", "meters", "stable", "in.db", 2, "ms", (TableVersion(107, COLUMNS),))
RESULT = Table(
    13, "db", "r", "stable", "in.db", 2, "ms", (TableVersion(113, COLUMNS),), result_of=12
)
OTHER = Database(2, "other")


class Feed:
    """A topic with records 5 to 20 in each partition."""

    def __init__(self, topic: str, partitions: int) -> None:
        self.topic = topic
        self.partitions = range(partitions)
        self.asked = 0

    def ends(self) -> dict[int, int]:
        return dict.fromkeys(self.partitions, 20)

    def beginnings(self) -> dict[int, int]:
        return dict.fromkeys(self.partitions, 5)

    def log_ends(self) -> dict[int, int]:
        self.asked += 1
        return dict.fromkeys(self.partitions, 25)


class Asking:
    def __init__(self, *entries: Entry) -> None:
        self.catalog = Catalog([DATABASE, OTHER, METERS, RESULT, entry(), *entries])
        self.late: list[Entry] = []
        reader: Any = SimpleNamespace(catalog=self.catalog, catch_up=self._catch_up)
        feeds: Any = SimpleNamespace(of=self._feed)
        access = Access(lambda: self.catalog, "root")
        self.resolver = SubscriptionResolver(reader, access, feeds)

    def _catch_up(self) -> None:
        for late in self.late:
            self.catalog.put(late)

    async def _feed(self, topic: str) -> Feed:
        return Feed(topic, 4 if topic == names.EVENTS else 2)

    def allow(self, name: str, on: int) -> str:
        self.catalog.put(
            User(900 + len(self.catalog.users()), name, "", grants=(Grant("READ", on),))
        )
        return name

    async def ask(self, user: str = "root", **request: Any) -> ResolvedSubscription:
        return await self.resolver.resolve(request, user)

    async def refusal(self, user: str = "root", **request: Any) -> PenstockError:
        with pytest.raises(PenstockError) as wrong:
            await self.ask(user, **request)
        return wrong.value


def cursor(found: ResolvedSubscription) -> dict[int, int]:
    return found.subscription.cursor.offsets


@pytest.mark.parametrize(
    "form", [{"limit": n} for n in (0, -1, 10_001, 1.5, "5", True)] + [{"exact": 1}]
)
async def test_forms_of_rows_that_are_none(form: dict[str, Any]) -> None:
    assert isinstance(await Asking().refusal(table="db.meters", **form), BadHubRequest)


async def test_rows_of_a_table_a_stream_and_a_child_table() -> None:
    asking = Asking(Child(50, "db", METERS.id, "Kitchen", ()))
    table = await asking.ask(table="db.meters")
    assert isinstance(table.subscription, RowSubscription)
    assert (table.subject, table.feed.topic) == (METERS, "in.db")
    stream = await asking.ask(stream="db.s")
    assert stream.subject == asking.catalog.stream("db", "s")
    child = await asking.ask(table="db.kitchen")
    assert child.subject == METERS
    assert child.subscription._tables == ["kitchen"]  # type: ignore[union-attr]
    named = await asking.ask(table="db.meters", tables=["a", "b"])
    assert named.subscription._tables == ["a", "b"]  # type: ignore[union-attr]


async def test_events_of_a_stream() -> None:
    asking = Asking()
    found = await asking.ask(what="events", stream="db.s")
    assert isinstance(found.subscription, EventSubscription)
    assert found.feed.topic == names.EVENTS
    assert cursor(found) == dict.fromkeys(range(4), 20)


async def test_a_stream_without_events() -> None:
    silent = entry()
    silent = dataclasses.replace(silent, plan=dataclasses.replace(silent.plan, notify=None))
    error = await Asking(silent).refusal(what="events", stream="db.s")
    assert error.code == "E_NO_EVENTS"


async def test_a_stream_without_a_result_table_has_events_only() -> None:
    one = entry()
    target = dataclasses.replace(one.plan.target, table="meters", stored=False)
    asking = Asking(dataclasses.replace(one, plan=dataclasses.replace(one.plan, target=target)))
    found = await asking.ask(asking.allow("bob", 12), what="events", stream="db.s")
    assert isinstance(found.subscription, EventSubscription)
    error = await asking.refusal(stream="db.s")
    assert error.code == "E_TABLE_NOT_EXIST" and "events" in error.hint
    error = await asking.refusal(what="events", stream="db.s", tables=["d1"])
    assert error.code == "E_REQUEST" and "tags" in error.hint


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"what": "news"}, "E_REQUEST"),
        ({"table": "db.meters", "tables": "a"}, "E_REQUEST"),
        ({"table": "db.meters", "tables": [1]}, "E_REQUEST"),
        ({"table": "db.no"}, "E_TABLE_NOT_EXIST"),
        ({"table": "meters"}, "E_TABLE_NOT_EXIST"),
        ({}, "E_TABLE_NOT_EXIST"),
        ({"stream": "db.no"}, "E_STREAM_NOT_EXIST"),
        ({"what": "events"}, "E_STREAM_NOT_EXIST"),
        ({"table": "db.meters", "from": "junk"}, "E_RESUME_TOKEN"),
    ],
)
async def test_what_cannot_be_had(request_: dict[str, Any], code: str) -> None:
    assert (await Asking().refusal(**request_)).code == code


async def test_where_rows_begin() -> None:
    asking = Asking()
    assert cursor(await asking.ask(table="db.meters")) == {0: 20, 1: 20}
    assert cursor(await asking.ask(table="db.meters", **{"from": "earliest"})) == {0: 5, 1: 5}
    token = Cursor({0: 7, 1: 20}).token()
    assert cursor(await asking.ask(table="db.meters", **{"from": token})) == {0: 7, 1: 20}
    ahead = Cursor({0: 22, 1: 20}).token()
    assert cursor(await asking.ask(table="db.meters", **{"from": ahead})) == {0: 22, 1: 20}
    beyond = Cursor({0: 26, 1: 20}).token()
    error = await asking.refusal(table="db.meters", **{"from": beyond})
    assert error.code == "E_RESUME_TOKEN" and "past the end" in error.message


async def test_a_token_of_an_earlier_generation() -> None:
    moved = dataclasses.replace(DATABASE, former=((30,),))
    table = dataclasses.replace(METERS, topic=moved.topic)
    asking = Asking(moved, table)
    found = await asking.ask(table="db.meters", **{"from": Cursor({0: 7}).token()})
    assert found.feed.topic == "in.db"
    assert (await asking.ask(table="db.meters", **{"from": "earliest"})).feed.topic == "in.db"
    assert (await asking.ask(table="db.meters")).feed.topic == moved.topic


async def test_who_may_read_what() -> None:
    asking = Asking()
    of_table = asking.allow("ann", METERS.id)
    of_stream = asking.allow("bob", 12)
    nobody = asking.allow("carl", OTHER.id)
    assert (await asking.ask(of_table, table="db.meters")).subject == METERS
    assert (await asking.refusal(of_table, stream="db.s")).code == "E_FORBIDDEN"
    assert (await asking.ask(of_stream, stream="db.s")).subject
    assert (await asking.ask(of_stream, table="db.r")).subject == RESULT
    assert (await asking.refusal(of_stream, table="db.meters")).code == "E_FORBIDDEN"
    there = await asking.refusal(nobody, table="db.meters")
    nowhere = await asking.refusal(nobody, table="db.metres")
    assert there.code == nowhere.code == "E_FORBIDDEN"
    assert there.message.replace("meters", "metres") == nowhere.message
    for what in ({"stream": "db.s"}, {"stream": "db.no"}, {"what": "events", "stream": "db.s"}):
        assert (await asking.refusal(nobody, **what)).code == "E_FORBIDDEN"


async def test_read_on_a_stream_goes_with_its_own_result_only() -> None:
    foreign = dataclasses.replace(RESULT, result_of=99)
    asking = Asking(foreign)
    of_stream = asking.allow("bob", 12)
    assert (await asking.refusal(of_stream, stream="db.s")).code == "E_FORBIDDEN"
    assert (await asking.ask(stream="db.s")).subject == foreign


async def test_what_was_made_just_now_is_waited_for() -> None:
    asking = Asking()
    fresh = dataclasses.replace(METERS, id=70, name="fresh")
    asking.late.append(fresh)
    assert (await asking.ask(table="db.fresh")).subject == fresh


@pytest.mark.parametrize("text", ["", "[]", "1", "{", b"\xff"])
def test_what_is_no_request(text: str | bytes) -> None:
    with pytest.raises(BadHubRequest) as wrong:
        parse_request(text)
    assert wrong.value.code == "E_REQUEST"


def test_clients_cannot_set_what_is_ours() -> None:
    assert parse_request('{"table": "db.t", "_child": "x"}') == {"table": "db.t"}
