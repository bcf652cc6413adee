"""Arguments of functions, checked and brought to the form that the parameter asks for
(`penstock.sql.functions.base`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import polars as pl
from sqlglot import exp

from penstock.sql.compile.compiler import Compiler
from penstock.sql.compile.patterns import check_regex
from penstock.sql.functions.base import (
    BIGINT,
    BOOL,
    DOUBLE,
    NULL,
    TIMESTAMP,
    Compiled,
    Function,
    Parameter,
)
from penstock.sql.functions.convert import convert
from penstock.sql.functions.time import parse_iso
from penstock.types import ColumnType


@dataclass(frozen=True)
class _Argument:
    """A compiled value in the place of a parameter."""

    compiler: Compiler
    function: Function
    parameter: Parameter
    index: int
    node: exp.Expr
    value: Compiled

    @property
    def kind(self) -> ColumnType:
        return self.value.type

    @property
    def known(self) -> bool:
        """False for NULL, which fits everywhere."""
        return self.kind != NULL

    def refuse(self, hint: str) -> NoReturn:
        """Raise the error of a type that the parameter does not take."""
        self.compiler.refuse(
            self.node,
            f"argument {self.index + 1} of {self.function.name}() is {self.kind}, but it takes"
            f" {self.parameter.kind}",
            code="E_TYPE",
            detail=self.function.signature,
            hint=hint,
        )

    def with_form(self, expr: pl.Expr, kind: ColumnType) -> Compiled:
        """Return the value as *expr* of *kind*; a constant stays one."""
        return Compiled(expr, kind, self.value.literal, self.value.value)


def compile_argument(
    compiler: Compiler, function: Function, index: int, node: exp.Expr
) -> Compiled:
    """Compile argument *index* of a call of *function*."""
    parameter = function.parameters[min(index, len(function.parameters) - 1)]
    value = compiler.compile(node)
    if parameter.literal and not value.literal:
        compiler.refuse(
            node,
            f"argument {index + 1} of {function.name}() must be a constant",
            code="E_FUNCTION_ARGUMENT",
            hint=function.signature,
        )
    if function.name == "regexp_in_set" and index == 0 and isinstance(value.value, str):
        check_regex(compiler, value.value, node)
    argument = _Argument(compiler, function, parameter, index, node, value)
    return _FORMS[parameter.kind](argument)


def _any(argument: _Argument) -> Compiled:
    return argument.value


def _unit(argument: _Argument) -> Compiled:
    if argument.known and argument.value.duration is None:
        argument.refuse("write a duration such as 1s, 1h or 1d")
    return argument.value


def _bool(argument: _Argument) -> Compiled:
    return Compiled(argument.compiler.truth(argument.node), BOOL)


def _number(argument: _Argument) -> Compiled:
    kind = argument.kind
    if argument.known and not kind.numeric and kind.kind not in ("BOOL", "JSON"):
        argument.refuse("write CAST(… AS DOUBLE)")
    if kind.kind not in ("BOOL", "DECIMAL", "JSON", "NULL"):
        return argument.value
    to = ColumnType("INT") if kind.kind == "BOOL" else DOUBLE
    return argument.with_form(argument.value.expr.cast(to.polars(), strict=False), to)


def _double(argument: _Argument) -> Compiled:
    number = argument.compiler.double(argument.value, argument.node)
    return argument.with_form(number, DOUBLE)


def _integer(argument: _Argument) -> Compiled:
    kind = argument.kind
    value = argument.value
    fits = kind.numeric or kind.kind in ("BOOL", "TIMESTAMP")
    text_for_char = argument.function.name == "char" and kind.text
    if argument.known and not fits and not text_for_char:
        argument.refuse("write CAST(… AS BIGINT)")
    converted = convert(value, BIGINT, argument.compiler.scope)
    number = int(value.value) if isinstance(value.value, int | float) else value.value
    expr = converted if converted is not None else value.expr
    return Compiled(expr, BIGINT, value.literal, number)


def _text(argument: _Argument) -> Compiled:
    if argument.known and not argument.kind.text:
        argument.refuse("write CAST(… AS VARCHAR(64))")
    kind = argument.kind if argument.known else ColumnType("VARCHAR", length=1)
    return argument.with_form(argument.value.expr.cast(pl.String), kind)


def _time(argument: _Argument) -> Compiled:
    kind = argument.kind
    expr = argument.value.expr
    if argument.known and not (kind == TIMESTAMP or kind.integer or kind.text):
        argument.refuse("a TIMESTAMP, ticks, or ISO text is needed")
    if kind.text:
        ticks = parse_iso(expr.cast(pl.String), argument.compiler.scope)
    else:
        ticks = expr.cast(pl.Int64, strict=False)
    return argument.with_form(ticks, TIMESTAMP)


_FORMS: dict[str, Callable[[_Argument], Compiled]] = {
    "any": _any,
    "unit": _unit,
    "bool": _bool,
    "number": _number,
    "double": _double,
    "integer": _integer,
    "text": _text,
    "time": _time,
}
