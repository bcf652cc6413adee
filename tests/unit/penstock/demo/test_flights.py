"""Departures as rows: each with a key of its own, and NULL for what is not known."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from penstock.demo import flights
from penstock.errors import ConfigError
from penstock.sql import parse_one
from penstock.sql.statements import CreateStable

_FLIGHTS = """\
time_hour,minute,tailnum,carrier,flight,origin,dest,dep_delay,arr_delay,air_time,distance
2013-01-01T06:00:00Z,5,N2,UA,7,JFK,BOS,3,-1,40,200
2013-01-01T05:00:00Z,15,N1,UA,1,EWR,IAH,2,11,227,1400
2013-01-01T05:00:00Z,30,NA,B6,9,EWR,MCO,NA,NA,NA,950
2013-01-01T05:00:00Z,30,NA,B6,8,JFK,MCO,NA,NA,NA,940
2013-01-01T05:00:00Z,30,N1,UA,2,EWR,IAH,0,0,230,1400
"""
_PLANES = "tailnum,year,manufacturer,seats\nN1,1999,BOEING,149\n"
#: 2013-01-01T05:00Z
_FIVE = 1_357_016_400_000
_MINUTE = 60_000


@pytest.fixture
def departures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    """What is loaded from a package with five flights of three aircraft."""
    data = tmp_path / "data"
    data.mkdir()
    with zipfile.ZipFile(data / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", _FLIGHTS)
    (data / "planes.csv").write_text(_PLANES, encoding="utf-8")
    found = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(flights, "find_spec", lambda name: found)
    return flights.load()


def test_departures_are_in_order_of_their_scheduled_time(departures):
    assert departures.select("tbname", "ts", "flight").rows() == [
        ("N1", _FIVE + 15 * _MINUTE, 1),
        (flights.UNKNOWN, _FIVE + 30 * _MINUTE, 9),
        ("N1", _FIVE + 30 * _MINUTE, 2),
        (flights.UNKNOWN, _FIVE + 30 * _MINUTE + 1, 8),  # a millisecond behind its like
        ("N2", _FIVE + 65 * _MINUTE, 7),
    ]


def test_what_is_not_known_is_null(departures):
    cancelled = departures.filter(pl.col("flight") == 9)
    assert cancelled.select("dep_delay", "arr_delay", "air_time", "tailnum").row(0) == (None,) * 4
    assert cancelled.get_column("distance").item() == 950


def test_tags_are_those_of_the_aircraft(departures):
    tags = departures.select("tailnum", "manufacturer", "seats").unique().sort("tailnum").rows()
    assert tags == [(None, None, None), ("N1", "BOEING", 149), ("N2", None, None)]


def test_columns_are_those_of_the_table(departures):
    statement = parse_one(flights.CREATE[1])
    assert isinstance(statement, CreateStable)
    columns = (*statement.columns, *statement.tags)
    assert departures.columns == ["tbname", *(c.name for c in columns)]
    whole = [c.name for c in columns if c.type.kind == "INT"]
    assert {departures.schema[name] for name in whole} == {pl.Int32()}


def test_without_its_package_the_demo_says_so(monkeypatch):
    monkeypatch.setattr(flights, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="not installed"):
        flights.load()
