"""Arithmetic over numbers, times and durations, and operators on bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
from sqlglot import exp

from penstock.sql.compile.compiler import Compiler, NodeCompiler
from penstock.sql.compile.constants import ticks_of
from penstock.sql.compile.leaves import number
from penstock.sql.functions.base import BIGINT, DOUBLE, NULL, TIMESTAMP, Compiled
from penstock.sql.functions.exact import finite, quotient, remainder, tick_sum
from penstock.sql.functions.time import shift
from penstock.sql.words import TIME_FORMS

#: an infinite value or NaN on the left side stays one: a chain of these makes NULL of it once, at
#: its end
_KEEPS_INFINITE = (exp.Add, exp.Sub, exp.Mul, exp.Div)


def _finite(raw: pl.Expr) -> Compiled:
    return Compiled(finite(raw), DOUBLE, raw=raw)


def _negative(compiler: Compiler, node: exp.Neg) -> Compiled:
    inner = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return number(inner.this, -1)
    value = compiler.compile(inner)
    if value.duration is not None:
        compiler.refuse(node, "a duration has no sign", code="E_TYPE", hint="subtract it instead")
    return Compiled(-compiler.double(value, node.this), DOUBLE)


def _chain(compiler: Compiler, node: exp.Binary) -> Compiled:
    """Compile `a + b - c …` from the left, in a loop, so that a chain of hundreds of operators
    needs no deep stack.
    """
    spine: list[exp.Binary] = []
    left: exp.Expr = node
    while isinstance(left, exp.Binary) and type(left) in _OPERATIONS:
        spine.append(left)
        left = left.left
    value = compiler.compile(left)
    for operation in reversed(spine):
        if value.raw is not None and type(operation) in _KEEPS_INFINITE:
            value = replace(value, expr=value.raw)
        right = compiler.compile(operation.right)
        combined = _OPERATIONS[type(operation)](compiler, operation, value, right)
        value = compiler.fold(combined, operation)
    return value


def _sum(compiler: Compiler, node: exp.Binary, left: Compiled, right: Compiled) -> Compiled:
    minus = isinstance(node, exp.Sub)
    if left.type == TIMESTAMP and right.type == TIMESTAMP:
        return _time_difference(compiler, node, left, right)
    if left.type == TIMESTAMP:
        return _shift_time(compiler, node, left, right)
    if right.type == TIMESTAMP:
        if minus:
            compiler.mismatch(node, "-:", left.type, right.type)
        return _shift_time(compiler, node, right, left)
    shifted = _shift_text(compiler, node, left, right)
    if shifted is not None:
        return shifted
    a = compiler.double(left, node.left)
    b = compiler.double(right, node.right)
    if left.duration is not None and right.duration is not None:
        return Compiled(tick_sum(left.expr, right.expr, minus), BIGINT)
    return _finite(a - b if minus else a + b)


def _shift_text(
    compiler: Compiler, node: exp.Binary, left: Compiled, right: Compiled
) -> Compiled | None:
    """Shift a constant text that is a time by a duration; None: these are not such."""
    text, by = (left, right) if right.duration is not None else (right, left)
    if not text.literal or not text.type.text or by.duration is None:
        return None
    if isinstance(node, exp.Sub) and text is right:
        compiler.refuse(node, "a time cannot be subtracted from a duration", code="E_TYPE")
    place = node.left if text is left else node.right
    return _shift_time(compiler, node, _constant_time(compiler, text, place), by)


def _constant_time(compiler: Compiler, text: Compiled, node: exp.Expr) -> Compiled:
    """Return the time that a text beside a duration is."""
    ticks = ticks_of(str(text.value), compiler.scope.precision, compiler.scope.timezone)
    if ticks is None:
        compiler.refuse(
            node, f"'{str(text.value)[:64]}' is no time", code="E_TYPE", hint=TIME_FORMS
        )
    return Compiled(pl.lit(ticks, pl.Int64), TIMESTAMP, literal=True, value=ticks)


def _time_difference(
    compiler: Compiler, node: exp.Binary, left: Compiled, right: Compiled
) -> Compiled:
    """Subtract two times, which gives ticks."""
    if not isinstance(node, exp.Sub):
        compiler.refuse(
            node,
            "two times cannot be added",
            code="E_TYPE",
            hint="subtract them, or add a duration such as 1h",
        )
    return Compiled(tick_sum(left.expr, right.expr, minus=True), BIGINT)


def _shift_time(compiler: Compiler, node: exp.Binary, time: Compiled, by: Compiled) -> Compiled:
    """Add a duration or ticks to a time, or subtract them."""
    minus = isinstance(node, exp.Sub)
    if by.duration is not None:
        sign = -1 if minus else 1
        return Compiled(shift(time.expr, by.duration, compiler.scope, sign), TIMESTAMP)
    if by.type == NULL:
        return Compiled(pl.lit(None, pl.Int64), TIMESTAMP)
    if by.type.integer or by.type.kind == "BOOL":
        ticks = by.expr.cast(pl.Int64, strict=False)
        return Compiled(tick_sum(time.expr, ticks, minus), TIMESTAMP)
    if by.type.text:
        compiler.mismatch(node, "-:" if minus else "+:", time.type, by.type)
    a = time.expr.cast(pl.Float64)
    b = compiler.double(by, node)
    return _finite(a - b if minus else a + b)


def _product(compiler: Compiler, node: exp.Binary, left: Compiled, right: Compiled) -> Compiled:
    a = compiler.double(left, node.left)
    b = compiler.double(right, node.right)
    if isinstance(node, exp.Mul):
        return _finite(a * b)
    if isinstance(node, exp.Mod):
        return Compiled(remainder(a, b), DOUBLE)
    return _finite(quotient(a, b))


def _bits(compiler: Compiler, node: exp.Binary, left: Compiled, right: Compiled) -> Compiled:
    a = _as_bits(compiler, node.left, left)
    b = _as_bits(compiler, node.right, right)
    return Compiled(a & b if isinstance(node, exp.BitwiseAnd) else a | b, BIGINT)


def _as_bits(compiler: Compiler, node: exp.Expr, value: Compiled) -> pl.Expr:
    if value.type == NULL:
        return pl.lit(None, pl.Int64)
    if not value.type.numeric and value.type.kind != "BOOL":
        compiler.refuse(node, f"bits of {value.type} cannot be combined with BIGINT", code="E_TYPE")
    return value.expr.cast(pl.Int64, strict=False, wrap_numerical=True)


_OPERATIONS: dict[type[exp.Expr], Callable[[Compiler, Any, Compiled, Compiled], Compiled]] = {
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Mul: _product,
    exp.Div: _product,
    exp.Mod: _product,
    exp.BitwiseAnd: _bits,
    exp.BitwiseOr: _bits,
}
NODES: dict[type[exp.Expr], NodeCompiler] = {
    exp.Neg: _negative,
    **dict.fromkeys(_OPERATIONS, _chain),
}
