"""The registry of functions: each has a side for both engines, or says why not."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest

from penstock.errors import ConfigError
from penstock.sql.functions import (
    AGGREGATES,
    FORBIDDEN,
    QUERY_FUNCTIONS,
    QUERY_ONLY,
    REGISTRY,
    SERIES,
)
from penstock.sql.functions.base import BIGINT, POLARS, FunctionCall, scalar


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Leave the registry as it was."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def one(call: FunctionCall) -> pl.Expr:
    """The number 1."""
    return pl.lit(1)


def test_a_function_with_one_side_is_an_error_unless_it_says_why() -> None:
    with pytest.raises(ConfigError, match="function lonely needs a DuckDB side"):
        scalar("lonely", "", BIGINT)(one)
    with pytest.raises(ConfigError, match="function torn needs a DuckDB side, or the reason"):
        scalar("torn", "", BIGINT, duckdb=POLARS, streams_only="it has two")(one)
    scalar("lonely", "", BIGINT, streams_only="it is about records")(one)
    assert REGISTRY["lonely"].duckdb is None
    assert "torn" not in REGISTRY


def test_names_of_queries_are_none_of_streams() -> None:
    assert not QUERY_FUNCTIONS.keys() & (REGISTRY.keys() | AGGREGATES.keys())
    assert not QUERY_FUNCTIONS.keys() & QUERY_ONLY.keys()
    assert all(f.reason for f in QUERY_FUNCTIONS.values())
    assert QUERY_FUNCTIONS["percentile"].reason == FORBIDDEN["percentile"][0]


def test_functions_of_rows_have_names_of_their_own_and_say_why_no_stream_has_them() -> None:
    others = REGISTRY.keys() | AGGREGATES.keys() | QUERY_FUNCTIONS.keys() | QUERY_ONLY.keys()
    assert not SERIES.keys() & others
    assert all(f.reason for f in SERIES.values())


def test_functions_of_rows_say_what_they_take_and_give() -> None:
    shown = {f.signature: f.gives for f in SERIES.values()}
    assert shown == {
        "diff(x, [ignore])": "BIGINT or DOUBLE",
        "derivative(x, unit, ignore_negative)": "DOUBLE",
        "csum(x)": "BIGINT or BIGINT UNSIGNED or DOUBLE",
        "mavg(x, k)": "DOUBLE",
        "statecount(x, operator, value)": "BIGINT",
        "stateduration(x, operator, value, [unit])": "BIGINT",
    }
