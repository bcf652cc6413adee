"""Calls of the dialect's functions and of user-defined ones."""

from __future__ import annotations

from functools import partial
from typing import NoReturn

import polars as pl
from sqlglot import exp

from penstock.sql.compile.arguments import compile_argument
from penstock.sql.compile.compiler import Compiler, NodeCompiler
from penstock.sql.functions import (
    AGGREGATES,
    FORBIDDEN,
    RANDOM,
    REGISTRY,
    WINDOW_FUNCTIONS,
)
from penstock.sql.functions.base import NO_LIMIT, NULL, Compiled, Function, FunctionCall
from penstock.sql.functions.convert import convert
from penstock.sql.functions.other_names import did_you_mean
from penstock.types import ColumnType
from penstock.udf import UserFunction, sandbox


def _trim(compiler: Compiler, node: exp.Trim) -> Compiled:
    what = node.args.get("expression")
    if what is None:
        what = exp.Literal.string(" ")
    side = exp.Literal.string(node.args.get("position") or "BOTH")
    call = exp.Anonymous(this="trim")
    # not by the constructor: the arguments stay where they stand, for who looks around them
    call.args["expressions"] = [node.this, side, what]
    call.meta.update(node.meta)
    return _call(compiler, call)


def _call(compiler: Compiler, node: exp.Anonymous) -> Compiled:
    name = str(node.this).lower()
    function = REGISTRY.get(name)
    if function is None:
        user = compiler.functions(name)
        if user is not None:
            return _user_call(compiler, user, node)
        _refuse_unknown(compiler, node, name)
    _check_arity(compiler, function, name, node)
    args = tuple(compile_argument(compiler, function, i, e) for i, e in enumerate(node.expressions))
    call = FunctionCall(name, args, compiler.scope, node)
    kind = function.returns
    if not isinstance(kind, ColumnType):
        kind = kind([a.type for a in args], call)
    if kind == NULL:
        return Compiled(pl.lit(None), NULL)
    return Compiled(function.build(call).cast(kind.polars(), strict=False), kind)


def _check_arity(compiler: Compiler, function: Function, name: str, node: exp.Anonymous) -> None:
    least, most = function.arity
    if least <= len(node.expressions) <= most:
        return
    if least == most:
        wanted = str(least)
    elif most < NO_LIMIT:
        wanted = f"{least} to {most}"
    else:
        wanted = f"{least} or more"
    compiler.refuse(
        node,
        f"{name}() takes {wanted} arguments, not {len(node.expressions)}",
        code="E_FUNCTION_ARGUMENT",
        hint=f"{function.signature}: {function.doc.splitlines()[0]}",
    )


def _user_call(compiler: Compiler, function: UserFunction, node: exp.Anonymous) -> Compiled:
    """Call a user-defined function, which runs in its sandbox (`penstock.udf`)."""
    if function.aggregate:
        _refuse_aggregate(compiler, node, function.name)
    if len(node.expressions) != len(function.parameters):
        wanted = ", ".join(str(p) for p in function.parameters)
        message = (
            f"{function.name}() takes {len(function.parameters)} arguments, not"
            f" {len(node.expressions)}"
        )
        compiler.refuse(
            node, message, code="E_FUNCTION_ARGUMENT", hint=f"{function.name}({wanted})"
        )
    arguments = [_user_argument(compiler, function, i, e) for i, e in enumerate(node.expressions)]
    if not any(a.meta.root_names() for a in arguments):
        compiler.refuse(
            node,
            f"{function.name}() needs a column among its arguments",
            code="E_FUNCTION_ARGUMENT",
        )
    call = pl.struct(arguments).map_batches(
        partial(sandbox.scalar, function), return_dtype=function.returns.polars()
    )
    return Compiled(call, function.returns)


def _user_argument(
    compiler: Compiler, function: UserFunction, index: int, node: exp.Expr
) -> pl.Expr:
    kind = function.parameters[index]
    value = compiler.compile(node)
    argument = value.expr if value.type == kind else convert(value, kind, compiler.scope)
    if argument is None:
        compiler.mismatch(node, f"argument {index + 1} of {function.name}():", value.type, kind)
    return argument.cast(kind.polars(), strict=False).alias(f"a{index}")


def _refuse_unknown(compiler: Compiler, node: exp.Anonymous, name: str) -> NoReturn:
    if name in FORBIDDEN:
        why, instead = FORBIDDEN[name]
        compiler.refuse(
            node,
            f"{name}() is not possible here: {why}",
            code="E_FORBIDDEN_FUNC",
            hint=f"instead: {instead}",
        )
    if name in RANDOM:
        compiler.refuse(
            node,
            f"{name}() is not possible here: each run would give another result",
            code="E_FORBIDDEN_FUNC",
        )
    if name in AGGREGATES:
        _refuse_aggregate(compiler, node, name)
    hint = did_you_mean(name, [*REGISTRY, *AGGREGATES])
    if name in WINDOW_FUNCTIONS:
        hint = (
            "a stream has no row before a row: rows that belong together are in one window, such as"
            " STATE_WINDOW, EVENT_WINDOW or COUNT_WINDOW"
        )
    compiler.refuse(node, f"there is no function {name}()", code="E_UNKNOWN_FUNCTION", hint=hint)


def _refuse_aggregate(compiler: Compiler, node: exp.Anonymous, name: str) -> NoReturn:
    compiler.refuse(
        node,
        f"{name}() is an aggregate and cannot stand here",
        code="E_AGGREGATE_HERE",
        hint=("aggregates belong into the select list beside a window, and not into each other"),
    )


NODES: dict[type[exp.Expr], NodeCompiler] = {
    exp.Anonymous: _call,
    exp.Trim: _trim,
}
