"""The DuckDB side of a function: how a call of it is written in a query.

Owns the forms that the side of an entry may have. A form makes a tree from the arguments of a call;
what the tree needs besides DuckDB's own functions (a macro, or the polars side as a vectorised
function) it leaves in the query's `needed`, and `penstock.duck.helpers` brings it to the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from sqlglot import exp

from penstock.sql.source import mark, span_of
from penstock.types import ColumnType

#: names of what this code adds to DuckDB
PREFIX = "_penstock_"
Arguments: TypeAlias = list[exp.Expr]


@dataclass(frozen=True)
class Macro:
    """An expression of DuckDB's under a name; the types of the arguments choose one of several.

    `overloads` are texts such as `(x BIGINT) AS x + 1`.
    """

    name: str
    overloads: tuple[str, ...]
    #: macros that it calls
    calls: tuple[Macro, ...] = ()


@dataclass(frozen=True)
class PolarsCall:
    """A call or an operator that polars computes: constants stand in *call*, columns `a0`, `a1`…
    are arguments.
    """

    name: str
    call: exp.Expr
    precision: str
    timezone: str
    #: types of the columns, where they are known before there are rows
    types: tuple[ColumnType, ...] = ()

    @property
    def title(self) -> str:
        """As errors call it."""
        is_call = isinstance(self.call, exp.Anonymous)
        return f"{self.call.this}()" if is_call else self.call.key.upper()


Helper: TypeAlias = "Macro | PolarsCall"


class QueryScope(Protocol):
    """The surroundings of a call: the session's zone, the statement's moment, the unit of its times
    and where those are, and the type of its first argument if it is known.
    """

    @property
    def timezone(self) -> str: ...
    @property
    def moment(self) -> int: ...  # nanoseconds
    @property
    def precision(self) -> str: ...
    @property
    def time(self) -> exp.Column | None: ...  # of the rows among which the call chooses
    @property
    def argument(self) -> ColumnType | None: ...
    @property
    def needed(self) -> dict[str, Helper]: ...
    def is_time(self, node: exp.Expr) -> bool: ...


#: makes the call for DuckDB from arguments that are rewritten already
DuckForm: TypeAlias = Callable[[Arguments, QueryScope], exp.Expr]


def call(name: str) -> DuckForm:
    """Return the form of a function that DuckDB calls *name*."""
    return lambda args, _: exp.Anonymous(this=name, expressions=args)


def macro(name: str, *overloads: str, calls: tuple[Macro, ...] = ()) -> DuckForm:
    """Return the form of a function that is a macro; see `Macro` for *overloads*."""
    made = Macro(PREFIX + name, overloads, calls)

    def make(args: Arguments, scope: QueryScope) -> exp.Expr:
        scope.needed.setdefault(made.name, made)
        return exp.Anonymous(this=made.name, expressions=args)

    return make


def polars_call(name: str, constants: tuple[int, ...]) -> DuckForm:
    """Return the form of function *name* computed by polars.

    Args:
        constants: indexes of the arguments that are written as constants.
    """

    def make(args: Arguments, scope: QueryScope) -> exp.Expr:
        columns = [i for i in range(len(args)) if i not in constants]
        template = [
            _column(f"a{columns.index(i)}", arg) if i in columns else arg
            for i, arg in enumerate(args)
        ]
        wanted = exp.Anonymous(this=name, expressions=[node.copy() for node in template])
        return _call_polars(scope, name, wanted, [args[i] for i in columns])

    return make


def polars_expression(
    name: str,
    make: Callable[[exp.Column], exp.Expr],
    value: exp.Expr,
    given: ColumnType,
    scope: QueryScope,
) -> exp.Anonymous:
    """Return an expression of *value* that polars computes.

    Args:
        name: what DuckDB's name of it begins with.
        make: makes the expression from the column that stands for *value*.
        given: type of *value*.
    """
    return _call_polars(scope, name, make(_column("a0", value)), [value], (given,))


def _call_polars(
    scope: QueryScope,
    name: str,
    wanted: exp.Expr,
    arguments: Arguments,
    types: tuple[ColumnType, ...] = (),
) -> exp.Anonymous:
    """Return a call of the polars function that computes *wanted*, which the query then needs."""
    helper = _find(scope, wanted)
    if helper is None:
        own = f"{PREFIX}{name}_{len(scope.needed)}"
        helper = PolarsCall(own, wanted, scope.precision, scope.timezone, types)
        scope.needed[own] = helper
    return exp.Anonymous(this=helper.name, expressions=arguments)


def _column(name: str, argument: exp.Expr) -> exp.Column:
    """Return the column that *argument* becomes, at its place in the text."""
    column = exp.column(name)
    span = span_of(argument)
    if span is not None:
        mark(column, *span)
    return column


def _find(scope: QueryScope, wanted: exp.Expr) -> PolarsCall | None:
    """Return the helper that another call of the query has for the same work."""
    for known in scope.needed.values():
        if not isinstance(known, PolarsCall):
            continue
        if (known.call, known.precision) == (wanted, scope.precision):
            return known
    return None
