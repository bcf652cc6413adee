"""200,000 child tables in a real Redis: lists answer, and no question keeps Redis from everybody
else.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest
import redis

from gateway import rows
from gateway.children import Children
from gateway.information.schema import Information
from penstock import names
from penstock.auth.access import Access
from penstock.catalog.model import Child
from penstock.catalog.view import Catalog
from penstock.coordination.redis_link import CHUNK
from penstock.setup.redis_server import find_redis_server
from penstock.sql import parse_one
from penstock.sql.statements import Query, Show
from tests.unit.gateway.test_information import CATALOG, STABLE
from tests.unit.gateway.test_rows import METERS, NOW

COUNT = 200_000
#: commands that answer with a whole hash, whatever its size
WHOLE = {"cmdstat_hkeys", "cmdstat_hgetall", "cmdstat_hvals", "cmdstat_keys"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    directory = tmp_path_factory.mktemp("redis")
    command = [
        str(find_redis_server()),
        "--port",
        "0",
        "--unixsocket",
        str(directory / "s"),
        "--save",
        "",
        "--dir",
        str(directory),
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    for line in server.stdout:
        if "eady to accept connections" in line:
            break
    try:
        with redis.Redis(unix_socket_path=str(directory / "s"), socket_timeout=30) as found:
            key = names.children(STABLE.id)
            for start in range(0, COUNT, 20_000):
                found.hset(
                    key,
                    mapping={f"child{i}": '{"site": "x"}' for i in range(start, start + 20_000)},
                )
            yield found
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()


@pytest.fixture
def information(client: redis.Redis) -> Iterator[Information]:
    """Of a catalog with two child tables, one of them known from rows, too."""
    catalog = Catalog(
        [
            *CATALOG.databases(),
            STABLE,
            Child(104, "Db", 100, "c1", ("x",)),
            Child(105, "Db", 100, "child7", ("x",)),
        ]
    )
    client.config_resetstat()
    yield Information(lambda: catalog, client, "1.0", Access(lambda: catalog, "root"), "root")
    assert not WHOLE & client.info("commandstats").keys()


def test_show_databases_asks_redis_for_nothing(
    information: Information, client: redis.Redis
) -> None:
    statement = parse_one("SHOW DATABASES")
    assert isinstance(statement, Show)
    assert information.show(statement, None).column("name").to_pylist() == [
        "Db",
        "information_schema",
    ]
    assert not [name for name in client.info("commandstats") if name.startswith("cmdstat_h")]


def test_databases_are_listed_with_the_number_of_their_tables(
    information: Information, client: redis.Redis
) -> None:
    statement = parse_one("SELECT ntables FROM information_schema.ins_databases WHERE name = 'Db'")
    assert isinstance(statement, Query)
    found = information.query(statement.query)
    assert found is not None and found.column(0).to_pylist() == [COUNT + 1]
    calls = client.info("commandstats")
    assert (calls["cmdstat_hlen"]["calls"], calls["cmdstat_hmget"]["calls"]) == (1, 1)


def test_tables_are_listed_some_at_a_time(information: Information, client: redis.Redis) -> None:
    statement = parse_one("SHOW TABLES")
    assert isinstance(statement, Show)
    listed = information.show(statement, "db").column("table_name").to_pylist()
    assert len(listed) == len(set(listed)) == COUNT + 1
    assert client.info("commandstats")["cmdstat_hscan"]["calls"] >= COUNT / CHUNK / 4


def test_tags_are_listed_some_at_a_time(information: Information, client: redis.Redis) -> None:
    statement = parse_one("SELECT count(*), count(tag_value) FROM information_schema.ins_tags")
    assert isinstance(statement, Query)
    found = information.query(statement.query)
    assert found is not None
    assert [c.to_pylist() for c in found.columns] == [[COUNT + 1], [COUNT + 1]]
    assert client.info("commandstats")["cmdstat_hscan"]["calls"] >= COUNT / CHUNK / 4


@pytest.mark.parametrize("list_name", ["ins_tables", "ins_tags"])
def test_a_page_is_read_no_further_than_its_end(
    information: Information, client: redis.Redis, list_name: str
) -> None:
    pages = []
    for skipped in range(0, 3 * CHUNK, CHUNK):
        statement = parse_one(
            f"SELECT table_name FROM information_schema.{list_name} WHERE db_name = 'Db'"
            f" AND stable_name = 'm' LIMIT {CHUNK} OFFSET {skipped}"
        )
        assert isinstance(statement, Query)
        client.config_resetstat()
        found = information.query(statement.query)
        assert found is not None
        pages.append(found.column(0).to_pylist())
        assert client.info("commandstats")["cmdstat_hscan"]["calls"] <= 1 + skipped // CHUNK + 1
    assert pages[0][:2] == ["c1", "child7"], "the catalog's are first"
    assert len({name for page in pages for name in page}) == 3 * CHUNK


def test_a_page_in_order_has_the_rows_of_all(information: Information) -> None:
    statement = parse_one(
        "SELECT table_name FROM information_schema.ins_tables WHERE db_name = 'Db'"
        " AND stable_name = 'm' AND table_name > 'child1000' ORDER BY table_name LIMIT 3"
    )
    assert isinstance(statement, Query)
    found = information.query(statement.query)
    assert found is not None
    assert found.column(0).to_pylist() == ["child10000", "child100000", "child100001"]


@pytest.mark.parametrize("name", ["child7", "child77", "c1"])
def test_tags_of_one_child_are_looked_up(
    information: Information, client: redis.Redis, name: str
) -> None:
    text = (
        "SELECT tag_value FROM information_schema.ins_tags WHERE db_name = 'Db' AND table_name = "
    )
    statement = parse_one(f"{text}'{name}'")
    assert isinstance(statement, Query)
    found = information.query(statement.query)
    assert found is not None and found.column(0).to_pylist() == ["x"]
    assert "cmdstat_hscan" not in client.info("commandstats")


def test_many_new_children_are_registered_some_at_a_time(client: redis.Redis) -> None:
    layout = replace(METERS, table_id=900)
    wanted = [f"n{i}" for i in range(5 * CHUNK // 2)]
    frame = rows.from_objects(METERS, [{"tbname": name, "ts": NOW, "site": "x"} for name in wanted])
    client.config_resetstat()
    Children(client).settle(layout, frame, CATALOG)
    assert client.hlen(names.children(900)) == len(wanted)
    assert client.info("commandstats")["cmdstat_hmget"]["calls"] == 3
