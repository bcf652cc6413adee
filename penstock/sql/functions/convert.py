"""CAST and the functions that turn one type into another. A conversion never fails on a value: text
that is no number is 0, text that is no time is NULL, a number out of range wraps, text too long is
cut.
"""

from __future__ import annotations

import re

import polars as pl

from penstock.sql.functions.base import BIGINT, TIMESTAMP, Call, Compiled, Scope, scalar
from penstock.sql.functions.exact import double_text, finite, to_decimal, to_float
from penstock.sql.functions.time import local, parse_iso, to_ticks
from penstock.sql.plan import TICKS_PER_SECOND
from penstock.types import ColumnType

_LEADING_NUMBER = r"^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
#: hexadecimal bytes that end within a UTF-8 character; group 1 is what is before it
_HALF_CHARACTER = (
    r"^((?:[0-9a-f]{2})*?)"
    r"(?:[cd][0-9a-f]|e[0-9a-f](?:[89ab][0-9a-f])?|f[0-7](?:[89ab][0-9a-f]){0,2})$"
)


def convert(value: Compiled, to: ColumnType, scope: Scope) -> pl.Expr | None:
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


def _from_text(text: pl.Expr, to: ColumnType, scope: Scope) -> pl.Expr:
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


@scalar("to_iso8601", "time, literal text?", ColumnType("VARCHAR", length=64))
def to_iso8601(call: Call) -> pl.Expr:
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


@scalar("to_json", "text", ColumnType("JSON"))
def to_json(call: Call) -> pl.Expr:
    """The text as a JSON value, for `->`."""
    return call[0]


@scalar(
    "to_unixtimestamp",
    "text, literal integer?",
    lambda types, call: TIMESTAMP if call.value(1, 0) else BIGINT,
)
def to_unixtimestamp(call: Call) -> pl.Expr:
    """ISO text as ticks: BIGINT, or TIMESTAMP with 1 behind; NULL when it cannot be read."""
    if call.value(1, 0) not in (0, 1):
        call.refuse("the second argument of to_unixtimestamp() is 0 (BIGINT) or 1 (TIMESTAMP)")
    return parse_iso(call[0], call.scope)


_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_TOKENS = (
    "A.M. a.m. P.M. p.m. AM am PM pm YYYY yyyy YYY yyy YY yy MONTH Month month MON Mon mon DDD ddd"
    " DD dd DAY Day day DY Dy dy D d HH24 hh24 HH12 hh12 HH hh MI mi MM mm SS ss MS ms US us NS ns"
    " TZH tzh Y y"
).split()
_TOKEN = re.compile(
    r'"((?:[^"\\]|\\.)*)"|\\(")|('
    + "|".join(sorted((re.escape(t) for t in _TOKENS), key=len, reverse=True))
    + ")"
)


def _format(text: str) -> list[tuple[str, str]]:
    """A TDengine time format as ("token" | "text", value) pieces."""
    pieces: list[tuple[str, str]] = []
    end = 0
    for found in _TOKEN.finditer(text):
        if found.start() > end:
            pieces.append(("text", text[end : found.start()]))
        quoted, escaped, token = found.groups()
        pieces.append(("token", token) if token else ("text", escaped if escaped else quoted))
        end = found.end()
    if end < len(text):
        pieces.append(("text", text[end:]))
    return pieces


#: tokens that are a field of strftime
_FIELDS = {
    "YYYY": "%Y",
    "MM": "%m",
    "DD": "%d",
    "DDD": "%j",
    "HH24": "%H",
    "HH12": "%I",
    "HH": "%I",
    "MI": "%M",
    "SS": "%S",
    "MS": "%3f",
    "US": "%6f",
    "NS": "%9f",
}
#: tokens that are a name, written in upper or lower case as the token is
_NAME_FIELDS = {"MONTH": "%B", "MON": "%b", "DAY": "%A", "DY": "%a"}


def _piece(token: str, at: pl.Expr) -> pl.Expr:
    """Return the part of the datetime *at* that *token* stands for."""
    upper = token.upper()
    if upper in _FIELDS:
        return at.dt.strftime(_FIELDS[upper])
    if upper in ("YYY", "YY", "Y"):
        return at.dt.strftime("%Y").str.tail(len(upper))
    if upper == "D":
        return (at.dt.weekday() % 7 + 1).cast(pl.String)
    if upper == "TZH":
        return at.dt.strftime("%z").str.slice(0, 3)
    if upper in ("AM", "PM", "A.M.", "P.M."):
        return _half_of_day(token, at)
    return _name_piece(token, at)


def _half_of_day(token: str, at: pl.Expr) -> pl.Expr:
    forenoon, afternoon = ("a.m.", "p.m.") if "." in token else ("am", "pm")
    if token[0].isupper():
        forenoon = forenoon.upper()
        afternoon = afternoon.upper()
    return pl.when(at.dt.hour() < 12).then(pl.lit(forenoon)).otherwise(pl.lit(afternoon))


def _name_piece(token: str, at: pl.Expr) -> pl.Expr:
    """Return the name of the month or day; long ones are padded to a width of 9."""
    name = at.dt.strftime(_NAME_FIELDS[token.upper()])
    if token.isupper():
        name = name.str.to_uppercase()
    elif token.islower():
        name = name.str.to_lowercase()
    return name.str.pad_end(9) if token.upper() in ("MONTH", "DAY") else name


@scalar("to_char", "time, literal text", ColumnType("VARCHAR", length=256))
def to_char(call: Call) -> pl.Expr:
    """The local time in a format of YYYY MM DD HH24 MI SS MS US NS, MON, DAY, AM, TZH and the like;
    "…" is taken as it is.
    """
    layout = call.value(1)
    if layout is None:
        return pl.lit(None, pl.String)
    at = local(call[0], call.scope)
    parts = [pl.lit(text) if kind == "text" else _piece(text, at) for kind, text in _format(layout)]
    return pl.when(call[0].is_not_null()).then(pl.concat_str(parts or [pl.lit("")])).otherwise(None)


_READ = {
    "YYYY": r"(\d{1,4})",
    "YYY": r"(\d{1,3})",
    "YY": r"(\d{1,2})",
    "Y": r"(\d)",
    "MM": r"(\d{1,2})",
    "DD": r"(\d{1,2})",
    "HH24": r"(\d{1,2})",
    "HH12": r"(\d{1,2})",
    "HH": r"(\d{1,2})",
    "MI": r"(\d{1,2})",
    "SS": r"(\d{1,2})",
    "MS": r"(\d{1,3})",
    "US": r"(\d{1,6})",
    "NS": r"(\d{1,9})",
    "TZH": r"([+-]\d{1,2})",
    "AM": r"([AaPp][Mm])",
    "PM": r"([AaPp][Mm])",
    "A.M.": r"([AaPp]\.[Mm]\.)",
    "P.M.": r"([AaPp]\.[Mm]\.)",
    "MONTH": f"(?i:({'|'.join(_MONTHS)}))",
    "MON": f"(?i:({'|'.join(m[:3] for m in _MONTHS)}))",
    "DAY": r"([A-Za-z]+)",
    "DY": r"([A-Za-z]{3})",
    "D": r"(\d)",
}


@scalar("to_timestamp", "text, literal text", TIMESTAMP)
def to_timestamp(call: Call) -> pl.Expr:
    """The text read by a format as `to_char` writes it; what the format leaves out is that of
    1970-01-01 00:00:00 local time; NULL when it does not fit.
    """
    layout = call.value(1)
    if layout is None:
        return pl.lit(None, pl.Int64)
    pattern = r"^\s*"
    fields = []
    for kind, text in _format(layout):
        if kind == "text":
            pattern += "".join(r"\s*" if c.isspace() else re.escape(c) for c in text)
        elif text.upper() == "DDD":
            call.refuse(
                "to_timestamp() cannot read the day of the year (DDD)",
                hint="write month and day: YYYY-MM-DD",
            )
        else:
            fields.append(text.upper())
            pattern += r"\s*" + _READ[text.upper()]
    groups = {name: call[0].str.extract(pattern, i + 1) for i, name in enumerate(fields)}
    return _assemble(call, groups, call[0].str.contains(pattern))


def _assemble(call: Call, groups: dict[str, pl.Expr], fits: pl.Expr) -> pl.Expr:
    """Return ticks of the time that the groups of a format have read."""
    hour = _hour(groups)
    minute = _number(groups, ("MI",), 0)
    second = _number(groups, ("SS",), 0)
    valid = fits & (hour < 24) & (minute < 60) & (second < 60)
    text = pl.concat_str(
        [
            _year(groups).cast(pl.String).str.zfill(4),
            _month(groups).cast(pl.String),
            _number(groups, ("DD",), 1).cast(pl.String),
        ],
        separator="-",
    )
    wall = text.str.to_datetime("%Y-%m-%d", time_unit="us", strict=False)
    wall = wall + pl.duration(seconds=hour * 3600 + minute * 60 + second, time_unit="us")
    us_scope = Scope("us", call.scope.timezone, call.scope.refuse)
    if "TZH" in groups:
        whole = wall.cast(pl.Int64) // 1_000_000 - _number(groups, ("TZH",), 0) * 3600
    else:
        whole = to_ticks(wall, us_scope) // 1_000_000
    per_second = TICKS_PER_SECOND[call.scope.precision]
    nanos = (
        _number(groups, ("MS",), 0) * 1_000_000
        + _number(groups, ("US",), 0) * 1_000
        + _number(groups, ("NS",), 0)
    )
    return (
        pl.when(valid)
        .then(whole * per_second + nanos // (1_000_000_000 // per_second))
        .otherwise(None)
    )


def _number(groups: dict[str, pl.Expr], names: tuple[str, ...], default: int) -> pl.Expr:
    """Return what the last of the groups with these *names* has read."""
    last = next((n for n in reversed(groups) if n in names), None)
    if last is None:
        return pl.lit(default, pl.Int64)
    return groups[last].cast(pl.Int64, strict=False)


def _year(groups: dict[str, pl.Expr]) -> pl.Expr:
    year = _number(groups, ("YYYY",), 1970)
    for name, base in (("YYY", 2000), ("YY", 2000), ("Y", 2020)):
        if name in groups and "YYYY" not in groups:
            year = _number(groups, (name,), 0) + base
    return year


def _month(groups: dict[str, pl.Expr]) -> pl.Expr:
    month = _number(groups, ("MM",), 1)
    for name, size in (("MONTH", 9), ("MON", 3)):
        if name in groups:
            names = [m[:size] for m in _MONTHS]
            month = (
                groups[name]
                .str.to_lowercase()
                .replace_strict(names, list(range(1, 13)), default=None, return_dtype=pl.Int64)
            )
    return month


def _hour(groups: dict[str, pl.Expr]) -> pl.Expr:
    hour = _number(groups, ("HH24", "HH12", "HH"), 0)
    half = next((groups[n] for n in ("AM", "PM", "A.M.", "P.M.") if n in groups), None)
    if half is None:
        return hour
    afternoon = half.str.to_lowercase().str.starts_with("p")
    return hour % 12 + pl.when(afternoon).then(12).otherwise(0)
