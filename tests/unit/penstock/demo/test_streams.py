"""The demo's check: DuckDB's windows over a few departures, and every way to differ from them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from penstock.demo.streams import STREAMS, DemoStream, comparable, expect, mismatches
from penstock.sql import parse_one
from penstock.sql.statements import CreateStream

_HOUR = 3_600_000
_BY_NAME = {s.name: s for s in STREAMS}


def _departures() -> pl.DataFrame:
    """Three flights of two aircraft in two hours."""
    return pl.DataFrame(
        {
            "tbname": ["N1", "N2", "N1"],
            "ts": [0, 60_000, _HOUR],
            "dep_delay": [10, None, 130],
            "arr_delay": [1, 2, 3],
            "air_time": [50, 60, 70],
            "distance": [100, 200, 300],
            "origin": ["JFK", "JFK", "LGA"],
            "dest": ["BOS", "BOS", "MIA"],
        },
        schema_overrides={c: pl.Int32 for c in ("dep_delay", "arr_delay", "air_time", "distance")},
    )


def _expected(name: str) -> list[dict[str, object]]:
    stream = _BY_NAME[name]
    return expect(stream, _departures()).sort(stream.key).to_dicts()


def test_delays_of_an_hour_leave_out_flights_that_did_not_depart():
    assert _expected("hourly") == [
        {"airport": "JFK", "_wstart": 0, "flights": 2, "departed": 1, "delay": 10.0, "worst": 10},
        {
            "airport": "LGA",
            "_wstart": _HOUR,
            "flights": 1,
            "departed": 1,
            "delay": 130.0,
            "worst": 130,
        },
    ]


def test_a_day_that_slides_holds_each_flight_four_times():
    rows = _expected("rolling")
    assert [r["_wstart"] for r in rows] == [-18 * _HOUR, -12 * _HOUR, -6 * _HOUR, 0]
    assert {r["flights"] for r in rows} == {3}
    assert {r["miles"] for r in rows} == {600}


def test_late_departures_and_days_of_aircraft():
    assert [(r["aircraft"], r["ts"]) for r in _expected("late")] == [("N1", _HOUR)]
    assert _expected("aircraft")[0] == {
        "aircraft": "N1",
        "_wstart": 0,
        "legs": 2,
        "minutes": 120,
        "went_to": "MIA",
    }


@pytest.mark.parametrize("stream", STREAMS, ids=lambda s: s.name)
def test_statements_are_streams_and_keys_are_columns_of_both(stream):
    assert isinstance(parse_one(stream.ddl), CreateStream)
    assert set(stream.key) <= set(expect(stream, _departures()).columns)


def test_both_sides_have_one_form():
    frame = pl.DataFrame(
        {
            "t": pl.Series([1_000], dtype=pl.Datetime("ms")),
            "i": pl.Series([7], dtype=pl.UInt8),
            "h": pl.Series([7], dtype=pl.Int128),
            "f": pl.Series([0.5], dtype=pl.Float32),
            "s": ["x"],
        }
    )
    made = comparable(frame)
    assert made.row(0) == (1000, 7, 7, 0.5, "x")
    assert made.schema["i"] == made.schema["h"] == pl.Int64
    assert made.schema["f"] == pl.Float64


# -------------------------------------------------------------------- differences

_STREAM = replace(STREAMS[0], key=("k",))
_WANTED = pl.DataFrame({"k": ["a", "b"], "n": [1, None], "x": [1.0, None]})


def _differ(found: pl.DataFrame, stream: DemoStream = _STREAM) -> list[str]:
    return sorted(mismatches(stream, found, comparable(_WANTED)).get_column("k").to_list())


def test_equal_tables_differ_nowhere():
    assert _differ(_WANTED) == []
    assert _differ(_WANTED.reverse()) == []


def test_floats_may_differ_in_their_last_digits():
    assert _differ(_WANTED.with_columns(pl.col("x") * (1 + 1e-12))) == []
    assert _differ(_WANTED.with_columns(pl.col("x") * (1 + 1e-6))) == ["a"]


@pytest.mark.parametrize(
    ("found", "keys"),
    [
        (_WANTED.with_columns(n=pl.Series([2, None])), ["a"]),
        (_WANTED.with_columns(n=pl.Series([1, 0])), ["b"]),
        (_WANTED.with_columns(x=pl.Series([None, None], dtype=pl.Float64)), ["a"]),
        (_WANTED[:1], ["b"]),
        (pl.concat([_WANTED, pl.DataFrame({"k": ["c"], "n": [1], "x": [1.0]})]), ["c"]),
    ],
    ids=["another number", "a number for NULL", "NULL for a number", "one less", "one more"],
)
def test_every_difference_is_found(found, keys):
    assert set(keys) <= set(_differ(found))


def test_a_window_that_is_there_twice_is_one_too_many():
    assert _differ(pl.concat([_WANTED, _WANTED[1:]])) != []
