"""Conditions: comparisons, BETWEEN, IN, IS NULL and three-valued logic."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence

import polars as pl
from sqlglot import exp

from penstock.sql.compile.compiler import Compiler, NodeCompiler
from penstock.sql.compile.constants import ticks_of
from penstock.sql.functions.base import BOOL, NULL, TIMESTAMP, Compiled
from penstock.sql.functions.convert import convert
from penstock.sql.functions.time import parse_iso
from penstock.sql.words import TIME_FORMS
from penstock.types import ColumnType

#: text that reads as a number
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
#: a longer IN list of constants is one set look-up
_MOST_COMPARED = 8
_OPERATORS: dict[type[exp.Expr], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}

_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def _not(compiler: Compiler, node: exp.Not) -> Compiled:
    return Compiled(~compiler.truth(node.this), BOOL)


def _logic(compiler: Compiler, node: exp.Connector) -> Compiled:
    # Flattened: a chain of hundreds of OR stays shallow.
    parts = [compiler.truth(p) for p in node.flatten()]
    combine = pl.all_horizontal if isinstance(node, exp.And) else pl.any_horizontal
    return Compiled(combine(parts), BOOL)


def _comparison(compiler: Compiler, node: exp.Binary) -> Compiled:
    left = compiler.compile(node.left)
    right = compiler.compile(node.right)
    return Compiled(compare(compiler, type(node), left, right, node), BOOL)


def compare(
    compiler: Compiler,
    operation: type[exp.Expr],
    left: Compiled,
    right: Compiled,
    node: exp.Expr,
) -> pl.Expr:
    """Compare two values in a type that both have a form in; *node* is where errors point."""
    if left.literal and not right.literal:
        # a constant stands behind: polars gives one value for all rows where the other side is a
        # choice that is a constant in each of them
        left, right = right, left
        operation = _TURNED.get(operation, operation)
    a, b = _align(compiler, left, right, node)
    return _OPERATORS[operation](a, b)


def _align(
    compiler: Compiler, left: Compiled, right: Compiled, node: exp.Expr
) -> tuple[pl.Expr, pl.Expr]:
    """Return both sides of a comparison in one polars type."""
    if left.type == NULL or right.type == NULL:
        return pl.lit(None, pl.Int64), pl.lit(None, pl.Int64)
    compiler.check_fixed_length(left, node)
    compiler.check_fixed_length(right, node)
    if TIMESTAMP in (left.type, right.type):
        return _as_time(compiler, left, right, node), _as_time(compiler, right, left, node)
    if "VARBINARY" in (left.type.kind, right.type.kind):
        return _align_binary(compiler, left, right, node)
    if left.type.text and right.type.text:
        return left.expr, right.expr
    if left.type.text or right.type.text:
        return _align_text(compiler, left, right, node)
    return _align_numbers(left, right)


def _align_binary(
    compiler: Compiler, left: Compiled, right: Compiled, node: exp.Expr
) -> tuple[pl.Expr, pl.Expr]:
    a = convert(left, ColumnType("VARBINARY"), compiler.scope)
    b = convert(right, ColumnType("VARBINARY"), compiler.scope)
    if a is None or b is None:
        compiler.mismatch(node, "comparison:", left.type, right.type)
    return a, b


def _align_numbers(left: Compiled, right: Compiled) -> tuple[pl.Expr, pl.Expr]:
    a = left.type
    b = right.type
    whole = a.integer and b.integer
    if whole and ("UNSIGNED" in a.kind) != ("UNSIGNED" in b.kind):
        return left.expr.cast(pl.Int128), right.expr.cast(pl.Int128)
    if whole or (a.kind == b.kind and a.kind in ("BOOL", "DECIMAL")):
        return left.expr, right.expr
    if "BOOL" in (a.kind, b.kind) and (a.integer or b.integer):
        return left.expr.cast(pl.Int64, strict=False), right.expr.cast(pl.Int64, strict=False)
    return left.expr.cast(pl.Float64), right.expr.cast(pl.Float64)


def _align_text(
    compiler: Compiler, left: Compiled, right: Compiled, node: exp.Expr
) -> tuple[pl.Expr, pl.Expr]:
    """Read the text beside a number or BOOL as one; a literal that is none is refused."""
    text, other = (left, right) if left.type.text else (right, left)
    if text.literal and text.value is None:
        return pl.lit(None, pl.Float64), pl.lit(None, pl.Float64)
    if text.literal and other.type.kind == "BOOL" and _word(text) in ("true", "false"):
        a = pl.lit(_word(text) == "true")
        b = other.expr
    elif text.literal and not _NUMBER.fullmatch(str(text.value)):
        compiler.mismatch(
            node,
            "comparison:",
            left.type,
            right.type,
            hint="compare text with text, or write a number",
        )
    else:
        a = _read_number(text)
        b = other.expr.cast(pl.Float64)
    return (a, b) if left.type.text else (b, a)


def _word(text: Compiled) -> str:
    return str(text.value).strip().lower()


def _read_number(text: Compiled) -> pl.Expr:
    """Return the number that *text* holds; true and false of JSON are 1 and 0."""
    if text.literal:
        # polars reads no blanks around a number, which `_NUMBER` allows in a constant
        return pl.lit(float(text.value), pl.Float64)
    number = text.expr.cast(pl.Float64, strict=False)
    if text.type.kind != "JSON":
        return number
    word = text.expr.replace_strict(
        ["true", "false"], [1.0, 0.0], default=None, return_dtype=pl.Float64
    )
    return pl.when(number.is_null()).then(word).otherwise(number)


def _as_time(compiler: Compiler, value: Compiled, beside: Compiled, node: exp.Expr) -> pl.Expr:
    """Return *value* as ticks, to stand beside a time."""
    if value.type == TIMESTAMP or value.type.integer:
        return value.expr.cast(pl.Int64, strict=False)
    if value.type.kind in ("FLOAT", "DOUBLE", "DECIMAL"):
        return value.expr.cast(pl.Float64)
    if value.literal and value.value is None:
        return pl.lit(None, pl.Int64)
    if value.literal and value.type.text:
        return _literal_time(compiler, value, beside, node)
    if value.type.text:
        return parse_iso(value.expr, compiler.scope)
    compiler.mismatch(node, "comparison:", beside.type, value.type)


def _literal_time(compiler: Compiler, value: Compiled, beside: Compiled, node: exp.Expr) -> pl.Expr:
    ticks = ticks_of(value.value, compiler.scope.precision, compiler.scope.timezone)
    if ticks is None:
        same = (x for x in node.find_all(exp.Literal) if x.is_string and x.this == value.value)
        compiler.refuse(
            next(same, node),
            f"'{value.value}' is no time",
            code="E_TYPE",
            detail=f"comparison: {beside.type} and {value.type} do not fit",
            hint=TIME_FORMS,
        )
    return pl.lit(ticks, pl.Int64)


def _between(compiler: Compiler, node: exp.Between) -> Compiled:
    value = compiler.compile(node.this)
    low = compiler.compile(node.args["low"])
    high = compiler.compile(node.args["high"])
    above = compare(compiler, exp.GTE, value, low, node)
    return Compiled(above & compare(compiler, exp.LTE, value, high, node), BOOL)


def _in(compiler: Compiler, node: exp.In) -> Compiled:
    if node.args.get("query") is not None or not node.expressions:
        compiler.refuse(
            node, "IN takes a list of values here, not a query", code="E_UNSUPPORTED_EXPRESSION"
        )
    value = compiler.compile(node.this)
    items = [compiler.compile(e) for e in node.expressions]
    if value.type == NULL:
        return Compiled(pl.lit(None, pl.Boolean), BOOL)
    known = [i for i in items if i.type != NULL]
    hit = _is_one_of(compiler, value, known, node)
    if len(known) < len(items):
        hit = pl.when(hit).then(pl.lit(value=True)).otherwise(pl.lit(None, pl.Boolean))
    return Compiled(hit, BOOL)


def _is_one_of(
    compiler: Compiler, value: Compiled, items: Sequence[Compiled], node: exp.In
) -> pl.Expr:
    if not items:
        return pl.lit(value=False)
    if len(items) > _MOST_COMPARED and all(i.literal for i in items):
        constants = [i.value for i in items]
        if all(map(_is_whole, (value, *items))):
            wanted = pl.Series(constants, dtype=pl.Int128)
            return value.expr.cast(pl.Int128).is_in(wanted.implode())
        if all(map(_is_text, (value, *items))):
            return value.expr.is_in(pl.Series(constants, dtype=pl.String).implode())
    return pl.any_horizontal([compare(compiler, exp.EQ, value, i, node) for i in items])


def _is_whole(value: Compiled) -> bool:
    return value.type.integer and value.duration is None


def _is_text(value: Compiled) -> bool:
    return value.type.text


def _is_null(compiler: Compiler, node: exp.Is) -> Compiled:
    return Compiled(compiler.compile(node.this).expr.is_null(), BOOL)


NODES: dict[type[exp.Expr], NodeCompiler] = {
    exp.And: _logic,
    exp.Or: _logic,
    exp.Not: _not,
    **dict.fromkeys(_OPERATORS, _comparison),
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is_null,
}
