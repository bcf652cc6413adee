"""Functions that DuckDB computes as the dialect does for some arguments: for those it does, in
a small part of the time, and polars for all others.

What is written twice must not grow with each level of a query, so only columns are.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.functions.duckdb import Arguments, DuckForm, QueryScope, macro, polars_call
from penstock.sql.functions.zones import zone

_UTC = ("UTC", "Etc/UTC")
#: of a time in these units DuckDB's functions look at the time itself
_EXACT = ("ms", "us")
_TRIMS = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def of_ascii(name: str) -> DuckForm:
    """Return the form of a function of one text, which DuckDB has, too: it knows the rules of other
    letters by halves.
    """
    by_polars = polars_call(name, ())

    def make(args: Arguments, scope: QueryScope) -> exp.Expr:
        text = args[0]
        if not isinstance(text, exp.Column):
            return by_polars(args, scope)
        bytes_, characters = (_call(count, text.copy()) for count in ("strlen", "length"))
        other = exp.If(
            this=exp.NEQ(this=bytes_, expression=characters),
            true=by_polars([text.copy()], scope),
        )
        return exp.Case(ifs=[other], default=_call(name, text))

    return make


def trim_characters(args: Arguments, scope: QueryScope) -> exp.Expr:
    """Return a trim: what DuckDB takes away is any of some characters, so it can be one."""
    side, what = (_text(args, place, default) for place, default in ((1, "BOTH"), (2, " ")))
    own = _TRIMS.get(side.upper())
    if own is None or len(what) != 1:
        return polars_call("trim", (1, 2))(args, scope)
    return _call(own, args[0], exp.Literal.string(what))


def _text(args: Arguments, place: int, default: str) -> str:
    """Return a constant argument; "" where it is no text."""
    if place >= len(args):
        return default
    found = args[place]
    return str(found.this) if isinstance(found, exp.Literal) and found.is_string else ""


def in_utc(name: str, body: str) -> DuckForm:
    """Return the form of a function of a local time, which is `@` in *body* where the zone is UTC.

    DuckDB cuts nanoseconds towards zero, and knows no times that are written as text.
    """
    by_polars = polars_call(name, ())
    # else DuckDB makes nanoseconds of it, which have no place for the year 1
    by_duckdb = macro(name, f"(x) AS {body.replace('@', 'CAST(x AS TIMESTAMP)')}")

    def make(args: Arguments, scope: QueryScope) -> exp.Expr:
        plain = zone(scope.timezone) in _UTC and scope.precision in _EXACT
        form = by_duckdb if plain and scope.is_time(args[0]) else by_polars
        return form(args, scope)

    return make


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))
