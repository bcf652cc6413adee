"""CASE and CAST: values brought to one type."""

from __future__ import annotations

import polars as pl
from sqlglot import exp

from penstock.sql.compile.comparison import compare
from penstock.sql.compile.compiler import Compiler, NodeCompiler
from penstock.sql.dialect import tokenize
from penstock.sql.functions.base import MAX_TEXT, NULL, Compiled, common
from penstock.sql.functions.conditional import as_type
from penstock.sql.functions.convert import convert
from penstock.sql.parsers.query import QueryParser
from penstock.sql.source import Source
from penstock.types import ColumnType

#: length of text that is made of a value without one
_DEFAULT_LENGTH = 64


def _case(compiler: Compiler, node: exp.Case) -> Compiled:
    branches = _branches(compiler, node)
    default = node.args.get("default")
    last = compiler.compile(default) if default is not None else Compiled(pl.lit(None), NULL)
    kinds = [value.type for _, value in branches] + [last.type]
    kind = common(kinds)
    if kind is None:
        names = " and ".join(dict.fromkeys(str(k) for k in kinds if k != NULL))
        compiler.refuse(
            node,
            f"CASE cannot choose between {names}",
            code="E_TYPE",
            hint="convert them to one type with CAST",
        )
    if kind == NULL:
        return Compiled(pl.lit(None), NULL)
    result = _as_type_or_null(last, kind)
    for condition, value in reversed(branches):
        result = pl.when(condition).then(_as_type_or_null(value, kind)).otherwise(result)
    return Compiled(result, kind)


def _branches(compiler: Compiler, node: exp.Case) -> list[tuple[pl.Expr, Compiled]]:
    """Return the condition and the value of each WHEN."""
    subject = compiler.compile(node.this) if node.this is not None else None
    branches = []
    for branch in node.args["ifs"]:
        if subject is None:
            condition = compiler.truth(branch.this)
        else:
            value = compiler.compile(branch.this)
            condition = compare(compiler, exp.EQ, subject, value, branch)
        branches.append((condition, compiler.compile(branch.args["true"])))
    return branches


def _as_type_or_null(value: Compiled, kind: ColumnType) -> pl.Expr:
    return as_type(value, kind) if value.type != NULL else pl.lit(None, kind.polars())


def _cast(compiler: Compiler, node: exp.Cast) -> Compiled:
    value = compiler.compile(node.this)
    compiler.check_fixed_length(value, node)
    to = QueryParser(tokenize(node.args["to"].name), Source()).column_type(default_length=0)
    if to.sized and not to.length:
        length = value.type.length if value.type.sized else _DEFAULT_LENGTH
        to = ColumnType(to.kind, length=min(max(length, 1), MAX_TEXT))
    converted = convert(value, to, compiler.scope) if to.kind != "JSON" else None
    if converted is None:
        compiler.mismatch(
            node,
            "CAST:",
            value.type,
            to,
            hint="there is no such conversion; go through VARCHAR",
        )
    return Compiled(converted, to)


NODES: dict[type[exp.Expr], NodeCompiler] = {
    exp.Case: _case,
    exp.Cast: _cast,
}
