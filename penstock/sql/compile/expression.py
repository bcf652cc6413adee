"""Entry points: one expression, as text or as a tree, to a compiled one."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.sql.compile import arithmetic, calls, comparison, conversion, leaves, patterns
from penstock.sql.compile.compiler import Compiler, Functions, NodeCompiler, nothing
from penstock.sql.dialect import tokenize
from penstock.sql.functions.base import BIGINT, NULL, Compiled
from penstock.sql.parsers.query import QueryParser
from penstock.sql.source import Source
from penstock.types import ColumnType

NODES: dict[type[exp.Expr], NodeCompiler] = {
    **leaves.NODES,
    **arithmetic.NODES,
    **comparison.NODES,
    **patterns.NODES,
    **conversion.NODES,
    **calls.NODES,
}


def compile_expression(
    sql: str | exp.Expr,
    columns: Mapping[str, ColumnType],
    *,
    precision: str = "ms",
    timezone: str = "UTC",
    source: Source | None = None,
    functions: Functions = nothing,
    computed: Mapping[str, pl.Expr] | None = None,
) -> Compiled:
    """Compile one expression over a frame that has *columns* (and `_now` where `now` is used).

    Args:
        sql: the expression, as text or as a tree.
        columns: names and types of the frame's columns.
        precision: unit of ticks.
        timezone: time zone of times without an offset.
        source: text that *sql* comes from, for places in errors.
        functions: finds user-defined functions.
        computed: columns that are made of the frame's.
    """
    if isinstance(sql, str):
        source = Source(sql)
        sql = parse_expression(sql)
    compiler = Compiler(
        NODES, columns, precision, timezone, source or Source(), functions, computed or {}
    )
    compiled = compiler.compile(sql)
    if compiled.type == NULL:
        return Compiled(pl.lit(None, pl.Int64), BIGINT, literal=True)
    return compiled


def parse_expression(text: str) -> exp.Expr:
    """Parse one expression; raise SqlSyntaxError when *text* is none."""
    try:
        tokens = tokenize(text)
    except SqlglotError:
        raise Source(text).syntax_error(
            "this text cannot be read: a string or name is never closed", 0
        ) from None
    parser = QueryParser(tokens, Source(text))
    tree = parser.condition()
    parser.expect_end()
    return tree
