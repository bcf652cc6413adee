"""A query ends in time, whenever its time is over."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.duck import session
from penstock.duck.session import Bounds, Engine
from penstock.errors import PenstockError

_ENDLESS = "SELECT sum(a.range * b.range) FROM range(100000000) a, range(100000000) b"


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(Bounds(memory="100MB", threads=1, seconds=0.05))
    made.confine()
    yield made
    made.close()


def test_a_query_that_runs_when_its_time_is_over_is_ended(engine: Engine) -> None:
    with pytest.raises(PenstockError) as late, engine.in_time():
        engine.answer(_ENDLESS)
    assert (late.value.code, late.value.message) == (
        "E_TIMEOUT",
        "the query was ended after 0.05 s",
    )


def test_a_query_that_begins_when_its_time_is_over_is_ended(engine: Engine) -> None:
    """DuckDB forgets an interrupt that comes while no statement runs."""
    with pytest.raises(PenstockError) as late, engine.in_time():
        while not engine.late:
            pass
        engine.con.execute(_ENDLESS)
    assert late.value.code == "E_TIMEOUT"


def test_nothing_more_is_answered_after_the_time(engine: Engine) -> None:
    with pytest.raises(PenstockError) as late, engine.in_time():
        while not engine.late:
            pass
        engine.answer("SELECT 1")
    assert late.value.code == "E_TIMEOUT"


def test_what_is_quick_is_answered() -> None:
    engine = Engine(Bounds(memory="100MB", threads=1, seconds=60))
    engine.confine()
    with engine.in_time():
        assert engine.answer("SELECT 1 AS n").to_pylist() == [{"n": 1}]
    engine.close()


@pytest.mark.parametrize("own", [True, False])
def test_rows_come_also_without_what_is_duckdbs_own_affair(engine: Engine, own: bool) -> None:
    """The version that is installed has it: without, each query is bound twice."""
    assert hasattr(engine.con, "_submit")
    con: Any = engine.con if own else SimpleNamespace(sql=engine.con.sql)
    rows = session._stream(con, "SELECT range AS n FROM range(10000)", ()).read_all()
    assert rows.column("n").to_pylist() == list(range(10_000))
