"""External streams: what is asked of the other deployment, what is kept, and rows that go there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import polars as pl
import pyarrow as pa
import pytest

from gateway.federation import external_streams as subject
from gateway.federation.external_streams import ExternalStreams
from gateway.federation.remote_insert import RemoteInsert, RemoteProducers
from penstock.catalog.model import External
from penstock.errors import CatalogError, PenstockError
from penstock.link import external
from penstock.link.address import Address, LinkLost
from penstock.link.description import Description
from penstock.outbound.reach import Outbound
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.unit.gateway.kit import MemoryGateway

COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("v", ColumnType("INT")),
    Column("name", ColumnType("VARCHAR", 8)),
)
CREATE = (
    "CREATE EXTERNAL STREAM far{} SETTINGS type='penstock', hosts='127.0.0.1:1', stream='t',"
    " db='rd', user='u', password='secret'"
)
FAR = External(40, "d", "far", "penstock", (("h1:1",), ("h2:1",)), "rd", "rt", COLUMNS, user="u")


class Far:
    """Another deployment: the table that each link describes, or why there is none."""

    def __init__(self) -> None:
        self.described: list[Description | PenstockError] = []
        self.asked: list[tuple[str, str]] = []

    def connect(self, replicas: tuple[Address, ...], *, timeout: float) -> Far:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def describe(self, name: str, database: str) -> Description:
        self.asked.append((database, name))
        found = self.described.pop(0)
        if isinstance(found, PenstockError):
            raise found
        return found


class Here:
    def __init__(self, gateway: MemoryGateway, far: Far) -> None:
        self.gateway = gateway
        self.far = far

    def describe(self, *columns: Column, **more: Any) -> None:
        self.far.described.append(Description(5, "rd", "t", columns or COLUMNS, **more))

    def entry(self) -> External | None:
        return self.gateway.catalog.external("d", "far")

    def refusal(self, sql: str) -> PenstockError:
        with pytest.raises(PenstockError) as wrong:
            self.gateway.define(sql)
        return wrong.value


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    far = Far()
    monkeypatch.setattr(subject, "connect_any", far.connect)
    gateway = MemoryGateway(tmp_path)
    gateway.define("CREATE DATABASE d")
    assert isinstance(gateway.parts.definitions._externals, ExternalStreams)
    yield Here(gateway, far)
    gateway.close()


def test_the_table_over_there_is_looked_at_and_the_password_kept_apart(here: Here) -> None:
    here.describe(partitions=3)
    here.gateway.define(CREATE.format(""))
    entry = here.entry()
    assert entry is not None
    assert (entry.remote_database, entry.remote_name, entry.columns) == ("rd", "t", COLUMNS)
    assert (entry.partitions, entry.remote_ids, entry.user) == (3, (5,), "u")
    assert external.secret(here.gateway.directory, entry.id) == "secret"
    assert "secret" not in repr(entry)
    assert here.far.asked == [("rd", "t")]
    here.gateway.define(CREATE.replace("STREAM far", "STREAM IF NOT EXISTS far").format(""))
    assert len(here.far.asked) == 1


def test_only_some_columns_if_they_are_there(here: Here) -> None:
    here.describe()
    here.gateway.define(CREATE.format(" (ts TIMESTAMP, name VARCHAR(99))"))
    entry = here.entry()
    assert entry is not None and [c.name for c in entry.columns] == ["ts", "name"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (" (ts TIMESTAMP, x INT)", "has no column x INT"),
        (" (ts TIMESTAMP, v DOUBLE)", "has no column v DOUBLE"),
        (" (since TIMESTAMP, v INT)", "has no column since TIMESTAMP"),
        (" (ts TIMESTAMP, name VARCHAR(4))", "has no column name"),
    ],
)
def test_columns_that_are_not_there(here: Here, columns: str, words: str) -> None:
    here.describe()
    error = here.refusal(CREATE.format(columns))
    assert error.code == "E_REMOTE_SCHEMA" and words in error.message
    assert here.entry() is None


def test_a_deployment_that_is_down_is_taken_at_the_statements_word(here: Here) -> None:
    lost = LinkLost("nobody there")
    here.far.described = [lost, lost]
    assert here.refusal(CREATE.format("")).code == lost.code
    here.gateway.define(CREATE.format(" (ts TIMESTAMP, v INT)"))
    entry = here.entry()
    assert entry is not None and [c.name for c in entry.columns] == ["ts", "v"]


def test_a_table_that_is_not_there(here: Here) -> None:
    here.far.described = [CatalogError("there is no table t", code="E_NO_TABLE")]
    error = here.refusal(CREATE.format(""))
    assert error.code == "E_NO_TABLE" and "the other deployment has no such table" in error.message


def test_shards_that_differ(here: Here) -> None:
    here.describe()
    here.describe(*COLUMNS[:2])
    sql = CREATE.format("").replace("127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2")
    assert here.refusal(sql).code == "E_REMOTE_SCHEMA"


# -------------------------------------------------------------------- rows that go there


class Links:
    """Links that take rows; each fault is what one write meets instead."""

    def __init__(self) -> None:
        self.written: list[tuple[tuple[Address, ...], pa.Table, str | None]] = []
        self.faults: list[PenstockError] = []

    def get(self, replicas: tuple[Address, ...]) -> Any:
        links = self

        class Link:
            def write(
                self, name: str, database: str, rows: pa.Table, *, producer: str | None = None
            ) -> int:
                if links.faults:
                    raise links.faults.pop(0)
                links.written.append((replicas, rows, producer))
                return int(rows.num_rows)

        return Link()

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def insert(here: Here, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[RemoteInsert, Links]]:
    def make() -> tuple[RemoteInsert, Links]:
        links = Links()
        monkeypatch.setattr("gateway.federation.remote_insert.Links", lambda **_: links)
        monkeypatch.setattr("gateway.federation.remote_insert._PAUSE_S", 0.0)
        outbound = Outbound(here.gateway.settings, here.gateway.access)
        return RemoteInsert(here.gateway.directory, outbound), links

    return make


def frame(*times: int) -> pl.DataFrame:
    return pl.DataFrame(
        {"tbname": ["far"] * len(times), "ts": list(times), "v": list(range(len(times)))},
        schema_overrides={"v": pl.Int32},
    )


def test_rows_of_one_time_always_go_to_the_same_shard(
    insert: Callable[[], tuple[RemoteInsert, Links]],
) -> None:
    remote, links = insert()
    assert remote.write(FAR, frame(*range(40))) == 40
    shards = {replicas[0].host: rows for replicas, rows, _ in links.written}
    assert set(shards) == {"h1", "h2"}
    first = set(shards["h1"].column("ts").to_pylist())
    assert shards["h1"].schema.field("ts").type == COLUMNS[0].type.arrow("ms")
    links.written.clear()
    remote.write(FAR, frame(*range(40)))
    again = next(rows for r, rows, _ in links.written if r[0].host == "h1")
    assert set(again.column("ts").to_pylist()) == first
    remote.close()


def test_what_rows_of_an_external_stream_look_like() -> None:
    layout = RemoteInsert.layout(FAR)
    assert layout.plain and [c.name for c in layout.columns] == ["ts", "v", "name"]
    tagged = dataclasses.replace(FAR, tags=(Column("g", ColumnType("INT")),))
    assert not RemoteInsert.layout(tagged).plain


def test_a_stream_table_over_there_gets_rows_once_however_often_they_are_sent() -> None:
    links: Any = Links()
    producers = RemoteProducers(links, patience=5.0)
    numbered = dataclasses.replace(FAR, numbered=True)
    place = (Address("h1", 1, "u", "p"),)
    rows = pa.table({"v": [1, 2]})
    links.faults = [LinkLost("gone"), PenstockError("later", code="E_NO_QUORUM")]
    assert producers.write(place, numbered, rows) == 2
    assert producers.write(place, numbered, rows) == 2
    (_, first, one), (_, second, two) = links.written
    assert one is not None and one == two, "one producer, whose INSERTs count up"
    assert first.column("_offset").to_pylist() == [1, 1]
    assert second.column("_offset").to_pylist() == [2, 2]
    assert first.column("_row").to_pylist() == [0, 1]
    links.faults = [PenstockError("no", code="E_ROW")]
    with pytest.raises(PenstockError):
        producers.write(place, numbered, rows)


def test_other_tables_get_them_once_or_nobody_knows() -> None:
    links: Any = Links()
    producers = RemoteProducers(links)
    links.faults = [LinkLost("gone")]
    with pytest.raises(LinkLost):
        producers.write((Address("h1", 1, "u", "p"),), FAR, pa.table({"v": [1]}))
    assert links.written == []
