"""Time: ticks to calendar and back, in the stream's time zone; text in ISO form is read as a
time.
"""

from __future__ import annotations

import polars as pl
from sqlglot import exp

from penstock.sql.functions import choices, moments
from penstock.sql.functions.base import (
    BIGINT,
    POLARS,
    TIMESTAMP,
    CompileScope,
    FunctionCall,
    scalar,
)
from penstock.sql.functions.duckdb import Arguments, QueryScope, polars_call
from penstock.sql.functions.exact import tick_sum
from penstock.sql.functions.zones import zone
from penstock.sql.nodes import DurationLiteral
from penstock.sql.plan import TICKS_PER_SECOND, Duration
from penstock.types import ColumnType

#: the append time of the record: what `now` is, so that a replay sees the same
NOW = "_now"


def local(ticks: pl.Expr, scope: CompileScope, where: str | None = None) -> pl.Expr:
    """Ticks as a polars datetime of the stream's time zone."""
    unit: pl.datatypes.TimeUnit = scope.precision  # type: ignore[name-defined]
    return (
        ticks.cast(pl.Int64)
        .cast(pl.Datetime(unit, "UTC"))
        .dt.convert_time_zone(zone(where or scope.timezone))
    )


def to_ticks(wall: pl.Expr, scope: CompileScope, where: str | None = None) -> pl.Expr:
    """A zone-less datetime of the stream's precision as ticks; an hour that daylight saving skips
    is NULL.
    """
    placed = wall.dt.replace_time_zone(
        zone(where or scope.timezone), ambiguous="earliest", non_existent="null"
    )
    return placed.dt.convert_time_zone("UTC").cast(pl.Int64)


_ISO = (
    r"^\s*(?P<date>\d{4}-\d{1,2}-\d{1,2})(?:[T"
    r" ]+(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}))?)?"
    r"(?:[.,](?P<fraction>\d{1,9})\d*)?)?\s*(?:(?P<utc>[Zz])|(?P<sign>[+-])(?P<zh>\d{2}):?(?P<zm>\d{2})?)?\s*$"
)


def parse_iso(text: pl.Expr, scope: CompileScope) -> pl.Expr:
    """ISO 8601 / RFC 3339 text as ticks; without offset it is local time; what cannot be read is
    NULL.
    """
    parts = text.str.extract_groups(_ISO)

    def part(name: str) -> pl.Expr:
        return parts.struct.field(name)

    def number(name: str) -> pl.Expr:
        return part(name).cast(pl.Int64, strict=False).fill_null(0)

    day = part("date").str.to_datetime("%Y-%m-%d", time_unit="us", strict=False)
    seconds = number("hour") * 3600 + number("minute") * 60 + number("second")
    valid = (number("hour") < 24) & (number("minute") < 60) & (number("second") < 60)
    wall = day + pl.duration(seconds=seconds, time_unit="us")
    us_scope = CompileScope("us", scope.timezone, scope.refuse)
    shift = (number("zh") * 3600 + number("zm") * 60) * pl.when(part("sign") == "-").then(
        -1
    ).otherwise(1)
    absolute = wall.cast(pl.Int64) // 1_000_000 - shift
    fixed = part("utc").is_not_null() | part("sign").is_not_null()
    whole = pl.when(fixed).then(absolute).otherwise(to_ticks(wall, us_scope) // 1_000_000)
    per_second = TICKS_PER_SECOND[scope.precision]
    nanos = part("fraction").str.pad_end(9, "0").cast(pl.Int64, strict=False).fill_null(0)
    return (
        pl.when(valid)
        .then(whole * per_second + nanos // (1_000_000_000 // per_second))
        .otherwise(None)
    )


def shift(ticks: pl.Expr, by: Duration, scope: CompileScope, sign: int) -> pl.Expr:
    """*ticks* moved by a duration; months and years go by the local calendar."""
    if not by.natural:
        return tick_sum(ticks, pl.lit(sign * by.ticks(scope.precision), pl.Int64))
    months = sign * by.value * (12 if by.unit == "y" else 1)
    return (
        local(ticks, scope)
        .dt.replace_time_zone(None)
        .dt.offset_by(f"{months}mo")
        .pipe(to_ticks, scope)
    )


def now(scope: CompileScope) -> pl.Expr:
    """Append time of the record."""
    return pl.col(NOW)


def _floor_wall(ticks: pl.Expr, step: int, scope: CompileScope, where: str) -> pl.Expr:
    wall = local(ticks, scope, where).dt.replace_time_zone(None)
    floor = wall.cast(pl.Int64) // step * step
    return to_ticks(floor.cast(pl.Datetime(scope.precision)), scope, where)  # type: ignore[arg-type]


@scalar("now", "", TIMESTAMP, duckdb=moments.now)
def now_(call: FunctionCall) -> pl.Expr:
    """The time at which the record was appended to the log, so that a replay sees the same."""
    return now(call.scope)


@scalar("today", "", TIMESTAMP, duckdb=moments.today)
def today(call: FunctionCall) -> pl.Expr:
    """Local midnight before `now()`."""
    return _floor_wall(
        now(call.scope),
        86_400 * TICKS_PER_SECOND[call.scope.precision],
        call.scope,
        call.scope.timezone,
    )


@scalar("timezone", "", ColumnType("VARCHAR", length=64), duckdb=moments.timezone)
def timezone(call: FunctionCall) -> pl.Expr:
    """The stream's time zone."""
    return pl.lit(call.scope.timezone)


def _unit(call: FunctionCall, index: int) -> Duration | None:
    if index >= len(call):
        return None
    unit = call.args[index].duration
    if unit is None:
        return None
    if unit.natural or unit.value != 1:
        call.refuse(
            f"the unit of {call.function}() must be one of 1b 1u 1a 1s 1m 1h 1d 1w, not {unit}"
        )
    if unit.ticks(call.scope.precision) < 1:
        call.refuse(
            f"the unit {unit} of {call.function}() is finer than the database's precision"
            f" {call.scope.precision}"
        )
    return unit


@scalar("timediff", "time, time, unit?", BIGINT, duckdb=POLARS)
def timediff(call: FunctionCall) -> pl.Expr:
    """First time minus second, in whole units (ticks without one), cut toward zero."""
    unit = _unit(call, 2)
    difference = call[0] - call[1]
    step = unit.ticks(call.scope.precision) if unit else 1
    return (difference.abs() // step) * difference.sign()


_by_polars = polars_call("timetruncate", (1, 2))
#: units shorter than a day, as DuckDB calls them
_SHORT_UNITS = {
    "u": "MICROSECOND",
    "a": "MILLISECOND",
    "s": "SECOND",
    "m": "MINUTE",
    "h": "HOUR",
}


def _duck_timetruncate(args: Arguments, scope: QueryScope) -> exp.Expr:
    """Cut a time column by DuckDB where no zone matters; everything else is for polars, which takes
    ten times as long.
    """
    unit = args[1].duration if isinstance(args[1], DurationLiteral) else None
    plain = len(args) == 2 and unit is not None and unit.value == 1 and unit.unit in _SHORT_UNITS
    if unit is None or not plain or not scope.is_time(args[0]):
        return _by_polars(args, scope)
    if unit.ticks(scope.precision) < 1:
        return _by_polars(args, scope)
    size = exp.Interval(this=exp.Literal.string("1"), unit=exp.var(_SHORT_UNITS[unit.unit]))
    origin = exp.cast(exp.Literal.string("1970-01-01"), "TIMESTAMP")
    return exp.Anonymous(this="time_bucket", expressions=[size, args[0], origin])


@scalar("timetruncate", "time, unit, literal any?", TIMESTAMP, duckdb=_duck_timetruncate)
def timetruncate(call: FunctionCall) -> pl.Expr:
    """Cut down to the unit; days and weeks by local midnight, by UTC with 0 behind. Weeks begin on
    Thursday.
    """
    unit = _unit(call, 1)
    if unit is None:
        return pl.lit(None, pl.Int64)
    step = unit.ticks(call.scope.precision)
    use_local = call.value(2, 1)
    if use_local not in (0, 1):
        call.refuse("the third argument of timetruncate() is 0 (UTC) or 1 (the stream's time zone)")
    if unit.unit in "dw" and use_local:
        return _floor_wall(call[0], step, call.scope, call.scope.timezone)
    return call[0] // step * step


_bin_by_polars = polars_call("date_bin", (0,))


def _duck_date_bin(args: Arguments, scope: QueryScope) -> exp.Expr:
    """Cut a time column by DuckDB where bins begin in 1970; everything else is for polars."""
    unit = args[0].duration if isinstance(args[0], DurationLiteral) else None
    if unit is None or len(args) != 2 or not scope.is_time(args[1]):
        return _bin_by_polars(args, scope)
    # DuckDB counts in microseconds; what is refused is refused by polars
    if unit.natural or unit.unit == "b" or unit.ticks(scope.precision) < 1:
        return _bin_by_polars(args, scope)
    length = exp.Literal.string(str(unit.ticks("us")))
    size = exp.Interval(this=length, unit=exp.var("MICROSECOND"))
    origin = exp.cast(exp.Literal.string("1970-01-01"), "TIMESTAMP")
    return exp.Anonymous(this="time_bucket", expressions=[size, args[1], origin])


@scalar("date_bin", "unit, time, time?", TIMESTAMP, duckdb=_duck_date_bin)
def date_bin(call: FunctionCall) -> pl.Expr:
    """The beginning of the bin that a time is in. Bins are as long as the unit, such as 15m, and
    one of them begins at the third argument, else at the beginning of 1970 in UTC.
    """
    length = call.args[0].duration
    if length is None:
        return pl.lit(None, pl.Int64)
    step = length.ticks(call.scope.precision)
    if length.natural:
        call.refuse(f"bins of {length} have several lengths", hint="count in days or weeks: 30d")
    if step < 1:
        call.refuse(
            f"bins of {length} are finer than the database's precision {call.scope.precision}"
            if length.value
            else "a bin has a length"
        )
    if len(call) < 3:
        return call[1] - call[1] % step
    # remainders first: the difference of two times may have more than 64 bits
    return call[1] - (call[1] % step - call[2] % step) % step


@scalar(
    "date",
    "time",
    ColumnType("VARCHAR", length=10),
    duckdb=choices.in_utc("date", "strftime(@, '%Y-%m-%d')"),
)
def date(call: FunctionCall) -> pl.Expr:
    """Local date as `2024-01-31`."""
    return local(call[0], call.scope).dt.strftime("%Y-%m-%d")


@scalar("day", "time", BIGINT, aliases=("dayofmonth",), duckdb=choices.in_utc("day", "day(@)"))
def day(call: FunctionCall) -> pl.Expr:
    """Local day of the month, 1 to 31."""
    return local(call[0], call.scope).dt.day().cast(pl.Int64)


@scalar("dayofweek", "time", BIGINT, duckdb=choices.in_utc("dayofweek", "dayofweek(@) + 1"))
def dayofweek(call: FunctionCall) -> pl.Expr:
    """Local day of the week, 1 = Sunday to 7 = Saturday."""
    return local(call[0], call.scope).dt.weekday().cast(pl.Int64) % 7 + 1


@scalar("weekday", "time", BIGINT, duckdb=choices.in_utc("weekday", "isodow(@) - 1"))
def weekday(call: FunctionCall) -> pl.Expr:
    """Local day of the week, 0 = Monday to 6 = Sunday."""
    return local(call[0], call.scope).dt.weekday().cast(pl.Int64) - 1


@scalar("weekofyear", "time", BIGINT, duckdb=choices.in_utc("weekofyear", "weekofyear(@)"))
def weekofyear(call: FunctionCall) -> pl.Expr:
    """Week of the local year as `week(t, 3)`: ISO weeks, 1 to 53."""
    return local(call[0], call.scope).dt.week().cast(pl.Int64)


@scalar("week", "time, literal integer?", BIGINT, duckdb=POLARS)
def week(call: FunctionCall) -> pl.Expr:
    """Week of the local year. Mode (0 to 7, default 0) says whether weeks begin on Sunday or
    Monday, which week is the first, and whether days before it are week 0 or belong to the last
    week of the year before (MySQL's modes).
    """
    mode = call.value(1, 0)
    if mode not in range(8):
        call.refuse("the mode of week() is 0 to 7")
    monday = mode in (1, 3, 5, 7)
    last_year = mode in (2, 3, 6, 7)
    four_days = mode in (1, 3, 4, 6)
    at = local(call[0], call.scope)
    # Days from the start of the week to this day, and to the first of January.
    into = (at.dt.weekday() - 1).cast(pl.Int64) if monday else at.dt.weekday().cast(pl.Int64) % 7
    ordinal = at.dt.ordinal_day().cast(pl.Int64) - 1
    year = at.dt.year().cast(pl.Int64)

    def weeks(ordinal: pl.Expr, into: pl.Expr) -> pl.Expr:
        first = (into - ordinal) % 7  # weekday of 1 January, counted from the week's first day
        begins = (
            pl.when(first <= 3).then(-first).otherwise(7 - first) if four_days else (7 - first) % 7
        )
        return (ordinal - begins) // 7 + 1

    number = weeks(ordinal, into)
    if not last_year:
        return number
    previous = year - 1
    leap = ((previous % 4 == 0) & (previous % 100 != 0)) | (previous % 400 == 0)
    days = pl.when(leap).then(366).otherwise(365).cast(pl.Int64)
    this = pl.when(number < 1).then(weeks(ordinal + days, into)).otherwise(number)
    if not four_days:
        return this
    # The last days of December belong to week 1 of the next year when that week has four days in
    # it.
    own_leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    own_days = pl.when(own_leap).then(366).otherwise(365).cast(pl.Int64)
    thursday = ordinal - into + 3
    return pl.when(thursday >= own_days).then(pl.lit(1, pl.Int64)).otherwise(this)
