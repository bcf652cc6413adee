"""Functions that choose between values. All values are brought to a type that holds each of
them.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.functions.base import Compiled, FunctionCall, common, scalar
from penstock.sql.functions.convert import as_text
from penstock.sql.functions.duckdb import Arguments, DuckForm, QueryScope
from penstock.sql.functions.duckdb import call as duck_call
from penstock.types import ColumnType

#: nodes of a value that a function writes twice
_LARGEST = 10_000


def _missing(value: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Is(this=value, expression=exp.Null()))


def _choose(condition: exp.Expr, yes: exp.Expr, no: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=yes)], default=no)


def _duck_nvl2(args: Arguments, _: QueryScope) -> exp.Expr:
    return _choose(_missing(args[0]), args[2], args[1])


def _duck_if(args: Arguments, _: QueryScope) -> exp.Expr:
    return _choose(*args)


def _duck_isnull(args: Arguments, _: QueryScope) -> exp.Expr:
    return _missing(args[0])


def _duck_isnotnull(args: Arguments, _: QueryScope) -> exp.Expr:
    return exp.Paren(this=exp.Not(this=_missing(args[0])))


def _duck_extreme(name: str) -> DuckForm:
    """Return the form of greatest or least, which DuckDB computes of the values that are there."""

    def make(args: Arguments, _: QueryScope) -> exp.Expr:
        # every value is written twice, so what is nested doubles with each level
        if sum(1 for a in args for _ in a.walk()) > _LARGEST:
            raise SqlSemanticError(
                f"{name}() is nested too deeply",
                code="E_FUNCTION_ARGUMENT",
                hint=f"{name}() takes many values at once",
            )
        missing = exp.or_(*(_missing(a.copy()) for a in args))
        return _choose(missing, exp.Null(), exp.Anonymous(this=name, expressions=args))

    return make


def choice_type(types: Sequence[ColumnType], call: FunctionCall) -> ColumnType:
    """Common type of the values that may be chosen; text wins over numbers, as in TDengine."""
    found = common(types)
    if found is None:
        names = " and ".join(dict.fromkeys(str(t) for t in types if t.kind != "NULL"))
        call.refuse(
            f"{call.function}() cannot choose between {names}",
            hint="convert them to one type with CAST",
        )
    return found


def as_type(value: Compiled, kind: ColumnType) -> pl.Expr:
    """*value* in the polars type of *kind*, which is known to hold it."""
    if value.type == kind or kind.kind == "NULL":
        return value.expr
    return as_text(value) if kind.text and not value.type.text else value.expr.cast(kind.polars())


def _values(call: FunctionCall, first: int = 0) -> list[pl.Expr]:
    kind = choice_type([a.type for a in call.args[first:]], call)
    return [as_type(a, kind) for a in call.args[first:]]


@scalar("coalesce", "any+", choice_type, duckdb=duck_call("coalesce"), strict=False)
def coalesce(call: FunctionCall) -> pl.Expr:
    """The first value that is not NULL."""
    return pl.coalesce(_values(call))


@scalar(
    "ifnull", "any, any", choice_type, aliases=("nvl",), duckdb=duck_call("coalesce"), strict=False
)
def ifnull(call: FunctionCall) -> pl.Expr:
    """The first value, or the second when it is NULL."""
    return pl.coalesce(_values(call))


@scalar(
    "nvl2",
    "any, any, any",
    lambda types, call: choice_type(types[1:], call),
    duckdb=_duck_nvl2,
    strict=False,
)
def nvl2(call: FunctionCall) -> pl.Expr:
    """The second value when the first is not NULL, else the third."""
    yes, no = _values(call, 1)
    return pl.when(call[0].is_not_null()).then(yes).otherwise(no)


@scalar(
    "if",
    "bool, any, any",
    lambda types, call: choice_type(types[1:], call),
    duckdb=_duck_if,
    strict=False,
)
def if_(call: FunctionCall) -> pl.Expr:
    """The second value where the condition is true, else (false or NULL) the third."""
    yes, no = _values(call, 1)
    return pl.when(call[0].fill_null(value=False)).then(yes).otherwise(no)


@scalar(
    "nullif", "any, any", lambda types, call: types[0], duckdb=duck_call("nullif"), strict=False
)
def nullif(call: FunctionCall) -> pl.Expr:
    """The first value, or NULL when it equals the second."""
    left, right = _values(call)
    return pl.when((left == right).fill_null(value=False)).then(None).otherwise(call[0])


@scalar("isnull", "any", ColumnType("BOOL"), duckdb=_duck_isnull, strict=False)
def isnull(call: FunctionCall) -> pl.Expr:
    """Whether the value is NULL."""
    return call[0].is_null()


@scalar("isnotnull", "any", ColumnType("BOOL"), duckdb=_duck_isnotnull, strict=False)
def isnotnull(call: FunctionCall) -> pl.Expr:
    """Whether the value is not NULL."""
    return call[0].is_not_null()


def _extreme(call: FunctionCall, name: str) -> pl.Expr:
    values = _values(call)
    known = pl.all_horizontal([a.expr.is_not_null() for a in call.args])
    best = values[0]
    for value in values[1:]:
        better = value > best if name == "greatest" else value < best
        best = pl.when(better).then(value).otherwise(best)
    return pl.when(known).then(best).otherwise(None)


@scalar("greatest", "any, any+", choice_type, duckdb=_duck_extreme("greatest"))
def greatest(call: FunctionCall) -> pl.Expr:
    """The largest value; NULL when any is."""
    return _extreme(call, "greatest")


@scalar("least", "any, any+", choice_type, duckdb=_duck_extreme("least"))
def least(call: FunctionCall) -> pl.Expr:
    """The smallest value; NULL when any is."""
    return _extreme(call, "least")
