"""Columns, literals and durations, and the parentheses and aliases around them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import polars as pl
from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.compile.compiler import Compiler, NodeCompiler, nearest
from penstock.sql.functions.base import BIGINT, BOOL, DOUBLE, NULL, TIMESTAMP, Compiled
from penstock.sql.functions.time import NOW
from penstock.types import ColumnType

#: types of whole numbers, each with its lowest value and the first that is too high
_WHOLE_NUMBERS = (
    ("INT", -(2**31), 2**31),
    ("BIGINT", -(2**63), 2**63),
    ("BIGINT UNSIGNED", 0, 2**64),
)


def _inner(compiler: Compiler, node: exp.Paren | exp.Alias) -> Compiled:
    return compiler.compile(node.this)


def _column(compiler: Compiler, node: exp.Column) -> Compiled:
    if isinstance(node.this, exp.Star):
        compiler.refuse(
            node, "* is not possible inside an expression", code="E_UNSUPPORTED_EXPRESSION"
        )
    name = node.name.lower()
    if name in compiler.columns:
        spelled, kind = compiler.columns[name]
        return Compiled(compiler.computed.get(spelled, pl.col(spelled)), kind)
    if name in (NOW, "now"):
        return Compiled(pl.col(NOW), TIMESTAMP)
    known = sorted(spelled for spelled, _ in compiler.columns.values())
    near = nearest(node.name, (spelled for spelled, _ in compiler.columns.values()))
    hint = f"did you mean {near}?" if near else "known here: " + ", ".join(known)
    compiler.refuse(node, f"there is no column {node.name}", code="E_UNKNOWN_COLUMN", hint=hint)


def _literal(compiler: Compiler, node: exp.Literal) -> Compiled:
    if not node.is_string:
        return number(node.this)
    text: str = node.this
    if any("\ud800" <= c <= "\udfff" for c in text):
        compiler.refuse(
            node,
            "this text has half a character in it",
            code="E_CONSTANT",
            hint="write it in UTF-8, without single surrogates",
        )
    kind = ColumnType("VARCHAR", length=max(1, len(text.encode())))
    return Compiled(pl.lit(text), kind, literal=True, value=text)


def number(text: str, sign: int = 1) -> Compiled:
    """Return a number literal: the smallest of INT, BIGINT, BIGINT UNSIGNED that holds it, else
    DOUBLE.
    """
    value: Any
    if text.lower().startswith(("0x", "0b")):
        value = sign * int(text, 0)
    elif re.fullmatch(r"\d+", text):
        value = sign * int(text)
    else:
        value = sign * float(Decimal(text))
    if isinstance(value, int):
        for name, low, high in _WHOLE_NUMBERS:
            if low <= value < high:
                kind = ColumnType(name)
                return Compiled(pl.lit(value, kind.polars()), kind, literal=True, value=value)
        value = float(value)
    return Compiled(pl.lit(value, pl.Float64), DOUBLE, literal=True, value=value)


def _binary(compiler: Compiler, node: nodes.BinaryLiteral) -> Compiled:
    value = bytes.fromhex(node.name)
    kind = ColumnType("VARBINARY", length=max(1, len(value)))
    return Compiled(pl.lit(value), kind, literal=True, value=value)


def _null(compiler: Compiler, node: exp.Null) -> Compiled:
    return Compiled(pl.lit(None), NULL, literal=True)


def _boolean(compiler: Compiler, node: exp.Boolean) -> Compiled:
    value = bool(node.this)
    return Compiled(pl.lit(value), BOOL, literal=True, value=value)


def _duration(compiler: Compiler, node: nodes.DurationLiteral) -> Compiled:
    duration = node.duration
    if duration.natural:
        return Compiled(pl.lit(None, pl.Int64), BIGINT, literal=True, duration=duration)
    ticks = duration.ticks(compiler.scope.precision)
    return Compiled(pl.lit(ticks, pl.Int64), BIGINT, literal=True, value=ticks, duration=duration)


NODES: dict[type[exp.Expr], NodeCompiler] = {
    exp.Paren: _inner,
    exp.Alias: _inner,
    exp.Column: _column,
    exp.Literal: _literal,
    nodes.BinaryLiteral: _binary,
    exp.Null: _null,
    exp.Boolean: _boolean,
    nodes.DurationLiteral: _duration,
}
