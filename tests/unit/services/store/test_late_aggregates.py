"""Rows that DuckDB joins to windows are those that the kernels put there: a sum that is computed
late is the kernels' sum.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sqlglot import exp

from services.store import window_select
from services.store.functions import function_name
from services.store.window_calls import has_place, is_late
from tests.unit.services.store.kit import STABLE
from tests.unit.services.store.test_query_run import Asking

WINDOWS = [
    "INTERVAL(2s)",
    "INTERVAL(3s, 1s)",
    "INTERVAL(4s) SLIDING(1500a)",
    "INTERVAL(1d)",
    "SESSION(ts, 400a)",
    "STATE_WINDOW(v)",
    "STATE_WINDOW(v) TRUE_FOR(500a)",
    "STATE_WINDOW(CASE WHEN v > 1 THEN v END)",
    "EVENT_WINDOW START WITH v = 1 END WITH v >= 2",
    "COUNT_WINDOW(3)",
    "COUNT_WINDOW(5, 2)",
]


def is_sum(node: exp.Expr) -> bool:
    return function_name(node) == "sum"


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    chance = random.Random(7)
    made = Asking(Path(tmp_path_factory.mktemp("store")))
    rows = [
        (table, time, chance.choice([None, 0, 1, 2, 3]), "w", tag)
        for table, tag in (("d1", 1), ("d2", None), ("d3", 1))
        for time in sorted(chance.sample(range(0, 20_000, 100), 60))
    ]
    made.put(STABLE, *rows)
    return made


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("keys", ["tbname", "tbname, g"])
@pytest.mark.parametrize("where", ["", "WHERE w = 'w' AND (v IS NULL OR v < 3)"])
def test_a_late_sum_is_the_sum(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, window: str, keys: str, where: str
) -> None:
    sql = (
        f"SELECT tbname, _wstart, _wend, count(*), sum(v) FROM meters {where}"
        f" PARTITION BY {keys} {window} ORDER BY tbname, _wstart"
    )
    wanted = asking.rows(sql, max_rows=1_000)
    monkeypatch.setattr(window_select, "is_late", lambda node: is_sum(node) or is_late(node))
    monkeypatch.setattr(
        window_select, "has_place", lambda node: not is_sum(node) and has_place(node)
    )
    assert asking.rows(sql, max_rows=1_000) == wanted
    assert len(wanted) > 2
