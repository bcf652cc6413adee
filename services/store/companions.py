"""Columns beside min, max, first, last and last_row: those of the row that was chosen
(stream-semantics 8), also where its value is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from penstock.sql.functions.duck_rows import ROW_VALUES
from penstock.sql.relational import binding_of, note
from penstock.sql.relational.companions import (
    BY_TIME,
    Chosen,
    chosen_by,
    is_companion,
)
from services.store.binding import Context
from services.store.functions import arguments, function_name


def take_companions(select: exp.Select, context: Context) -> None:
    """Let the plain columns of *select* that stand beside the call that chooses a row be picked
    from that row, and so the call itself.
    """
    own = list(_own_nodes(select))
    companions = [node for node in own if is_companion(node)]
    chooser, chosen = _chooser_alone(own)
    if not companions or chooser is None or chosen is None:
        return
    name = function_name(chooser)
    argument = _argument(chooser)
    for column in companions:
        _replace(column, _pick(name, column, argument, chosen, context))
    same = [call for call in own if function_name(call) == name] if name in BY_TIME else []
    for call in same:
        _replace(call, _pick(name, _argument(call), _argument(call), chosen, context))


def _chooser_alone(own: list[exp.Expr]) -> tuple[exp.Expr | None, Chosen | None]:
    """Return the call that chooses the row; several are copies of one."""
    for call in own:
        chosen = chosen_by(call)
        if chosen is not None and chosen.alone:
            return call, chosen
    return None, None


def time_of(chosen: Chosen) -> exp.Column:
    """Return the time of the rows among which a call chooses."""
    return exp.column(chosen.time, table=chosen.relation, quoted=True)


def _own_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield what stands in the select list, in HAVING and in ORDER BY, queries in it left out."""
    clauses = [select.args.get(key) for key in ("having", "order")]
    for clause in [*select.expressions, *(c for c in clauses if c is not None)]:
        yield from clause.walk(prune=lambda node: isinstance(node, exp.Query))


def _argument(call: exp.Expr) -> exp.Expr:
    """Return what an aggregate is computed of, behind DISTINCT, too."""
    first = arguments(call)[0]
    return first.expressions[0] if isinstance(first, exp.Distinct) else first


def _pick(
    name: str, value: exp.Expr, argument: exp.Expr, chosen: Chosen, context: Context
) -> exp.Expr:
    """Return *value* of the row that the call *name* of *argument* chooses."""
    keys: list[exp.Expr] = [time_of(chosen)] if chosen.time else []
    if chosen.by_table:
        keys.append(exp.column("tbname", table=chosen.relation, quoted=True))
    return ROW_VALUES[name]([value.copy(), argument.copy(), *keys], context)


def _replace(node: exp.Expr, made: exp.Expr) -> None:
    binding = binding_of(node)
    if isinstance(node.parent, exp.Select):
        made = exp.alias_(made, node.name, quoted=True)
    if binding is not None:
        note(made, binding)
    node.replace(made)
