"""The notifier's and the federation service's endpoints, each with its real server: who comes in, and what
is refused before Kafka is asked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import InvalidStatus

from gateway.settings import GatewaySettings
from penstock.auth.access import Access
from penstock.auth.passwords import hash_setting
from penstock.catalog.model import Database, Entry, Grant, Table, TableVersion, User
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.link.address import Address
from penstock.link.client import Link
from penstock.link.frames import PATH
from penstock.outbound.reach import Outbound, Reach
from penstock.runtime.health import Health
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.federation.information import information
from services.federation.server import LinkServer
from services.federation.settings import FederationSettings
from services.notifier.server import Hub
from services.notifier.settings import NotifierSettings
from tests.unit.services.memory_redis import MemoryRedis
from tests.unit.services.notifier.kit import entry

VERSION = TableVersion(100, (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT"))))
TABLES = [
    Table(i, "d", name, "plain", "in.d", 1, "ms", (VERSION,))
    for name, i in (("mine", 2), ("theirs", 3))
]
TAGGED = TableVersion(101, VERSION.columns, (Column("g", ColumnType("INT")),))
TABLES += [
    Table(i, "d", name, "stable", "in.d", 1, "ms", (TAGGED,))
    for name, i in (("fleet", 4), ("hidden", 5))
]
#: child tables that only rows made
BORN = {(4, "f1"), (5, "h1")}
ANN = User(9, "ann", hash_setting("anns password"), grants=(Grant("READ", 2), Grant("READ", 4)))
Dial = Callable[..., Any]


class _Reader:
    """A catalog that learns of *late* only when it is asked to catch up."""

    def __init__(self, late: Sequence[Entry] = ()) -> None:
        self.catalog = Catalog([Database(1, "d"), *TABLES, ANN])
        self._late = late

    def catch_up(self) -> None:
        for table in self._late:
            self.catalog.put(table)


class _Store:
    def run(self, *_: object) -> Any:
        return iter(())


@asynccontextmanager
async def hub(late: Sequence[Entry] = (), **settings: Any) -> AsyncIterator[Dial]:
    health = Health("notifier", 0)
    made = Hub(
        NotifierSettings(password="secret", **settings),  # type: ignore[arg-type]
        cast(Any, _Reader(late)),
        health,
        cast(Any, MemoryRedis()),
    )
    async with serve(made.serve, "127.0.0.1", 0, process_request=made.admit) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield lambda key, **more: dial(f"ws://127.0.0.1:{port}/ws", key, **more)
    health.close()


@asynccontextmanager
async def link_server(**settings: Any) -> AsyncIterator[Dial]:
    health = Health("federation", 0)
    made = LinkServer(
        FederationSettings(password="secret", **settings),
        cast(Any, _Reader()),
        health,  # type: ignore[arg-type]
        cast(Any, _Store()),
        cast(Any, None),
        lambda seen: information(seen, "here"),
        lambda table, child: (table, child) in BORN,
    )
    async with serve(made.serve, "127.0.0.1", 0, process_request=made.admit) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield lambda key, **more: dial(f"ws://127.0.0.1:{port}{PATH}", key, **more)
    health.close()


def dial(url: str, key: str | None, **more: Any) -> Any:
    return connect(
        url, additional_headers={"Authorization": f"Bearer {key}"} if key else {}, **more
    )


@pytest.mark.parametrize("endpoint", [hub, link_server])
@pytest.mark.parametrize("key", [None, "root:wrong", "nobody:secret", "ann:secret", "a.b.c"])
async def test_nobody_comes_in_without_a_key(endpoint: Any, key: str | None) -> None:
    async with endpoint() as way:
        with pytest.raises(InvalidStatus, match="401"):
            async with way(key):
                pass


@pytest.mark.parametrize("key", ["root:secret", "root:wrong"])
async def test_a_link_that_leads_back_to_its_mesh_is_refused_whatever_way_it_took(key: str) -> None:
    """A port that passes everything on, as a NAT would: no address tells that the mesh itself is
    behind it.
    """
    secret = SecretStr("s" * 40)
    user, _, password = key.partition(":")
    catalog = Catalog([])

    def reach(token_key: SecretStr, **more: Any) -> Reach:
        settings = GatewaySettings(token_key=token_key, **more)
        return Outbound(settings, Access(lambda: catalog, "root")).reach("root", link=True)

    async with link_server(token_key=secret) as way:
        port = urlsplit(way(None).uri).port or 0
        with pytest.raises(CatalogError, match="may not be connected to") as refused:
            await asyncio.to_thread(
                Link, Address("127.0.0.1", port, user, password, allowed=reach(secret)), timeout=5
            )
        assert refused.value.code == "E_EXTERNAL_HOST"
        if key == "root:secret":
            for allowed in (None, reach(SecretStr("t" * 40)), reach(secret, external_self=True)):
                link = await asyncio.to_thread(
                    Link, Address("127.0.0.1", port, user, password, allowed=allowed), timeout=5
                )
                await asyncio.to_thread(link.close)


@pytest.mark.parametrize("endpoint", [hub, link_server])
async def test_pages_of_other_origins_stay_out(endpoint: Any) -> None:
    async with endpoint() as way:
        with pytest.raises(InvalidStatus, match="403"):
            async with way("root:secret", origin="http://evil.example"):
                pass


async def ask(way: Dial, key: str, request: dict[str, Any]) -> dict[str, Any]:
    async with way(key) as socket:
        await socket.send(json.dumps(request))
        return dict(json.loads(await socket.recv()))


@pytest.mark.parametrize("table", ["d.theirs", "d.nothing", "nowhere.t"])
async def test_a_subscription_needs_read(table: str) -> None:
    async with hub() as way:
        answer = await ask(
            way, "ann:anns password", {"action": "subscribe", "id": "a", "table": table}
        )
        assert (answer["type"], answer["code"]) == ("error", "E_FORBIDDEN")
        assert f"READ on {table}" in answer["message"], (
            "that a table exists is not told to who may not read it"
        )


@pytest.mark.parametrize(
    ("result_of", "code"), [(12, "E_RESUME_TOKEN"), (None, "E_FORBIDDEN"), (11, "E_FORBIDDEN")]
)
async def test_read_on_a_stream_reads_its_own_result_table_only(
    result_of: int | None, code: str
) -> None:
    """Whoever may WRITE a table can let a stream write into it; READ on that stream is no READ on
    the table.
    """
    target = Table(13, "db", "r", "stable", "in.db", 1, "ms", (TAGGED,), result_of=result_of)
    bob = User(
        20, "bob", hash_setting("bobs password"), grants=(Grant("READ", 12), Grant("WRITE", 13))
    )
    async with hub(late=[Database(10, "db"), target, entry(), bob]) as way:
        await ask(
            way,
            "root:secret",
            {"action": "subscribe", "id": "a", "table": "db.r", "from": "nonsense"},
        )
        answer = await ask(
            way,
            "bob:bobs password",
            {"action": "subscribe", "id": "a", "stream": "db.s", "from": "nonsense"},
        )
        assert answer["code"] == code


@pytest.mark.parametrize(
    ("key", "code"), [("root:secret", "E_RESUME_TOKEN"), ("ann:anns password", "E_FORBIDDEN")]
)
async def test_a_table_made_just_now_is_there(key: str, code: str) -> None:
    newborn = Table(6, "d", "newborn", "plain", "in.d", 1, "ms", (VERSION,))
    async with hub(late=[newborn]) as way:
        answer = await ask(
            way, key, {"action": "subscribe", "id": "a", "table": "d.newborn", "from": "nonsense"}
        )
        assert answer["code"] == code, "what is asked of the table comes after finding it"


async def test_one_address_may_not_take_all_places() -> None:
    async with hub(max_clients_per_address=2) as way:
        async with way("ann:anns password"), way("root:secret"):
            with pytest.raises(InvalidStatus, match="429"):
                async with way("root:secret"):
                    pass
        async with way("root:secret"):
            pass


@pytest.mark.parametrize(("endpoint", "limit"), [(hub, "max_clients"), (link_server, "max_links")])
async def test_a_service_takes_so_many_and_no_more(endpoint: Any, limit: str) -> None:
    async with endpoint(**{limit: 1}) as way:
        async with way("root:secret"):
            with pytest.raises(InvalidStatus, match="503") as refused:
                async with way("ann:anns password"):
                    pass
            assert refused.value.response.body.startswith(b"E_OVERLOAD")


REFUSED = [
    ({"op": "describe", "database": "d", "table": "theirs"}, "READ on d.theirs"),
    ({"op": "describe", "database": "nowhere", "table": "t"}, "READ on nowhere.t"),
    ({"op": "query", "sql": "SELECT * FROM d.theirs"}, "READ on d.theirs"),
    (
        {"op": "query", "sql": "SELECT * FROM d.mine UNION SELECT * FROM theirs", "database": "d"},
        "READ on d.theirs",
    ),
    ({"op": "subscribe", "sql": "SELECT * FROM d.theirs"}, "READ on d.theirs"),
    ({"op": "append", "table": "mine", "database": "d"}, "WRITE on table d.mine"),
    ({"op": "describe", "database": "d", "table": "h1"}, "READ on d.h1"),
    ({"op": "query", "sql": "SELECT * FROM d.h1"}, "READ on d.h1"),
    ({"op": "describe", "database": "d", "table": "f2"}, "READ on d.f2"),
]


@pytest.mark.parametrize(("request_", "words"), REFUSED)
async def test_a_link_asks_for_the_right_of_each_channel(
    request_: dict[str, Any], words: str
) -> None:
    async with link_server() as way:
        answer = await ask(way, "ann:anns password", {"ch": 1, **request_})
        assert (answer["type"], answer["code"]) == ("error", "E_FORBIDDEN") and words in answer[
            "message"
        ]


async def test_a_link_gives_what_is_granted() -> None:
    async with link_server() as way:
        described = await ask(
            way, "ann:anns password", {"ch": 1, "op": "describe", "database": "d", "table": "mine"}
        )
        assert described["type"] == "answer" and described["table"]["name"] == "mine"
        born = await ask(
            way, "ann:anns password", {"ch": 1, "op": "describe", "database": "d", "table": "f1"}
        )
        assert (born["type"], born["table"]["name"], born["table"]["child"]) == (
            "answer",
            "fleet",
            "f1",
        )
        assert (
            await ask(
                way, "ann:anns password", {"ch": 1, "op": "query", "sql": "SELECT * FROM d.f1"}
            )
        )["type"] == "end"
        assert (
            await ask(
                way, "ann:anns password", {"ch": 1, "op": "query", "sql": "SELECT * FROM d.mine"}
            )
        )["type"] == "end"
        assert (
            await ask(way, "root:secret", {"ch": 1, "op": "query", "sql": "SELECT * FROM d.theirs"})
        )["type"] == "end"
        assert (await ask(way, "ann:anns password", {"ch": 1, "op": "information"}))[
            "databases"
        ] == ["d"]


@pytest.mark.parametrize("request_", [r for r, _ in REFUSED])
async def test_H15_a_peer_refuses_by_name_what_it_does_not_know(request_: dict[str, Any]) -> None:
    async with link_server() as way:
        answer = await ask(way, "root:secret", {"ch": 1, **request_, "sparkle": True})
        assert (
            answer["code"] == "E_REQUEST"
            and answer["message"] == f"{request_['op']} has no parameter sparkle"
        )
