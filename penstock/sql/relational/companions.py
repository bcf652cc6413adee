"""Rows that an aggregate chooses: by which time, and which columns stand beside it.

`min`, `max`, `first`, `last` and `last_row` choose a row. Plain columns beside the one call that
chooses have the values of that row. The marks stay at the nodes, where whoever writes the query for
an engine finds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.functions import AGGREGATES
from penstock.sql.functions.base import TIMESTAMP
from penstock.sql.relational.relations import Relation, SelectScope

#: functions of the first or last row in time order
BY_TIME = frozenset({"first", "last", "last_row"})
_CHOSEN = "chosen"
_COMPANION = "companion"


@dataclass(frozen=True)
class Chosen:
    """What tells the rows apart among which a call chooses.

    `relation` is as the query calls it, `time` its column of times ("": it has none). `by_table`:
    rows of one time are of several tables, whose `tbname` decides. `alone`: it is the call of the
    select list whose row other columns are of.
    """

    relation: str
    time: str
    by_table: bool = False
    alone: bool = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Chosen:
        """Return itself: trees are copied often, and it never changes."""
        return self


def note_chosen(node: exp.Expr, chosen: Chosen) -> None:
    """Say among which rows the call *node* chooses."""
    node.meta[_CHOSEN] = chosen


def chosen_by(node: exp.Expr) -> Chosen | None:
    """Return among which rows a call chooses; None: it does not."""
    found = node.meta.get(_CHOSEN)
    return found if isinstance(found, Chosen) else None


def note_companion(node: exp.Column) -> None:
    """Say that a column has the value of the chosen row."""
    node.meta[_COMPANION] = True


def is_companion(node: exp.Expr) -> bool:
    """Tell if a column has the value of the chosen row."""
    return isinstance(node, exp.Column) and bool(node.meta.get(_COMPANION))


def chosen_among(scope: SelectScope, argument: exp.Expr) -> Chosen:
    """Return among which rows a call with *argument* chooses."""
    relation = _relation_of(scope, argument)
    if relation is None:
        return Chosen("", "")
    first = relation.columns[0] if relation.columns else None
    time = first.name if first is not None and first.type == TIMESTAMP else ""
    return Chosen(relation.name, time, by_table=relation.table.stored)


def _relation_of(scope: SelectScope, argument: exp.Expr) -> Relation | None:
    column = argument if isinstance(argument, exp.Column) else argument.find(exp.Column)
    if column is None:
        return scope.relations[0] if scope.relations else None
    if column.table:
        return scope.relation(column.table)
    having = scope.having(column.name)
    return having[0] if having else None


def find_chooser(items: list[exp.Expr]) -> exp.Anonymous | None:
    """Return the one call of a select list that chooses a row. Several calls of last_row choose the
    same one; with OVER there are rows, not groups.
    """
    if any(item.find(exp.Window) is not None for item in items):
        return None
    calls = [call for item in items for call in _own_calls(item) if _chooses(call)]
    if not calls:
        return None
    same = all(_name(call) == "last_row" for call in calls)
    return calls[0] if same or len(calls) == 1 else None


def _own_calls(item: exp.Expr) -> list[exp.Anonymous]:
    """Return the calls of an item, without those of queries and of cols() in it."""
    own = item.walk(prune=lambda node: isinstance(node, exp.Query) or _name(node) == nodes.COLS)
    return [node for node in own if isinstance(node, exp.Anonymous)]


def _name(node: exp.Expr) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def _chooses(call: exp.Anonymous) -> bool:
    function = AGGREGATES.get(_name(call))
    return function is not None and function.chooses and not _is_filtered(call)


def _is_filtered(call: exp.Anonymous) -> bool:
    """Tell if *call* stands in front of FILTER: it may have no row to choose."""
    return isinstance(call.parent, exp.Filter) and call.parent.this is call
