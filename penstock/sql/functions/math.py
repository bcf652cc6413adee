"""Mathematical functions. All but those that keep their argument's type give DOUBLE; what
mathematics does not define is NULL.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

import polars as pl
from sqlglot import exp

from penstock.sql.functions import macros
from penstock.sql.functions.base import DOUBLE, POLARS, FunctionCall, same, scalar
from penstock.sql.functions.duckdb import Arguments, QueryScope, macro
from penstock.sql.functions.duckdb import call as duck_call
from penstock.sql.functions.exact import finite, narrow, quotient, remainder, round_whole
from penstock.types import ColumnType

_LN = macros.finite + "(try(ln(CAST({} AS DOUBLE))))"
_LOG = macro(
    "log",
    f"(x) AS {_LN.format('x')}",
    f"(x, base) AS {macros.finite}({_LN.format('x')} / {_LN.format('base')})",
    calls=(macros.FINITE,),
)
_POWER = macro(
    "power",
    f"(x, y) AS {macros.finite}(try(pow(CAST(x AS DOUBLE), CAST(y AS DOUBLE))))",
    calls=(macros.FINITE,),
)
_SIGN = macros.by_type(
    "sign",
    "sign(@)",
    "list_transform([@], lambda v: CASE WHEN isnan(v) THEN v ELSE sign(v) END)[1]",
)
_MOD = macro(
    "mod",
    f"(x, y) AS {macros.finite}(CAST(x AS DOUBLE) % CAST(y AS DOUBLE))",
    calls=(macros.FINITE,),
)


def _unary(name: str, doc: str, build: Callable[[pl.Expr], pl.Expr], duckdb: str = "") -> None:
    """Register a function of one number; *duckdb* is its expression where the name is another."""

    def build_call(call: FunctionCall) -> pl.Expr:
        return finite(build(call[0]))

    build_call.__doc__ = doc
    build_call.__module__ = __name__
    form = macros.finite_of(name, duckdb or f"{name}(@)")
    scalar(name, "double", DOUBLE, duckdb=form)(build_call)


_unary("acos", "Arc cosine in radians; NULL outside -1..1.", lambda x: x.arccos())
_unary("asin", "Arc sine in radians; NULL outside -1..1.", lambda x: x.arcsin())
_unary("atan", "Arc tangent in radians.", lambda x: x.arctan())
_unary("cos", "Cosine of an angle in radians.", lambda x: x.cos())
_unary("sin", "Sine of an angle in radians.", lambda x: x.sin())
_unary("tan", "Tangent of an angle in radians.", lambda x: x.tan())
_unary("exp", "e raised to the argument.", lambda x: x.exp())
_unary("ln", "Natural logarithm; NULL at 0 and below.", lambda x: x.log())
_unary("sqrt", "Square root; NULL below 0.", lambda x: x.sqrt())
_unary("degrees", "Radians as degrees.", lambda x: x * (180.0 / math.pi))
_unary("radians", "Degrees as radians.", lambda x: x * (math.pi / 180.0))


@scalar("pi", "", DOUBLE, duckdb=duck_call("pi"))
def pi(call: FunctionCall) -> pl.Expr:
    """The number π."""
    return pl.lit(math.pi)


@scalar("log", "double, double?", DOUBLE, duckdb=_LOG)
def log(call: FunctionCall) -> pl.Expr:
    """Logarithm to the base of the second argument, natural without one."""
    natural = finite(call[0].log())
    return finite(quotient(natural, finite(call[1].log()))) if len(call) > 1 else natural


@scalar("pow", "double, double", DOUBLE, aliases=("power",), duckdb=_POWER)
def power(call: FunctionCall) -> pl.Expr:
    """First argument raised to the second."""
    return finite(call[0].pow(call[1]))


@scalar("mod", "double, double", DOUBLE, duckdb=_MOD)
def mod(call: FunctionCall) -> pl.Expr:
    """Remainder with the sign of the first argument; NULL when the second is 0."""
    return remainder(call[0], call[1])


@scalar("abs", "number", same, duckdb=macros.by_type("abs", "abs(CAST(@ AS HUGEINT))", "abs(@)"))
def absolute(call: FunctionCall) -> pl.Expr:
    """Value without sign; NULL for the least value of an integer type, whose opposite it cannot
    hold.
    """
    kind = call.args[0].type
    if not kind.integer or kind.kind == "BIGINT UNSIGNED":
        return call[0].abs()
    wide = pl.Int128 if kind.kind == "BIGINT" else pl.Int64
    return narrow(call[0].cast(wide).abs(), kind)


@scalar("sign", "number", same, duckdb=_SIGN)
def sign(call: FunctionCall) -> pl.Expr:
    """-1, 0 or 1."""
    return call[0].sign()


def _whole(call: FunctionCall, build: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
    return call[0] if call.args[0].type.integer else build(call[0])


@scalar("ceil", "number", same, aliases=("ceiling",), duckdb=macros.by_type("ceil", "@", "ceil(@)"))
def ceil(call: FunctionCall) -> pl.Expr:
    """Smallest whole number that is not less."""
    return _whole(call, lambda x: x.ceil())


@scalar("floor", "number", same, duckdb=macros.by_type("floor", "@", "floor(@)"))
def floor(call: FunctionCall) -> pl.Expr:
    """Largest whole number that is not greater."""
    return _whole(call, lambda x: x.floor())


def _half_away(x: pl.Expr) -> pl.Expr:
    """To the nearest whole number, halves away from zero as C's round()."""
    return x.round(0, mode="half_away_from_zero")


def _at_digits(call: FunctionCall, whole: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
    """Apply *whole* at the digit that the second argument names (negative: left of the point)."""
    kind = call.args[0].type
    if len(call) < 2:
        return call[0] if kind.integer else whole(call[0])
    if kind.integer:
        kept = round_whole(call[0], call[1], kind, nearest=whole is _half_away)
        return pl.when(call[1] >= 0).then(call[0]).when(call[1] < 0).then(kept)
    scale = pl.lit(10.0).pow(call[1].abs().cast(pl.Float64))
    number = call[0].cast(pl.Float64)
    right = quotient(whole(number * scale), scale)
    left = whole(quotient(number, scale)) * scale
    exact = (
        pl.when(number.is_nan())
        .then(number)
        .when(call[1] >= 0)
        .then(pl.when(right.is_finite()).then(right).otherwise(number))
        .otherwise(left)
    )
    return pl.when(call[1].is_not_null()).then(exact).otherwise(None)


_round_whole = macros.by_type("round", "@", "round(@)")
_round_at = macros.at_digits("round_at", "round", nearest=True)


def _round(args: Arguments, scope: QueryScope) -> exp.Expr:
    return (_round_whole if len(args) == 1 else _round_at)(args, scope)


@scalar("round", "number, integer?", same, duckdb=_round)
def round_(call: FunctionCall) -> pl.Expr:
    """Nearest number with that many digits behind the point (negative: zeros before it); halves go
    away from zero.
    """
    return _at_digits(call, _half_away)


@scalar(
    "truncate",
    "number, integer",
    same,
    aliases=("trunc",),
    duckdb=macros.at_digits("truncate", "trunc", nearest=False),
)
def truncate(call: FunctionCall) -> pl.Expr:
    """Cut after that many digits behind the point (negative: zeros before it)."""
    return _at_digits(call, lambda x: x.truncate(0))


@scalar("crc32", "any", ColumnType("INT UNSIGNED"), duckdb=POLARS)
def crc32(call: FunctionCall) -> pl.Expr:
    """CRC-32 checksum of the value written as text."""
    text = (
        call[0]
        if call.args[0].type.kind == "VARBINARY"
        else call[0].cast(pl.String).cast(pl.Binary)
    )
    return text.map_batches(_crc32, return_dtype=pl.UInt32, is_elementwise=True)


def _crc32(values: pl.Series) -> pl.Series:
    # Neither polars nor arrow has a CRC; each distinct value is computed once.
    distinct = values.unique().drop_nulls()
    table = pl.Series([zlib.crc32(v) for v in distinct], dtype=pl.UInt32)
    return values.replace_strict(distinct, table, default=None, return_dtype=pl.UInt32)
