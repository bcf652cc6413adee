"""The statement's moment and zone in a query. In a stream, `now` is the record's append time."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from sqlglot import exp

from penstock.sql.functions.duckdb import Arguments, QueryScope
from penstock.sql.functions.zones import zone

_NANOS = 1_000_000_000
_UNITS = {"ms": 1_000_000, "us": 1_000, "ns": 1}
#: makes a TIMESTAMP of ticks
MAKERS = {"ms": "make_timestamp_ms", "us": "make_timestamp", "ns": "make_timestamp_ns"}


def now(_: Arguments, scope: QueryScope) -> exp.Expr:
    """Return the moment of the statement, in ticks of the first table."""
    return _time(scope.moment, scope)


def today(_: Arguments, scope: QueryScope) -> exp.Expr:
    """Return midnight before the moment, in the session's zone."""
    here = ZoneInfo(zone(scope.timezone))
    seconds = scope.moment // _NANOS
    midnight = datetime.fromtimestamp(seconds, here).replace(hour=0, minute=0, second=0, fold=0)
    return _time(int(midnight.astimezone(UTC).timestamp()) * _NANOS, scope)


def timezone(_: Arguments, scope: QueryScope) -> exp.Expr:
    """Return the name of the session's zone."""
    return exp.Literal.string(scope.timezone)


def earliest(_: Arguments, scope: QueryScope) -> exp.Expr:
    """Return the first moment of 1970."""
    return _time(0, scope)


def _time(moment: int, scope: QueryScope) -> exp.Expr:
    ticks = exp.Literal.number(moment // _UNITS[scope.precision])
    return exp.Anonymous(this=MAKERS[scope.precision], expressions=[ticks])
