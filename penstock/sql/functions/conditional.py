"""Functions that choose between values. All values are brought to a type that holds each of
them.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from penstock.sql.functions.base import Compiled, FunctionCall, common, scalar
from penstock.sql.functions.convert import as_text
from penstock.types import ColumnType


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


@scalar("coalesce", "any+", choice_type)
def coalesce(call: FunctionCall) -> pl.Expr:
    """The first value that is not NULL."""
    return pl.coalesce(_values(call))


@scalar("ifnull", "any, any", choice_type, aliases=("nvl",))
def ifnull(call: FunctionCall) -> pl.Expr:
    """The first value, or the second when it is NULL."""
    return pl.coalesce(_values(call))


@scalar("nvl2", "any, any, any", lambda types, call: choice_type(types[1:], call))
def nvl2(call: FunctionCall) -> pl.Expr:
    """The second value when the first is not NULL, else the third."""
    yes, no = _values(call, 1)
    return pl.when(call[0].is_not_null()).then(yes).otherwise(no)


@scalar("if", "bool, any, any", lambda types, call: choice_type(types[1:], call))
def if_(call: FunctionCall) -> pl.Expr:
    """The second value where the condition is true, else (false or NULL) the third."""
    yes, no = _values(call, 1)
    return pl.when(call[0].fill_null(value=False)).then(yes).otherwise(no)


@scalar("nullif", "any, any", lambda types, call: types[0])
def nullif(call: FunctionCall) -> pl.Expr:
    """The first value, or NULL when it equals the second."""
    left, right = _values(call)
    return pl.when((left == right).fill_null(value=False)).then(None).otherwise(call[0])


@scalar("isnull", "any", ColumnType("BOOL"))
def isnull(call: FunctionCall) -> pl.Expr:
    """Whether the value is NULL."""
    return call[0].is_null()


@scalar("isnotnull", "any", ColumnType("BOOL"))
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


@scalar("greatest", "any, any+", choice_type)
def greatest(call: FunctionCall) -> pl.Expr:
    """The largest value; NULL when any is."""
    return _extreme(call, "greatest")


@scalar("least", "any, any+", choice_type)
def least(call: FunctionCall) -> pl.Expr:
    """The smallest value; NULL when any is."""
    return _extreme(call, "least")
