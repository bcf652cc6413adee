"""Hints for functions that have another name in other systems."""

from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.sql.functions import AGGREGATES
from penstock.sql.functions.other_names import _HERE, did_you_mean
from tests.unit.sql.memory_view import MemoryView, plan

VIEW = MemoryView("CREATE STABLE met (ts TIMESTAMP, x INT, condition BOOL) TAGS (p INT)")
STREAM = (
    "CREATE STREAM s INTO r AS SELECT _wstart, {} AS a FROM met PARTITION BY tbname INTERVAL(1m)"
)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mean", "did you mean avg(x)?"),
        ("MEDIAN", "did you mean apercentile(x, 50)?"),
        ("quantile", "did you mean apercentile(x, p), p from 0 to 100?"),
        ("count_if", "did you mean sum(CASE WHEN condition THEN 1 ELSE 0 END)?"),
        ("approx_count_distinct", "did you mean hyperloglog(x)?"),
        ("var", "did you mean var_samp(x)?"),
        ("spred", "did you mean spread()?"),
    ],
)
def test_a_stream_names_the_function_that_is_here(name: str, hint: str) -> None:
    with pytest.raises(PenstockError) as caught:
        plan(STREAM.format(f"{name}(x)"), VIEW)
    assert caught.value.code == "E_UNKNOWN_FUNCTION" and caught.value.hint == hint


@pytest.mark.parametrize("call", sorted(set(_HERE.values())))
def test_what_a_hint_says_can_be_written_in_a_stream(call: str) -> None:
    plan(STREAM.format(call.replace("p), p from 0 to 100", "50)")), VIEW)


def test_no_name_that_streams_have_is_of_others() -> None:
    assert not AGGREGATES.keys() & _HERE.keys()
    assert did_you_mean("zzz", ["avg"]) == ""
