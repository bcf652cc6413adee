"""Panels of many child tables that ask the same share a plan, and each gets its own rows."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import names
from penstock.errors import AuthError, SqlSemanticError
from services.store import query
from services.store.query import Queries, QueryLimits
from services.store.query_run import QueryRun
from tests.nightly import drawn
from tests.unit.services.store.kit import STABLE, MemoryStore

LIMITS = QueryLimits("256MB", 1, 1_000, 20.0, "0B")
CHILDREN = ("d1", "d2", "v", "sensor_3")
#: one plan serves all child tables
SHARED = (
    "SELECT ts, v, w FROM {}",
    "select tbname, v from d.{} where ts >= 5000 and v > 1 ORDER BY ts DESC LIMIT 3",
    "SELECT last_row(ts), last_row(v) FROM {} WHERE ts >= 1000",
    "SELECT _wstart, count(*), max(v) FROM {} WHERE ts < 9000 INTERVAL(2s)",
    "SELECT x.v, tbname FROM (SELECT ts, v, tbname FROM {}) x ORDER BY x.ts",
    "SELECT count(*), avg(v) FROM {} /* FROM d9 */ WHERE w <> 'd9'",
)
#: others have one for each
APART = (
    "SELECT {0}.w FROM {0}",
    "SELECT a.w FROM {0} a JOIN {0} b ON a.ts = b.ts ORDER BY 1",
    "SELECT w FROM {} WHERE w > (SELECT min(w) FROM d2)",
    "SELECT count(*) AS {0} FROM {0}",
    "SELECT count(*) FROM `{}`",
    "SELECT split_part(w, '', 1) AS s FROM {}",
)
STEP = st.tuples(st.sampled_from(CHILDREN), st.integers(0, 12), st.integers(0, 9))


class Planned(QueryRun):
    """Counts the queries that are planned."""

    count = 0

    def result(self) -> Any:
        Planned.count += 1
        return super().result()


class Panels:
    """A store of some child tables, and queries that are remembered."""

    def __init__(self, directory: Path) -> None:
        self.store = MemoryStore(directory)
        for place, child in enumerate(CHILDREN):
            self.store.redis.hset(names.children(STABLE.id), child, "{}")
            self.store.put(STABLE, (child, 1_000 + place, place, f"w of {child}", place))
        self.queries = self.new()

    def new(self) -> Queries:
        return Queries(self.store.partitions, self.store.resolver, LIMITS)


@pytest.fixture
def panels(tmp_path: Path) -> Panels:
    return Panels(tmp_path)


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    Planned.count = 0
    monkeypatch.setattr(query, "QueryRun", Planned)


@pytest.mark.parametrize("sql", SHARED)
def test_two_child_tables_are_planned_and_the_others_are_not(panels: Panels, sql: str) -> None:
    for child in ("d1", "d2", "sensor_3", "d1"):
        answer = panels.queries.run(sql.format(child), "d", positions=True)
        planned = Planned.count
        first = panels.new().run(sql.format(child), "d", positions=True)
        assert answer == first
        assert answer.schema.equals(first.schema, check_metadata=True)
        Planned.count = planned
    assert Planned.count == 2


@given(
    st.sampled_from((*SHARED, *APART)),
    st.lists(STEP | st.just("flush") | st.sampled_from(CHILDREN), min_size=4, max_size=12),
)
@settings(max_examples=drawn(25), deadline=None)
def test_each_child_table_has_its_own_rows(sql: str, steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        panels = Panels(Path(directory))
        for step in steps:
            if step == "flush":
                if panels.store.partitions.open(STABLE.topic, 0).rows:
                    panels.store.flush()
            elif isinstance(step, tuple):
                child, at, value = step
                panels.store.put(STABLE, (child, at * 1000, value, f"w{value}", value))
            else:
                asked = sql.format(step)
                answer = panels.queries.run(asked, "d", positions=True)
                first = panels.new().run(asked, "d", positions=True)
                assert answer == first
                assert answer.schema.equals(first.schema, check_metadata=True)


def test_rights_are_asked_for_by_the_name_that_was_written(panels: Panels) -> None:
    for child in ("d1", "d2"):
        panels.queries.run(f"SELECT v FROM {child}", "d")

    def permit(database: str, name: str, table: Any) -> None:
        if name == "sensor_3":
            raise AuthError(f"{database}.{name} is not yours")

    assert panels.queries.run("SELECT v FROM d1", "d", permit=permit).num_rows == 1
    with pytest.raises(AuthError, match="sensor_3"):
        panels.queries.run("SELECT v FROM sensor_3", "d", permit=permit)


def test_a_table_that_is_there_no_more_is_not_answered(panels: Panels) -> None:
    for child in ("d1", "d2"):
        panels.queries.run(f"SELECT v FROM {child}", "d")
    panels.store.redis.hdel(names.children(STABLE.id), "d2")
    with pytest.raises(SqlSemanticError, match="does not exist"):
        panels.queries.run("SELECT v FROM d2", "d")
