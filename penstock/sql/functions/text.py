"""Text functions. Positions count characters from 1; `length` alone counts bytes (UTF-8)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import polars as pl
from sqlglot import exp

from penstock.sql.functions import choices, text_macros
from penstock.sql.functions.base import (
    BIGINT,
    MAX_TEXT,
    POLARS,
    UNKNOWN_LENGTH,
    FunctionCall,
    scalar,
    text_length,
    text_type,
)
from penstock.sql.functions.duckdb import Arguments, DuckForm, QueryScope
from penstock.sql.functions.duckdb import call as duck_call
from penstock.types import ColumnType

#: stands for the text to be repeated
_PLACE = "x"
#: hexadecimal bytes of whole UTF-8 characters
_UTF8 = (
    r"^(?:[0-7].|(?:c[2-9a-f]|d.)[89ab].|e0[ab].[89ab].|e[1-9a-cef][89ab].[89ab].|ed[89].[89ab]."
    r"|f[0-4](?:[89ab].){3})*$"
)


def _as_first(types: Sequence[ColumnType], call: FunctionCall) -> ColumnType:
    return text_type(types[:1], text_length(types[0]))


def _concat_type(types: Sequence[ColumnType], call: FunctionCall) -> ColumnType:
    return text_type(types, sum(text_length(t) for t in types))


def _concat_ws_type(types: Sequence[ColumnType], call: FunctionCall) -> ColumnType:
    return text_type(
        types, sum(text_length(t) for t in types[1:]) + text_length(types[0]) * (len(types) - 2)
    )


def _without_spaces(name: str) -> DuckForm:
    """Return the form of a trim that DuckDB calls *name*: of spaces, and of nothing else."""

    def make(args: Arguments, _: QueryScope) -> exp.Expr:
        return exp.Anonymous(this=name, expressions=[*args, exp.Literal.string(" ")])

    return make


@scalar("ascii", "text", BIGINT, duckdb=POLARS)
def ascii_(call: FunctionCall) -> pl.Expr:
    """Code of the first byte; 0 for empty text."""
    first = (
        call[0]
        .cast(pl.Binary)
        .bin.slice(0, 1)
        .bin.encode("hex")
        .str.to_integer(base=16, strict=False, dtype=pl.Int64)
    )
    return pl.when(call[0] == "").then(pl.lit(0, pl.Int64)).otherwise(first)


@scalar(
    "char",
    "integer+",
    lambda types, call: ColumnType("VARCHAR", length=4 * len(types)),
    duckdb=POLARS,
    strict=False,
)
def char(call: FunctionCall) -> pl.Expr:
    """Text made of the bytes with these codes, several per argument above 255; NULLs are
    skipped.
    """
    parts = [_hex(arg.expr).fill_null("") for arg in call.args]
    code = pl.concat_str(parts)
    # Bytes that are no UTF-8 text have no place in a VARCHAR: NULL.
    return (
        pl.when(code.str.contains(_UTF8))
        .then(code)
        .otherwise(None)
        .str.decode("hex")
        .cast(pl.String)
    )


def _hex(code: pl.Expr) -> pl.Expr:
    """Bytes of an integer, highest first, leading zero bytes cut, as hexadecimal text."""
    low = code % (1 << 32)
    digits = "0123456789abcdef"
    text = pl.concat_str(
        [pl.lit(digits).str.slice((low // (16**i)) % 16, 1) for i in reversed(range(8))]
    )
    return text.str.replace("^(00){1,3}", "")


@scalar("char_length", "text", BIGINT, aliases=("character_length",), duckdb=duck_call("length"))
def char_length(call: FunctionCall) -> pl.Expr:
    """Number of characters."""
    return call[0].str.len_chars().cast(pl.Int64)


@scalar("length", "any", BIGINT, duckdb=text_macros.LENGTH)
def length(call: FunctionCall) -> pl.Expr:
    """Number of bytes."""
    kind = call.args[0].type
    if kind.kind == "VARBINARY":
        return call[0].bin.size("b").cast(pl.Int64)
    if not kind.text and kind.kind != "NULL":
        call.refuse(
            f"length() takes text or VARBINARY, not {kind}",
            hint="convert it first: length(cast(x AS VARCHAR(64)))",
        )
    return call[0].cast(pl.String).str.len_bytes().cast(pl.Int64)


def _cut(text: pl.Expr, length: int) -> pl.Expr:
    """*text*, of at most *length* characters, no longer than a VARCHAR can be: or it would grow
    with every level of an expression.
    """
    return text if length <= MAX_TEXT else text.str.head(MAX_TEXT)


@scalar("concat", "text, text+", _concat_type, at_most=8, duckdb=duck_call("concat"))
def concat(call: FunctionCall) -> pl.Expr:
    """All arguments joined; NULL when any is."""
    return _cut(
        pl.concat_str([a.expr for a in call.args]), sum(text_length(a.type) for a in call.args)
    )


@scalar("concat_ws", "text, text, text+", _concat_ws_type, at_most=9, duckdb=duck_call("concat_ws"))
def concat_ws(call: FunctionCall) -> pl.Expr:
    """All but the first argument joined with the first between them; NULL when any is."""
    parts = [call[1]]
    for arg in call.args[2:]:
        parts += [call[0], arg.expr]
    length = sum(text_length(a.type) for a in call.args[1:]) + text_length(call.args[0].type) * (
        len(call) - 2
    )
    return _cut(pl.concat_str(parts), length)


@scalar("lower", "text", _as_first, duckdb=choices.of_ascii("lower"))
def lower(call: FunctionCall) -> pl.Expr:
    """Lower case."""
    return call[0].str.to_lowercase()


@scalar("upper", "text", _as_first, duckdb=choices.of_ascii("upper"))
def upper(call: FunctionCall) -> pl.Expr:
    """Upper case."""
    return call[0].str.to_uppercase()


@scalar("ltrim", "text", _as_first, duckdb=_without_spaces("ltrim"))
def ltrim(call: FunctionCall) -> pl.Expr:
    """Without spaces in front."""
    return call[0].str.strip_chars_start(" ")


@scalar("rtrim", "text", _as_first, duckdb=_without_spaces("rtrim"))
def rtrim(call: FunctionCall) -> pl.Expr:
    """Without spaces at the end."""
    return call[0].str.strip_chars_end(" ")


@scalar("trim", "text, literal any?, literal any?", _as_first, duckdb=choices.trim_characters)
def trim(call: FunctionCall) -> pl.Expr:
    """`trim([LEADING|TRAILING|BOTH] [what FROM] text)`: without any number of *what* (a space) at
    the ends.
    """
    side = str(call.value(1, "BOTH") or "BOTH")
    what = call.value(2, " ")
    what = " " if what is None else str(what)
    if not what:
        return call[0]
    ends = {"LEADING": ["^(?:{})+"], "TRAILING": ["(?:{})+$"], "BOTH": ["^(?:{})+", "(?:{})+$"]}[
        side.upper()
    ]
    out = call[0]
    for end in ends:
        out = out.str.replace("(?s)" + end.format(re.escape(what)), "")
    return out


@scalar(
    "substr",
    "text, integer, integer?",
    _as_first,
    aliases=("substring",),
    duckdb=text_macros.SUBSTR,
)
def substr(call: FunctionCall) -> pl.Expr:
    """Part from a position (negative: from the end), of that many characters; empty at position
    0.
    """
    text = call[0]
    position = call[1]
    size = text.str.len_chars().cast(pl.Int64)
    start = pl.when(position > 0).then(position - 1).otherwise(size + position)
    valid = (position != 0) & (start >= 0)
    if len(call) > 2:
        wanted = call[2].clip(lower_bound=0)
        part = text.str.slice(start.clip(lower_bound=0), wanted.cast(pl.UInt64))
        known = position.is_not_null() & call[2].is_not_null()
    else:
        part = text.str.slice(start.clip(lower_bound=0))
        known = position.is_not_null()
    return (
        pl.when(known & text.is_not_null())
        .then(pl.when(valid).then(part).otherwise(pl.lit("")))
        .otherwise(None)
    )


@scalar("substring_index", "text, literal text, integer", _as_first, duckdb=POLARS)
def substring_index(call: FunctionCall) -> pl.Expr:
    """What stands before the n-th delimiter, or after the n-th from the end when n is negative."""
    delimiter = call.value(1)
    count = call[2]
    if not delimiter:
        return pl.when(call[0].is_not_null() & count.is_not_null()).then(pl.lit("")).otherwise(None)
    parts = call[0].str.split(delimiter)
    head = parts.list.head(count.clip(lower_bound=0)).list.join(delimiter)
    tail = parts.list.tail((-count).clip(lower_bound=0)).list.join(delimiter)
    return pl.when(count >= 0).then(head).when(count < 0).then(tail).otherwise(None)


@scalar("position", "text, text", BIGINT, duckdb=text_macros.POSITION)
def position(call: FunctionCall) -> pl.Expr:
    """`position(what IN text)`: where *what* begins, 0 when it is not there, 1 when it is empty."""
    what = call[0]
    text = call[1]
    found = text.str.find(what, literal=True)
    # find() counts bytes; characters are what is before that byte.
    head = (
        text.cast(pl.Binary)
        .bin.head(found.cast(pl.Int64))
        .cast(pl.String)
        .str.len_chars()
        .cast(pl.Int64)
        + 1
    )
    known = what.is_not_null() & text.is_not_null()
    return (
        pl.when(~known).then(None).when(found.is_null()).then(pl.lit(0, pl.Int64)).otherwise(head)
    )


@scalar(
    "replace",
    "text, text, text",
    lambda types, call: text_type(types[:1], text_length(types[0]) + text_length(types[2])),
    duckdb=duck_call("replace"),
)
def replace(call: FunctionCall) -> pl.Expr:
    """Every occurrence of the second argument replaced by the third; NULL when that is longer than
    a VARCHAR can be.
    """
    old = call.args[1]
    new = call.args[2]
    if old.literal and new.literal and None not in (old.value, new.value):
        if old.value == "":
            return call[0]
        text = call[0]
        if len(new.value.encode()) > len(old.value.encode()):
            places = text.str.count_matches(re.escape(old.value))
            text = _fitting(text, places, old.expr, new.expr)
        return text.str.replace_all(old.expr, new.expr, literal=True)
    known = call[0].is_not_null() & old.expr.is_not_null() & new.expr.is_not_null()
    # A constant text is stretched to the frame's length first: joining does not do it.
    text = pl.when(known).then(call[0]).otherwise(None)
    parts = text.str.split(old.expr.fill_null(""))
    text = (
        pl.when(old.expr == "")
        .then(text)
        .otherwise(_fitting(text, parts.list.len() - 1, old.expr, new.expr))
    )
    out = pl.when(text.is_not_null()).then(parts).otherwise(None).list.join(new.expr.fill_null(""))
    return pl.when(old.expr == "").then(text).otherwise(out)


def _fitting(text: pl.Expr, places: pl.Expr, old: pl.Expr, new: pl.Expr) -> pl.Expr:
    """*text* where a VARCHAR can hold it with *new* for *old* at that many places, else NULL."""
    size, before, after = (e.str.len_bytes().cast(pl.Int64) for e in (text, old, new))
    return (
        pl.when(size + places.cast(pl.Int64) * (after - before) <= MAX_TEXT)
        .then(text)
        .otherwise(None)
    )


def _repeat_type(types: Sequence[ColumnType], call: FunctionCall) -> ColumnType:
    count = call.value(1)
    return text_type(
        types[:1],
        text_length(types[0]) * max(int(count), 1) if isinstance(count, int) else UNKNOWN_LENGTH,
    )


@scalar("repeat", "text, integer", _repeat_type, duckdb=duck_call("repeat"))
def repeat(call: FunctionCall) -> pl.Expr:
    """The text that many times, as often as it fits into a VARCHAR; empty below 1."""
    if call.args[0].literal and call.value(0) is None:
        return pl.lit(None, pl.String)
    # A constant text is stretched to the frame's length first: padding does not do it.
    text = pl.when(call[1].is_not_null()).then(call[0]).otherwise(None)
    fits = MAX_TEXT // text.str.len_bytes().cast(pl.Int64).clip(lower_bound=1)
    count = pl.min_horizontal(call[1].clip(lower_bound=0), fits)
    # A list of the parts would take sixteen bytes for each of them.
    places = text.str.head(0).str.pad_end(pl.when(text.is_null()).then(0).otherwise(count), _PLACE)
    return places.str.replace_all(
        _PLACE, text.fill_null(""), literal=True
    )  # polars refuses a frame of one row that is NULL


def _in_set(call: FunctionCall, matches: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
    """Index from 1 of the first item of the set for which *matches* is true, 0 without one."""
    delimiter = call.value(2, ",")
    if not delimiter:
        call.refuse(f"the separator of {call.function}() must not be empty or NULL")
    hits = call[1].str.split(delimiter).list.eval(matches(pl.element()))
    index = pl.when(hits.list.any()).then(hits.list.arg_max() + 1).otherwise(0).cast(pl.Int64)
    return pl.when(call[1].is_not_null()).then(index).otherwise(None)


@scalar("find_in_set", "text, text, literal text?", BIGINT, duckdb=POLARS)
def find_in_set(call: FunctionCall) -> pl.Expr:
    """Index of the text in a list written with separators (a comma), 0 when it is not there."""
    delimiter = call.value(2, ",")
    if not delimiter:
        call.refuse("the separator of find_in_set() must not be empty or NULL")
    items = call[1].str.split(delimiter)
    # The list up to the item, counted: works for an item that differs from row to row.
    padded = pl.concat_str([pl.lit(delimiter), call[1], pl.lit(delimiter)])
    needle = pl.concat_str([pl.lit(delimiter), call[0], pl.lit(delimiter)])
    head = (
        padded.cast(pl.Binary)
        .bin.head(padded.str.find(needle, literal=True).cast(pl.Int64))
        .cast(pl.String)
    )
    index = head.str.split(delimiter).list.len().cast(pl.Int64)
    found = items.list.contains(call[0])
    known = call[0].is_not_null() & call[1].is_not_null()
    return pl.when(~known).then(None).when(found).then(index).otherwise(pl.lit(0, pl.Int64))


@scalar("like_in_set", "literal text, text, literal text?", BIGINT, duckdb=POLARS)
def like_in_set(call: FunctionCall) -> pl.Expr:
    """Index of the first item of a list written with separators that is LIKE the pattern, 0 without
    one.
    """
    pattern = call.value(0)
    return (
        pl.lit(None, pl.Int64)
        if pattern is None
        else _in_set(call, lambda e: e.str.contains(like_pattern(pattern)))
    )


@scalar("regexp_in_set", "literal text, text, literal text?", BIGINT, duckdb=POLARS)
def regexp_in_set(call: FunctionCall) -> pl.Expr:
    """Index of the first item of a list written with separators in which the regular expression is
    found, 0 without one.
    """
    pattern = call.value(0)
    return (
        pl.lit(None, pl.Int64)
        if pattern is None
        else _in_set(call, lambda e: e.str.contains(pattern))
    )


def like_pattern(pattern: str, escape: str = "\\") -> str:
    """A LIKE pattern as regular expression: `%` any text, `_` one character, the escape character
    before either takes it as it is.
    """
    out = ""
    quoted = False
    for c in pattern:
        if quoted:
            out += re.escape(c) if c in "%_" + escape else re.escape(escape + c)
            quoted = False
        elif c == escape:
            quoted = True
        else:
            out += {"%": ".*", "_": "."}.get(c) or re.escape(c)
    return f"(?s)^{out}{re.escape(escape) if quoted else ''}$"
