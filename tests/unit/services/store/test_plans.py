"""A query that comes again is answered as if it came for the first time."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.model import Table, TableVersion
from penstock.errors import AuthError, SqlSemanticError
from penstock.sql.plan import Column
from penstock.types import ColumnType
from penstock.udf import UserFunction
from services.store import query
from services.store.plans import KnownQuery, Plan, Plans, asked_text, cut
from services.store.query import Queries, QueryLimits
from services.store.query_run import QueryRun
from tests.nightly import drawn
from tests.unit.services.store.kit import COLUMNS, PLAIN, MemoryStore

LIMITS = QueryLimits("256MB", 1, 1_000, 20.0, "0B")
DOUBLE = ColumnType("DOUBLE")
#: all can be remembered
TEXTS = st.sampled_from(
    [
        "SELECT ts, v, w FROM plain",
        "SELECT ts, v FROM plain WHERE ts >= 5000 AND v > 1",
        "SELECT upper(w) AS u, sum(v) AS s FROM plain GROUP BY w ORDER BY 1, 2",
        "SELECT last_row(ts), last_row(v) FROM plain",
        "SELECT _wstart, count(*), max(v) FROM plain WHERE ts < 9000 INTERVAL(2s)",
        "SELECT _wstart, sum(v) FROM plain INTERVAL(3s) ORDER BY sum(v) DESC LIMIT 2",
        "SELECT v FROM (SELECT v, w FROM plain WHERE v < 8) ORDER BY v LIMIT 3",
    ]
)
#: rows at these times: (second, value); a flush
STEP = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), max_size=3) | st.just("flush")


class Planned(QueryRun):
    """Counts the queries that are planned."""

    count = 0

    def result(self) -> Any:
        Planned.count += 1
        return super().result()


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    Planned.count = 0
    monkeypatch.setattr(query, "QueryRun", Planned)


class Asked:
    """A store, and queries that it remembers."""

    def __init__(self, directory: Path) -> None:
        self.store = MemoryStore(directory)
        self.store.put(PLAIN, ("plain", 1_000, 1, "a"), ("plain", 2_000, 2, "b"))
        self.queries = self.new()

    def new(self) -> Queries:
        return Queries(self.store.partitions, self.store.resolver, LIMITS)

    def ask(self, sql: str, **more: Any) -> list[dict[str, Any]]:
        return self.queries.run(sql, "d", **more).to_pylist()

    def step(self, step: Any) -> None:
        if step != "flush":
            rows = [("plain", at * 1000, v, f"w{v}") for at, v in step]
            self.store.put(PLAIN, *rows)
        elif self.store.partitions.open(PLAIN.topic, 0).rows:
            self.store.flush()


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def test_a_text_is_planned_until_it_has_come_twice(asked: Asked) -> None:
    for _ in range(4):
        assert asked.ask("SELECT v FROM plain") == [{"v": 1}, {"v": 2}]
    assert Planned.count == 2


@given(TEXTS, st.lists(STEP, min_size=3, max_size=7))
@settings(max_examples=drawn(12), deadline=None)
def test_later_rows_are_in_the_answer(sql: str, steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asked = Asked(Path(directory))
        Planned.count = 0
        for step in steps:
            asked.step(step)
            again = asked.queries.run(sql, "d", positions=True)
            known = Planned.count
            first = asked.new().run(sql, "d", positions=True)
            assert again.schema.equals(first.schema, check_metadata=True)
            assert again == first
            Planned.count = known
        assert Planned.count == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT v, now AS t FROM plain WHERE v = 1",
        "SELECT v FROM plain WHERE ts > now - 30000d AND today() > 0",
        "SELECT count(*) FROM plain SESSION(ts, 1m)",
        "SELECT a.v FROM plain a JOIN plain b ON a.v = b.v ORDER BY 1",
    ],
)
def test_what_cannot_serve_again_is_planned_each_time(asked: Asked, sql: str) -> None:
    asked.step("flush")
    first = [asked.ask(sql) for _ in range(3)]
    assert Planned.count == 3
    assert all(first)


def test_zones_and_parameters_have_answers_of_their_own(asked: Asked) -> None:
    sql = "SELECT v FROM plain WHERE ts < '1970-01-01 08:00:02'"
    for _ in range(3):
        assert asked.ask(sql, timezone="Asia/Shanghai") == [{"v": 1}]
        assert len(asked.ask(sql, timezone="UTC")) == 2
    for value in (1, 2, 1, 2):
        assert asked.ask("SELECT v FROM plain WHERE v = ?", parameters=[value]) == [{"v": value}]


def test_rights_are_asked_for_each_time(asked: Asked) -> None:
    seen: list[tuple[str, str, Table | None]] = []

    def refuse(*what: Any) -> None:
        raise AuthError("no")

    for _ in range(3):
        asked.ask("SELECT v FROM plain", permit=lambda *what: seen.append(what))
    assert seen == [("d", "plain", PLAIN)] * 3
    with pytest.raises(AuthError):
        asked.ask("SELECT v FROM plain", permit=refuse)


def test_another_definition_is_another_query(asked: Asked) -> None:
    for _ in range(3):
        assert [*asked.ask("SELECT * FROM plain")[0]] == ["ts", "v", "w"]
    more = (*COLUMNS, Column("x", DOUBLE))
    asked.store.catalog.put(replace(PLAIN, versions=(*PLAIN.versions, TableVersion(108, more))))
    assert [*asked.ask("SELECT * FROM plain")[0]] == ["ts", "v", "w", "x"]
    asked.store.catalog.remove(PLAIN.id)
    with pytest.raises(SqlSemanticError, match="does not exist"):
        asked.ask("SELECT * FROM plain")


def test_a_users_function_may_come_to_be_meant(asked: Asked) -> None:
    for _ in range(3):
        assert asked.ask("SELECT sign(v) AS s FROM plain WHERE v = 2") == [{"s": 1}]
    body = "def sign(a):\n    return pc.multiply(a, 7)"
    asked.store.catalog.put(UserFunction(30, "sign", (DOUBLE,), DOUBLE, body))
    asked.store.catalog.revision += 1
    for _ in range(3):
        assert asked.ask("SELECT sign(v) AS s FROM plain WHERE v = 2") == [{"s": 14.0}]


def test_errors_point_into_the_text_again(asked: Asked) -> None:
    text = "SELECT (SELECT w FROM plain WHERE v = 7) AS w"
    for _ in range(3):
        asked.ask(text)
    asked.step([(5, 7), (6, 7)])
    with pytest.raises(SqlSemanticError, match="gives more than one row") as raised:
        asked.ask(text)
    assert raised.value.column == 8


def test_a_text_is_cut_where_rows_stand_once() -> None:
    assert cut("WITH a AS (ROWS) SELECT 1", ["ROWS"]) == ("WITH a AS (", ") SELECT 1")
    assert cut("SELECT 1", []) == ("SELECT 1",)
    assert cut("ROWS, ROWS", ["ROWS"]) is None
    assert cut("SELECT 1", ["ROWS"]) is None
    assert cut("two, one", ["one", "two"]) is None
    assert Plan(("a", "b", "c"), (), (), ()).text(["1", "2"]) == "a1b2c"


def test_few_texts_are_remembered_and_no_long_ones() -> None:
    plans = Plans()
    known = KnownQuery(Plan(("SELECT 1",), (), (), ()), {})
    first = asked_text("SELECT 1", "d", "UTC", 0)
    assert first is not None
    key = first.key(())
    assert plans.free_in(first) is None
    plans.note_free(first, ())
    assert not plans.came_before(key)
    assert plans.find(first) is None
    assert plans.came_before(key)
    plans.keep(key, known)
    for number in range(1_023):
        plans.came_before(replace(key, database=str(number)))
    assert plans.find(first) is known
    plans.came_before(replace(key, database="more"))
    plans.came_before(replace(key, database="still more"))
    assert plans.find(first) is known
    assert not plans.came_before(replace(key, database="0"))
    assert plans.find(replace(first, revision=1)) is None
    assert asked_text("SELECT 1" + " " * 5_000, "d", "UTC", 0) is None
