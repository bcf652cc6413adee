"""CAST and the functions that turn one type into another. A conversion never fails on a value: text
that is no number is 0, text that is no time is NULL, a number out of range wraps, text too long is
cut.
"""

from __future__ import annotations

import re

import polars as pl

from penstock.sql.functions.base import (
    BIGINT,
    POLARS,
    TIMESTAMP,
    Compiled,
    CompileScope,
    FunctionCall,
    scalar,
)
from penstock.sql.functions.duckdb import call as duck_call
from penstock.sql.functions.exact import double_text, finite, to_decimal, to_float
from penstock.sql.functions.time import local, parse_iso
from penstock.sql.functions.time_formats import (
    TOKEN_PATTERNS,
    parse_format,
    read_ticks,
    write_token,
)
from penstock.sql.plan import TICKS_PER_SECOND
from penstock.types import ColumnType

_LEADING_NUMBER = r"^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
#: hexadecimal bytes that end within a UTF-8 character; group 1 is what is before it
_HALF_CHARACTER = (
    r"^((?:[0-9a-f]{2})*?)"
    r"(?:[cd][0-9a-f]|e[0-9a-f](?:[89ab][0-9a-f])?|f[0-7](?:[89ab][0-9a-f]){0,2})$"
)


def convert(value: Compiled, to: ColumnType, scope: CompileScope) -> pl.Expr | None:
    """*value* as type *to*; None when there is no such conversion."""
    kind = value.type
    if kind.kind == "NULL":
        return pl.lit(None, to.polars())
    if kind.kind == "VARBINARY" or to.kind == "VARBINARY":
        return _binary(value, to)
    if to.text:
        return _cut(as_text(value), to)
    if kind.text:
        return _from_text(value.expr, to, scope)
    if to.kind == "BOOL":
        return value.expr if kind.kind == "BOOL" else value.expr != 0
    if to.kind in ("FLOAT", "DOUBLE", "DECIMAL"):
        number = value.expr.cast(pl.Int8) if kind.kind == "BOOL" else value.expr
        return _fraction(number, kind, to)
    return _whole(value.expr, kind, to)


def _fraction(number: pl.Expr, kind: ColumnType, to: ColumnType) -> pl.Expr:
    """A number as FLOAT, DOUBLE or DECIMAL; what does not fit is NULL."""
    if to.kind == "DECIMAL":
        return to_decimal(number, kind, to)
    return (
        to_float(number)
        if to.kind == "FLOAT" and kind != to
        else number.cast(to.polars(), strict=False)
    )


def _whole(expr: pl.Expr, kind: ColumnType, to: ColumnType) -> pl.Expr:
    """A number as an integer type: fractions are cut, what does not fit wraps."""
    if kind.kind in ("FLOAT", "DOUBLE", "DECIMAL"):
        number = expr.cast(pl.Float64)
        if to.kind == "BIGINT UNSIGNED":
            expr = (
                pl.when(number >= 0)
                .then(number.cast(pl.UInt64, strict=False))
                .otherwise(
                    number.cast(pl.Int64, strict=False).cast(
                        pl.UInt64, strict=False, wrap_numerical=True
                    )
                )
            )
        else:
            expr = number.clip(-(2.0**63), 2.0**63 - 1024).cast(pl.Int64, strict=False)
    return expr.cast(to.polars(), strict=False, wrap_numerical=True)


def _from_text(text: pl.Expr, to: ColumnType, scope: CompileScope) -> pl.Expr:
    text = text.cast(pl.String)
    if to.kind == "TIMESTAMP":
        ticks = text.str.strip_chars().cast(pl.Int64, strict=False)
        return pl.coalesce(ticks, parse_iso(text, scope))
    number = text.str.extract(_LEADING_NUMBER, 1)
    known = text.is_not_null()
    if to.kind == "BOOL":
        word = text.str.strip_chars().str.to_lowercase()
        truth = (
            pl.when(word == "true")
            .then(pl.lit(value=True))
            .otherwise(number.cast(pl.Float64, strict=False).fill_null(0.0) != 0)
        )
        return pl.when(known).then(truth).otherwise(None)
    if to.kind in ("FLOAT", "DOUBLE", "DECIMAL"):
        out = _text_fraction(number, to)
    else:
        # Digits go the exact way; only what has a point or an exponent goes through a double.
        exact = number.cast(pl.Int128, strict=False).cast(
            to.polars(), strict=False, wrap_numerical=True
        )
        rough = _whole(
            number.cast(pl.Float64, strict=False).fill_null(0.0), ColumnType("DOUBLE"), to
        )
        out = pl.coalesce(exact, rough)
    return pl.when(known).then(out).otherwise(None)


def _text_fraction(number: pl.Expr, to: ColumnType) -> pl.Expr:
    """The number that a text begins with (0 without one) as FLOAT, DOUBLE or DECIMAL."""
    double = number.cast(pl.Float64, strict=False).fill_null(0.0)
    if to.kind != "DECIMAL":
        return finite(double) if to.kind == "DOUBLE" else to_float(double)
    # Digits go the exact way; only what has an exponent goes through a double.
    exact = number.cast(pl.Decimal(38, to.scale), strict=False).cast(to.polars(), strict=False)
    return pl.coalesce(exact, to_decimal(double, ColumnType("DOUBLE"), to))


def as_text(value: Compiled) -> pl.Expr:
    """*value* as text."""
    kind = value.type.kind
    if kind == "NULL":
        return pl.lit(None, pl.String)
    if kind == "BOOL":
        return (
            pl.when(value.expr)
            .then(pl.lit("true"))
            .when(~value.expr)
            .then(pl.lit("false"))
            .otherwise(None)
        )
    if kind in ("FLOAT", "DOUBLE"):
        return double_text(value.expr)
    return value.expr.cast(pl.String)


def _cut(text: pl.Expr, to: ColumnType) -> pl.Expr:
    """*text* cut to the length of its type: NCHAR counts characters, VARCHAR bytes (never in the
    middle of a character).
    """
    if not to.sized or to.length <= 0:
        return text
    if to.kind == "NCHAR":
        return text.str.slice(0, to.length)
    head = (
        text.cast(pl.Binary)
        .bin.head(to.length)
        .bin.encode("hex")
        .str.replace(_HALF_CHARACTER, "$1")
    )
    return (
        pl.when(text.str.len_bytes() <= to.length)
        .then(text)
        .otherwise(head.str.decode("hex").cast(pl.String))
    )


def _binary(value: Compiled, to: ColumnType) -> pl.Expr | None:
    if to.kind == "VARBINARY" and value.type.kind == "VARBINARY":
        return value.expr.bin.head(to.length) if to.length else value.expr
    if to.kind == "VARBINARY" and value.type.kind in ("VARCHAR", "NCHAR"):
        raw = value.expr.cast(pl.Binary)
        hexadecimal = value.expr.str.slice(2).str.decode("hex", strict=False)
        raw = pl.when(value.expr.str.starts_with("\\x")).then(hexadecimal).otherwise(raw)
        return raw.bin.head(to.length) if to.length else raw
    return None


@scalar("to_iso8601", "time, literal text?", ColumnType("VARCHAR", length=64), duckdb=POLARS)
def to_iso8601(call: FunctionCall) -> pl.Expr:
    """ISO 8601 text with offset, in the stream's time zone or the given one (`Z`, `+08`, `+0800`,
    `+08:00`).
    """
    where = call.value(1)
    digits = {"ms": 3, "us": 6, "ns": 9}[call.scope.precision]
    if len(call) > 1 and (where is None or not re.fullmatch(r"[zZ]|[+-]\d{2}(:?\d{2})?", where)):
        call.refuse("the time zone of to_iso8601() is Z or an offset such as +08:00")
    if where is None:
        return local(call[0], call.scope).dt.strftime(f"%Y-%m-%dT%H:%M:%S%.{digits}f%z")
    numbers = where.replace(":", "")[1:] or "0000"
    minutes = (int(numbers[:2]) * 60 + int(numbers[2:] or 0)) * (-1 if where[0] == "-" else 1)
    shifted = call[0] + minutes * 60 * TICKS_PER_SECOND[call.scope.precision]
    text = local(shifted, call.scope, "UTC").dt.strftime(f"%Y-%m-%dT%H:%M:%S%.{digits}f")
    return pl.concat_str([text, pl.lit(where)])


@scalar("to_json", "text", ColumnType("JSON"), duckdb=duck_call("to_json"))
def to_json(call: FunctionCall) -> pl.Expr:
    """The text as a JSON value, for `->`."""
    return call[0]


@scalar(
    "to_unixtimestamp",
    "text, literal integer?",
    lambda types, call: TIMESTAMP if call.value(1, 0) else BIGINT,
    duckdb=POLARS,
)
def to_unixtimestamp(call: FunctionCall) -> pl.Expr:
    """ISO text as ticks: BIGINT, or TIMESTAMP with 1 behind; NULL when it cannot be read."""
    if call.value(1, 0) not in (0, 1):
        call.refuse("the second argument of to_unixtimestamp() is 0 (BIGINT) or 1 (TIMESTAMP)")
    return parse_iso(call[0], call.scope)


@scalar("to_char", "time, literal text", ColumnType("VARCHAR", length=256), duckdb=POLARS)
def to_char(call: FunctionCall) -> pl.Expr:
    """The local time in a format of YYYY MM DD HH24 MI SS MS US NS, MON, DAY, AM, TZH and the like;
    "…" is taken as it is.
    """
    layout = call.value(1)
    if layout is None:
        return pl.lit(None, pl.String)
    at = local(call[0], call.scope)
    parts = [
        pl.lit(text) if kind == "text" else write_token(text, at)
        for kind, text in parse_format(layout)
    ]
    return pl.when(call[0].is_not_null()).then(pl.concat_str(parts or [pl.lit("")])).otherwise(None)


@scalar("to_timestamp", "text, literal text", TIMESTAMP, duckdb=POLARS)
def to_timestamp(call: FunctionCall) -> pl.Expr:
    """The text read by a format as `to_char` writes it; what the format leaves out is that of
    1970-01-01 00:00:00 local time; NULL when it does not fit.
    """
    layout = call.value(1)
    if layout is None:
        return pl.lit(None, pl.Int64)
    pattern = r"^\s*"
    fields = []
    for kind, text in parse_format(layout):
        if kind == "text":
            pattern += "".join(r"\s*" if c.isspace() else re.escape(c) for c in text)
        elif text.upper() == "DDD":
            call.refuse(
                "to_timestamp() cannot read the day of the year (DDD)",
                hint="write month and day: YYYY-MM-DD",
            )
        else:
            fields.append(text.upper())
            pattern += r"\s*" + TOKEN_PATTERNS[text.upper()]
    groups = {name: call[0].str.extract(pattern, i + 1) for i, name in enumerate(fields)}
    return read_ticks(call, groups, call[0].str.contains(pattern))
