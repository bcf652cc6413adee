"""LIKE and MATCH over text, CONTAINS and -> over JSON."""

from __future__ import annotations

import re

import polars as pl
from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.compile.compiler import Compiler, NodeCompiler
from penstock.sql.functions.base import BOOL, NULL, Compiled
from penstock.sql.functions.text import like_pattern
from penstock.types import ColumnType

_MAX_PATTERN = 1024


def _text(compiler: Compiler, node: exp.Expr, what: str) -> pl.Expr:
    value = compiler.compile(node)
    if value.type == NULL:
        return pl.lit(None, pl.String)
    if not value.type.text:
        compiler.refuse(
            node,
            f"{what} needs text, not {value.type}",
            code="E_TYPE",
            detail=f"{value.type} and VARCHAR do not fit",
            hint="write CAST(… AS VARCHAR(64))",
        )
    return value.expr


def _pattern(compiler: Compiler, node: exp.Expr, what: str) -> str | None:
    value = compiler.compile(node)
    if value.type == NULL:
        return None
    if not value.literal or not isinstance(value.value, str):
        compiler.refuse(
            node,
            f"the pattern of {what} must be a text constant",
            code="E_PATTERN",
            detail=f"found {value.type}",
            hint="write it in quotes; position(a IN b) finds one column in another",
        )
    if len(value.value) > _MAX_PATTERN:
        compiler.refuse(
            node,
            f"the pattern of {what} is longer than {_MAX_PATTERN} characters",
            code="E_PATTERN",
        )
    return value.value


def _like(compiler: Compiler, node: exp.Like) -> Compiled:
    text = _text(compiler, node.this, "LIKE")
    pattern = _pattern(compiler, node.expression, "LIKE")
    if pattern is None:
        return Compiled(pl.lit(None, pl.Boolean), BOOL)
    return Compiled(text.str.contains(like_pattern(pattern)), BOOL)


def _match(compiler: Compiler, node: nodes.MatchRegex) -> Compiled:
    text = _text(compiler, node.this, "MATCH")
    pattern = _pattern(compiler, node.expression, "MATCH")
    if pattern is None:
        return Compiled(pl.lit(None, pl.Boolean), BOOL)
    check_regex(compiler, pattern, node.expression)
    return Compiled(text.str.contains(pattern), BOOL)


def check_regex(compiler: Compiler, pattern: str, node: exp.Expr) -> None:
    """Refuse a regular expression that cannot be read."""
    try:
        pl.select(pl.lit("").str.contains(pattern))
    except pl.exceptions.ComputeError as error:
        compiler.refuse(
            node,
            "the regular expression cannot be read",
            code="E_PATTERN",
            detail=str(error).split("\n")[0],
        )


def _contains_key(compiler: Compiler, node: nodes.ContainsKey) -> Compiled:
    value = compiler.compile(node.this)
    key = _pattern(compiler, node.expression, "CONTAINS")
    if value.type.kind != "JSON":
        compiler.refuse(node.this, f"CONTAINS needs a JSON tag, not {value.type}", code="E_TYPE")
    path = _json_path(compiler, key or "", node)
    with_value = value.expr.str.json_path_match(path).is_not_null()
    # A key whose value is null is there too.
    with_null = value.expr.str.contains(f'(?s)"{re.escape(key or "")}"\\s*:\\s*null')
    return Compiled(with_value | with_null, BOOL)


def _json_value(compiler: Compiler, node: exp.JSONExtract) -> Compiled:
    value = compiler.compile(node.this)
    if value.type.kind != "JSON":
        compiler.refuse(
            node.this,
            f"-> needs a JSON tag, not {value.type}",
            code="E_TYPE",
            detail=f"{value.type} is not JSON",
        )
    path = _json_path(compiler, node.expression.name, node)
    return Compiled(value.expr.str.json_path_match(path), ColumnType("JSON"))


def _json_path(compiler: Compiler, key: str, node: exp.Expr) -> str:
    """Return the JSON path of a key. Paths know no escapes, so the quote is the one that the key
    does not have.
    """
    quote = '"' if '"' not in key else "'"
    if quote in key or "\\" in key:
        compiler.refuse(
            node,
            "this key cannot be looked up",
            code="E_PATTERN",
            hint="a key has no backslash, and not both kinds of quotes",
        )
    return f"$[{quote}{key}{quote}]"


NODES: dict[type[exp.Expr], NodeCompiler] = {
    exp.Like: _like,
    nodes.MatchRegex: _match,
    nodes.ContainsKey: _contains_key,
    exp.JSONExtract: _json_value,
}
