"""Functions of a row and the rows before it in a SELECT: where they may stand, what they take, and
by what their rows are in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from sqlglot import exp

from penstock.sql.functions.base import DOUBLE, NULL, TIMESTAMP, Compiled
from penstock.sql.functions.series import SERIES, Option, SeriesFunction
from penstock.sql.relational.names import Refuse
from penstock.sql.relational.relations import Relation, SelectScope
from penstock.types import ColumnType

if TYPE_CHECKING:
    from penstock.sql.relational.typer import Clause, ExpressionTyper

_CALL = "series_call"
_ORDER = "series_order"


@dataclass(frozen=True)
class SeriesCall:
    """A checked call: the values of its constants, and the types of its argument and result."""

    function: SeriesFunction
    options: tuple[Any, ...]
    argument: ColumnType
    type: ColumnType

    def __deepcopy__(self, memo: dict[int, Any]) -> SeriesCall:
        """Return itself: trees are copied often, and it never changes."""
        return self


@dataclass(frozen=True)
class SeriesOrder:
    """What the rows of a SELECT are in order by, and the names that its columns have."""

    time: str
    precision: str
    #: columns that order rows of one time
    ties: tuple[str, ...]
    #: in lower case
    names: frozenset[str]


def series_call(node: exp.Expr) -> SeriesCall | None:
    """Return the call that *node* is bound to; None: it is no such call."""
    return node.meta.get(_CALL)


def series_order(select: exp.Select) -> SeriesOrder | None:
    """Return the order of a bound SELECT that has such functions; None: it has none."""
    return select.meta.get(_ORDER)


# ---------------------------------------------------------------- one call


def type_series(typer: ExpressionTyper, node: exp.Anonymous, name: str) -> Compiled:
    """Type a call of the function *name*."""
    function = SERIES[name]
    _check_place(typer, node, name)
    _check_count(typer, node, function)
    typer.inside = name
    try:
        kind = _type_argument(typer, node, function)
    finally:
        typer.inside = ""
    given = [typer.compile(argument) for argument in node.expressions[1:]]
    options = tuple(
        _read(typer, node, function, option, given[i] if i < len(given) else None)
        for i, option in enumerate(function.options)
    )
    returns = function.returns(kind)
    node.meta[_CALL] = SeriesCall(function, options, kind, returns)
    typer.clause.series.append(node)
    return typer.value(returns)


def _check_place(typer: ExpressionTyper, node: exp.Anonymous, name: str) -> None:
    if typer.inside:
        typer.refuse(
            node,
            f"{name}() cannot stand inside {typer.inside}()",
            code="E_SERIES_HERE",
            hint=f"SELECT {typer.inside}(x) FROM (SELECT ts, {name}(…) AS x FROM …)",
        )
    if typer.clause.no_aggregates:
        _refuse_outside(typer, node, f"{name}()")


def _refuse_outside(typer: ExpressionTyper, node: exp.Expr, what: str) -> NoReturn:
    """Refuse *what* in a clause that rows go through before it is computed."""
    typer.refuse(
        node,
        f"{what} is computed from the rows that are left, and cannot stand in"
        f" {typer.clause.no_aggregates}",
        code="E_SERIES_HERE",
        hint="put the condition around it: SELECT … FROM (SELECT ts, … AS x FROM …) WHERE x > 0",
    )


def refuse_series_alias(typer: ExpressionTyper, node: exp.Column) -> NoReturn:
    """Refuse a name of such a function where the function could not stand."""
    if typer.clause.no_aggregates:
        _refuse_outside(typer, node, node.name)
    typer.refuse(
        node,
        f"{node.name} cannot stand inside {typer.inside}()",
        code="E_SERIES_HERE",
        hint=f"SELECT {typer.inside}({node.name}) FROM (SELECT ts, … AS {node.name} FROM …)",
    )


def _check_count(typer: ExpressionTyper, node: exp.Anonymous, function: SeriesFunction) -> None:
    least, most = function.arity
    if not least <= len(node.expressions) <= most:
        typer.refuse(
            node,
            f"{function.name}() does not take {len(node.expressions)} arguments",
            code="E_FUNCTION_ARGUMENT",
            hint=f"{function.signature}: {function.doc}",
        )


def _type_argument(
    typer: ExpressionTyper, node: exp.Anonymous, function: SeriesFunction
) -> ColumnType:
    argument = node.expressions[0]
    kind = typer.type_of(argument)
    if kind == NULL:
        return DOUBLE
    if not function.takes(kind):
        wanted = "a number or a time" if function.of_times else "a number"
        typer.refuse(
            argument,
            f"{function.name}() needs {wanted}, not {kind}",
            code="E_TYPE",
            detail=f"{kind} and DOUBLE do not fit",
            hint="write CAST(… AS DOUBLE)",
        )
    return kind


def _read(
    typer: ExpressionTyper,
    node: exp.Anonymous,
    function: SeriesFunction,
    option: Option,
    constant: Compiled | None,
) -> Any:
    if constant is None:
        return option.default
    value = option.read(constant, typer.scope.precision) if constant.literal else None
    if value is None:
        argument = node.expressions[1 + function.options.index(option)]
        typer.refuse(
            argument,
            f"{option.name} of {function.name}() is {option.wants}",
            code="E_FUNCTION_ARGUMENT",
            hint=f"write it as a constant: {function.signature}",
        )
    return value


# ---------------------------------------------------------------- the SELECT around them


def check_series(
    select: exp.Select, items: list[exp.Expr], clause: Clause, scope: SelectScope, refuse: Refuse
) -> None:
    """Check what stands beside the calls that *clause* has, and note what rows are in order by."""
    if not clause.series:
        return
    node = clause.series[0]
    name = str(node.this).lower()
    _check_company(select, clause, node, name, refuse)
    _check_order_by(select, items, clause, refuse)
    _check_keys(select, items, refuse)
    select.meta[_ORDER] = _order(select, scope, node, name, refuse)


def _check_company(
    select: exp.Select, clause: Clause, node: exp.Expr, name: str, refuse: Refuse
) -> None:
    if clause.aggregates:
        refuse(
            node,
            f"{name}() gives a value for each row, and an aggregate beside it one for all",
            code="E_SERIES_HERE",
            hint=f"SELECT max(x) FROM (SELECT ts, {name}(…) AS x FROM …)",
        )
    for key, word in (("group", "GROUP BY"), ("having", "HAVING")):
        if select.args.get(key) is not None:
            refuse(
                node,
                f"{name}() gives a value for each row, and {word} is of groups",
                code="E_SERIES_HERE",
                hint="PARTITION BY tbname computes it for each table",
            )
    if select.args.get("joins"):
        refuse(
            node,
            f"{name}() needs one table, or a subquery, in FROM",
            code="E_SERIES_HERE",
            hint=f"SELECT ts, {name}(…) FROM (SELECT a.ts, a.v FROM a JOIN b ON a.ts = b.ts)",
        )


def _check_order_by(
    select: exp.Select, items: list[exp.Expr], clause: Clause, refuse: Refuse
) -> None:
    shown = [node for item in items for node in item.find_all(exp.Anonymous)]
    for node in clause.series:
        if node not in shown:
            refuse(
                node,
                f"ORDER BY cannot compute {str(node.this).lower()}()",
                code="E_SERIES_HERE",
                hint="select it with a name (… AS x), and write ORDER BY x",
            )


def _check_keys(select: exp.Select, items: list[exp.Expr], refuse: Refuse) -> None:
    """Refuse a key that is the position of a column that has such a function in it."""
    partition = select.args.get("partition_by")
    for key in partition.expressions if partition is not None else []:
        if isinstance(key, exp.Literal) and any(
            series_call(node) is not None for node in items[int(key.this) - 1].walk()
        ):
            refuse(
                key,
                f"column {key.this} is computed within partitions, and cannot make them",
                code="E_SERIES_HERE",
                hint="partition by columns of the table, such as tbname",
            )


def _order(
    select: exp.Select, scope: SelectScope, node: exp.Expr, name: str, refuse: Refuse
) -> SeriesOrder:
    hint = f"SELECT {name}(x) FROM (SELECT ts, … AS x FROM …)"
    if not scope.relations:
        refuse(node, f"{name}() needs rows: there is no FROM", code="E_SERIES_HERE", hint=hint)
    relation = scope.relations[0]
    times = [c for c in relation.columns if c.type == TIMESTAMP]
    if not times:
        refuse(
            node,
            f"{name}() needs a time to put rows in order, and {relation.name} has none",
            code="E_SERIES_HERE",
            hint=f"select the time, too: {hint}",
        )
    return SeriesOrder(
        times[0].name,
        times[0].precision,
        _ties(select, relation, times[0].name),
        frozenset(n.lower() for n in (*scope.names(), *relation.names())),
    )


def _ties(select: exp.Select, relation: Relation, time: str) -> tuple[str, ...]:
    """Return what orders rows of one time: of a table what tells rows apart, of a subquery all
    that is read of it.
    """
    if relation.table.stored:
        return relation.table.row_keys
    parts = [part for part in select.iter_expressions() if part.arg_key != "from_"]
    read = {column.name.lower() for part in parts for column in part.find_all(exp.Column)}
    return tuple(c.name for c in relation.columns if c.name.lower() in read and c.name != time)
