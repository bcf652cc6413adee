"""Rows of other deployments: which are asked, by whose leave, and as which types they arrive."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from penstock.catalog.model import External, View
from penstock.link import external
from penstock.outbound.reach import Reach
from penstock.sql.parser import parse_one
from penstock.sql.statements import Query
from services.store import external_rows
from services.store.external_rows import ExternalRows, FarRows
from tests.unit.services.store.kit import COLUMNS, DATABASE, PLAIN, MemoryStore

FAR = External(40, "d", "far", "penstock", (("h1:1", "h2:1"),), "rd", "rt", COLUMNS, maker="ann")
SPLIT = External(41, "d", "split", "penstock", (("h1:1",), ("h2:1",)), "rd", "rs", COLUMNS)
VIEW = View(42, "d", "up", "SELECT * FROM d.plain", PLAIN.id, FAR.id)


class Links:
    """Stands where `penstock.link.pool.Links` does."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], str, str, str]] = []
        self.closed = False

    def query(self, replicas: Any, sql: str, database: str, timezone: str) -> pa.Table:
        self.asked.append(([f"{r.host}:{r.port}" for r in replicas], sql, database, timezone))
        time = pa.array([len(self.asked)], pa.timestamp("ms", "UTC"))
        return pa.table({"tbname": ["rt"], "ts": time, "v": pa.array([5], pa.int32())})

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> Links:
    made = Links()
    monkeypatch.setattr(external_rows, "Links", lambda: made)
    return made


class Asking(MemoryStore):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory, DATABASE, PLAIN, FAR, SPLIT, VIEW)
        self.makers: list[tuple[str, bool]] = []
        outbound: Any = SimpleNamespace(reach=self._reach)
        self.rows = ExternalRows(self.reader, directory, outbound)

    def _reach(self, maker: str, *, link: bool = False) -> Reach:
        self.makers.append((maker, link))
        return Reach(link=link)


def query(sql: str) -> exp.Query:
    made = parse_one(sql)
    assert isinstance(made, Query)
    return made.query


def test_external_streams_are_found_also_by_a_view_that_writes_one(
    tmp_path: Path, links: Links
) -> None:
    asking = Asking(tmp_path)
    assert asking.rows.find("d", "far") is FAR
    assert asking.rows.find("d", "up") is FAR
    assert asking.rows.find("d", "plain") is None


def test_each_shard_is_asked_for_its_rows(tmp_path: Path, links: Links) -> None:
    asking = Asking(tmp_path)
    condition = exp.GT(this=exp.column("v"), expression=exp.Literal.number(1))
    found = asking.rows.rows(FarRows(SPLIT, ("ts", "v"), (condition,)), "Asia/Shanghai")
    assert found.num_rows == 2
    assert found.schema.field("ts").type == pa.timestamp("ms"), "as DuckDB has times"
    assert found.schema.names == ["tbname", "ts", "v"]
    assert sorted(hosts for hosts, _, _, _ in links.asked) == [["h1:1"], ["h2:1"]]
    for _, sql, database, zone in links.asked:
        assert database == "rd" and zone == "Asia/Shanghai"
        assert "rs" in sql and "v > 1" in sql


def test_who_made_it_says_where_it_may_go_and_its_password_is_in_a_file(
    tmp_path: Path, links: Links, monkeypatch: pytest.MonkeyPatch
) -> None:
    external.keep_secret(tmp_path, FAR.id, "secret")
    seen: list[str] = []
    monkeypatch.setattr(
        links, "query", lambda replicas, *rest: seen.extend(r.password for r in replicas) or TABLE
    )
    asking = Asking(tmp_path)
    asking.rows.rows(FarRows(FAR, ("ts", "v"), ()), "UTC")
    assert seen == ["secret", "secret"]
    assert asking.makers == [("ann", True)]


TABLE = pa.table(
    {
        "tbname": ["rt"],
        "ts": pa.array([1], pa.timestamp("ms", "UTC")),
        "v": pa.array([5], pa.int32()),
    }
)


def test_a_query_over_one_deployment_goes_there_whole(tmp_path: Path, links: Links) -> None:
    asking = Asking(tmp_path)
    found = asking.rows.whole(query("SELECT max(v) FROM far WHERE v > 3"), "d", "UTC")
    assert found is not None
    ((hosts, sql, database, _),) = links.asked
    assert hosts == ["h1:1", "h2:1"] and database == "rd"
    assert "rt" in sql and "max" in sql.lower()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT v FROM plain",
        "SELECT far.v FROM far JOIN plain ON far.ts = plain.ts",
        "SELECT v FROM split",
    ],
)
def test_other_queries_are_answered_here(tmp_path: Path, links: Links, sql: str) -> None:
    assert Asking(tmp_path).rows.whole(query(sql), "d", "UTC") is None
    assert links.asked == []


def test_closing_closes_the_links(tmp_path: Path, links: Links) -> None:
    Asking(tmp_path).rows.close()
    assert links.closed
