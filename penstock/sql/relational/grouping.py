"""Which columns may stand beside aggregates: those that rows are grouped by, and those of the one
row that min, max, first or last chose.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.sql.relational.bindings import binding_of, note
from penstock.sql.relational.companions import (
    chosen_among,
    chosen_by,
    note_chosen,
    note_companion,
)
from penstock.sql.relational.names import Refuse
from penstock.sql.relational.relations import SelectScope
from penstock.sql.relational.typer import Clause


class Keys:
    """What the rows of a SELECT are grouped by."""

    def __init__(self) -> None:
        self._columns: set[tuple[str, str]] = set()
        self._expressions: list[exp.Expr] = []

    def __bool__(self) -> bool:
        return bool(self._columns or self._expressions)

    def add(self, key: exp.Expr, clause: Clause) -> None:
        """Add a key, whose columns *clause* has."""
        key = key.unnest()
        places = [place for column, place in clause.plain if column is key]
        if places:
            self._columns.add(places[0])
        else:
            self._expressions.append(key)

    def has_tables_of(self, relation: str) -> bool:
        """Tell if rows are grouped by the child tables of *relation*."""
        return (relation, "tbname") in self._columns

    def cover(self, column: exp.Column, place: tuple[str, str]) -> bool:
        """Tell if a column is a key, or stands in an expression that is one."""
        if place in self._columns:
            return True
        node: exp.Expr | None = column
        while node is not None and not isinstance(node, exp.Query):
            if any(type(node) is type(key) and node == key for key in self._expressions):
                return True
            node = node.parent
        return False


def check_grouping(
    clause: Clause, keys: Keys, scope: SelectScope, refuse: Refuse, *, chooses: bool
) -> None:
    """Refuse the first plain column of *clause* that has no one value in a group. A tag has one
    where rows are grouped by tbname.

    Args:
        chooses: one call of the select list chooses a row, whose columns may stand beside it.
    """
    for column, place in clause.plain:
        if keys.cover(column, place):
            continue
        if chooses:
            note_companion(column)
            continue
        if keys.has_tables_of(place[0]) and _is_tag(scope, place):
            _take_latest(column, scope)
            continue
        name = column.name
        grouped = f"GROUP BY {name}" if not keys else f"{name} in GROUP BY"
        refuse(
            column,
            f"column {name} has many values beside an aggregate",
            code="E_NOT_GROUPED",
            hint=f"add {grouped}, or choose one value: last({name}) or min({name})",
        )


def tell_apart(chooser: exp.Anonymous, keys: Keys) -> None:
    """Note that *chooser* chooses the row of the select list. Where rows are grouped by `tbname`,
    it does not tell them apart.
    """
    chosen = chosen_by(chooser)
    assert chosen is not None  # it has been typed
    by_table = chosen.by_table and not keys.has_tables_of(chosen.relation.lower())
    note_chosen(chooser, replace(chosen, by_table=by_table, alone=True))


def _is_tag(scope: SelectScope, place: tuple[str, str]) -> bool:
    relation = scope.relation(place[0])
    return relation is not None and place[1] in relation.table.tags


def _take_latest(column: exp.Column, scope: SelectScope) -> None:
    """Take the tag of the latest row, because older rows have what it was in their time."""
    call: exp.Expr = exp.Anonymous(this="last_row", expressions=[column.copy()])
    note_chosen(call, chosen_among(scope, column))
    binding = binding_of(column)
    is_item = isinstance(column.parent, exp.Select)
    made = exp.alias_(call, column.name, quoted=True) if is_item else call
    for node in (call, made):
        if binding is not None:
            note(node, binding)
    column.replace(made)
