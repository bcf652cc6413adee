"""The demo's streams, and for each the same result computed straight from the rows by DuckDB."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import polars as pl

from penstock.demo.flights import DATABASE, TABLE


@dataclass(frozen=True)
class DemoStream:
    """`result` reads the stream's table, `check` is the same over the rows themselves: DuckDB's
    text over `departures`, `ts` as TIMESTAMP.

    `key` names the key columns of both.
    """

    name: str
    title: str
    ddl: str
    result: str
    check: str
    key: tuple[str, ...]
    #: closes on event time, so its last windows need FLUSH STREAM
    flush: bool


_HOURLY = (
    "count(*) AS flights, count(dep_delay) AS departed, avg(dep_delay) AS delay, max(dep_delay) AS"
    " worst"
)
_ALL = (
    "count(*) AS flights, avg(dep_delay) AS delay, stddev(arr_delay) AS spread_of_arrivals,"
    " sum(distance) AS miles"
)

STREAMS = (
    DemoStream(
        name="hourly",
        title="delay an hour and airport",
        ddl=f"""CREATE STREAM {DATABASE}.hourly TRIGGER WINDOW_CLOSE WATERMARK 2h
            INTO {DATABASE}.hourly_delay TAGS (airport VARCHAR(3))
            SUBTABLE(concat('hourly_', airport))
            AS SELECT _wstart, {_HOURLY} FROM {DATABASE}.{TABLE}
            PARTITION BY origin AS airport INTERVAL(1h)""",
        result=(
            f"SELECT airport, _wstart, flights, departed, delay, worst FROM {DATABASE}.hourly_delay"
        ),
        check=(
            f"SELECT origin AS airport, time_bucket(INTERVAL 1 HOUR, ts) AS _wstart, {_HOURLY} FROM"
            " departures GROUP BY ALL"
        ),
        key=("airport", "_wstart"),
        flush=True,
    ),
    DemoStream(
        name="rolling",
        title="the last day, every six hours, all airports",
        ddl=f"""CREATE STREAM {DATABASE}.rolling TRIGGER WINDOW_CLOSE WATERMARK 2h
            INTO {DATABASE}.rolling_day
            AS SELECT _wstart, {_ALL} FROM {DATABASE}.{TABLE} INTERVAL(1d) SLIDING(6h)""",
        result=(
            f"SELECT _wstart, flights, delay, spread_of_arrivals, miles FROM {DATABASE}.rolling_day"
        ),
        check=f"""SELECT time_bucket(INTERVAL 6 HOUR, ts) - back.range * INTERVAL 6 HOUR AS _wstart,
            {_ALL.replace("stddev(", "stddev_pop(")}
            FROM departures, range(4) AS back GROUP BY ALL""",
        key=("_wstart",),
        flush=True,
    ),
    DemoStream(
        name="late",
        title="departures two hours late or more",
        ddl=f"""CREATE STREAM {DATABASE}.late TRIGGER AT_ONCE
            INTO {DATABASE}.late_departures TAGS (aircraft VARCHAR(16))
            SUBTABLE(concat('late_', aircraft))
            AS SELECT ts, dep_delay, origin, dest FROM {DATABASE}.{TABLE}
            WHERE dep_delay >= 120 PARTITION BY tbname AS aircraft""",
        result=f"SELECT aircraft, ts, dep_delay, origin, dest FROM {DATABASE}.late_departures",
        check=(
            "SELECT tbname AS aircraft, ts, dep_delay, origin, dest FROM departures WHERE dep_delay"
            " >= 120"
        ),
        key=("aircraft", "ts"),
        flush=False,
    ),
    DemoStream(
        name="aircraft",
        title="a day of each aircraft",
        ddl=f"""CREATE STREAM {DATABASE}.aircraft TRIGGER AT_ONCE
            INTO {DATABASE}.aircraft_day TAGS (aircraft VARCHAR(16))
            SUBTABLE(concat('day_', aircraft))
            AS SELECT _wstart, count(*) AS legs, sum(air_time) AS minutes, last(dest) AS went_to
            FROM {DATABASE}.{TABLE} PARTITION BY tbname AS aircraft INTERVAL(1d)""",
        result=f"SELECT aircraft, _wstart, legs, minutes, went_to FROM {DATABASE}.aircraft_day",
        check="""SELECT tbname AS aircraft, time_bucket(INTERVAL 1 DAY, ts) AS _wstart,
            count(*) AS legs, sum(air_time) AS minutes, arg_max(dest, ts) AS went_to
            FROM departures GROUP BY ALL""",
        key=("aircraft", "_wstart"),
        flush=False,
    ),
    DemoStream(
        name="daily",
        title="a stream over the hourly stream",
        ddl=f"""CREATE STREAM {DATABASE}.daily TRIGGER AT_ONCE
            INTO {DATABASE}.daily_delay TAGS (airport VARCHAR(3))
            SUBTABLE(concat('daily_', airport))
            AS SELECT _wstart, count(*) AS hours, sum(flights) AS flights, max(worst) AS worst
            FROM {DATABASE}.hourly_delay PARTITION BY airport INTERVAL(1d)""",
        result=f"SELECT airport, _wstart, hours, flights, worst FROM {DATABASE}.daily_delay",
        check="""SELECT origin AS airport, time_bucket(INTERVAL 1 DAY, ts) AS _wstart,
            count(DISTINCT time_bucket(INTERVAL 1 HOUR, ts)) AS hours,
            count(*) AS flights, max(dep_delay) AS worst
            FROM departures GROUP BY ALL""",
        key=("airport", "_wstart"),
        flush=False,
    ),
)


def expect(stream: DemoStream, rows: pl.DataFrame) -> pl.DataFrame:
    """Compute what the stream's table must hold in the end, by DuckDB over the rows themselves;
    times as epoch milliseconds.
    """
    departures = rows.with_columns(pl.col("ts").cast(pl.Datetime("ms"))).to_arrow()
    with duckdb.connect() as con:
        con.register("departures", departures)
        return comparable(pl.DataFrame(con.sql(stream.check).to_arrow_table()))


def comparable(frame: pl.DataFrame) -> pl.DataFrame:
    """Times to epoch milliseconds, numbers to Int64 or Float64, so that both sides have one
    form.
    """
    made = []
    for name, kind in frame.schema.items():
        column = pl.col(name)
        if isinstance(kind, pl.Datetime):
            made.append(column.dt.epoch("ms"))
        elif kind.is_integer() or isinstance(kind, pl.Decimal) or kind == pl.Int128:
            made.append(column.cast(pl.Int64))
        elif kind.is_float():
            made.append(column.cast(pl.Float64))
        else:
            made.append(column)
    return frame.select(made)


def mismatches(stream: DemoStream, found: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """Rows that one side lacks, has twice, or has with another value (floats: 1e-9 relative)."""
    key = list(stream.key)
    values = [c for c in wanted.columns if c not in key]
    joined = comparable(found).join(
        wanted, on=key, how="full", suffix="_wanted", coalesce=True, nulls_equal=True
    )
    there = joined.join(
        found.select(key).pipe(comparable).unique(), on=key, how="semi", nulls_equal=True
    ).height
    differs = pl.lit(joined.height != wanted.height or there != joined.height) & pl.all_horizontal(
        pl.col(values).is_null()
    )
    for name in values:
        other = pl.col(f"{name}_wanted")
        if wanted.schema[name].is_float():
            close = (pl.col(name) - other).abs() <= 1e-9 * pl.max_horizontal(
                pl.col(name).abs(), other.abs(), 1.0
            )
            same = close.fill_null(False) | (pl.col(name).is_null() & other.is_null())
        else:
            same = pl.col(name).eq_missing(other)
        differs = differs | ~same
    return joined.filter(differs)
