"""Formats of `to_char` and `to_timestamp`: their tokens, written and read."""

from __future__ import annotations

import re

import polars as pl

from penstock.sql.functions.base import CompileScope, FunctionCall
from penstock.sql.functions.time import to_ticks
from penstock.sql.plan import TICKS_PER_SECOND

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


def parse_format(text: str) -> list[tuple[str, str]]:
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


def write_token(token: str, at: pl.Expr) -> pl.Expr:
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


TOKEN_PATTERNS = {
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


def read_ticks(call: FunctionCall, groups: dict[str, pl.Expr], fits: pl.Expr) -> pl.Expr:
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
    us_scope = CompileScope("us", call.scope.timezone, call.scope.refuse)
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
