"""The part of a list that a query can have rows of, so that no more is made: tools ask for the tags
of one child table, or for a page of names, and there may be millions.

A scope may be wider than the query, never narrower: the query's own WHERE still decides.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlglot import exp

from penstock.types import ColumnType

#: the database of these lists
SCHEMA = "information_schema"
_COLUMNS = {
    "db_name": "database",
    "stable_name": "stable",
    "table_name": "tables",
    "type": "kind",
}
_NAME = "table_name"
#: clauses of a query that LIMIT leaves the first rows of a list of
_PLAIN = frozenset(("expressions", "from_", "where", "order", "limit", "offset"))
#: what a select list may have there
_ITEMS = (exp.Column, exp.Star, exp.Literal)
#: a row of a list
_Row = Sequence[Any]


@dataclass(frozen=True)
class ListScope:
    """Names as the query spells them; None for any."""

    database: str | None = None
    stable: str | None = None
    tables: frozenset[str] | None = None
    #: as the column `type` has it
    kind: str | None = None
    #: tables have names behind this one
    above: str | None = None
    #: so many rows that the scope takes are enough: the first ones
    most: int | None = None
    #: the first in the order of table names, not of the list
    by_name: bool = False

    @property
    def has_children(self) -> bool:
        """Tell whether child tables are asked for, of which there may be millions."""
        return self.kind is None or self.kind.endswith("CHILD_TABLE")

    def has_stable(self, name: str) -> bool:
        return self.stable is None or self.stable == name

    @property
    def first(self) -> int | None:
        """How many child tables of one supertable are enough, whichever they are; None: all
        count.
        """
        return None if self.by_name or self.above is not None else self.most

    def cut(
        self, columns: Sequence[tuple[str, ColumnType]], rows: Iterator[_Row]
    ) -> Iterator[_Row]:
        """Return *rows* of a list as far as the query needs them, and read no further."""
        if self.most is None:
            return rows
        wanted = (self.database, self.stable, self.kind)
        places = {name: at for at, (name, _) in enumerate(columns)}
        tests = [
            (places[name], value)
            for name, value in zip(("db_name", "stable_name", "type"), wanted, strict=True)
            if value is not None and name in places
        ]
        name = places[_NAME]

        def takes(row: _Row) -> bool:
            if self.tables is not None and row[name] not in self.tables:
                return False
            if self.above is not None and not row[name] > self.above:
                return False
            return all(row[at] == value for at, value in tests)

        taken = filter(takes, rows)
        if self.by_name:
            return iter(heapq.nsmallest(self.most, taken, key=lambda row: row[name]))
        return islice(taken, self.most)


EVERYTHING = ListScope()


def is_own(database: str | None) -> bool:
    """Tell whether *database* is the one of these lists."""
    return database is not None and database.lower() == SCHEMA


def scope_of(tree: exp.Query) -> ListScope:
    """Read `column = 'text'`, `table_name IN (…)` and `table_name > 'text'` of a WHERE over one
    list, and LIMIT where no other condition chooses; everything for any other query.
    """
    if not isinstance(tree, exp.Select) or len(list(tree.find_all(exp.Table))) != 1:
        return EVERYTHING
    source = tree.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table):
        return EVERYTHING
    found: dict[str, Any] = {}
    whole = True
    for condition in _conditions(tree):
        part = _part_of(condition)
        whole = whole and len(part) == 1 and not part.keys() & found.keys()
        found.update(part)
    if whole:
        found.update(_limit(tree))
    return ListScope(**found)


def _conditions(tree: exp.Select) -> Iterator[exp.Expr]:
    """Yield the conditions that must all hold for a row."""
    where = tree.args.get("where")
    waiting = [where.this] if where is not None else []
    while waiting:
        condition = waiting.pop()
        if isinstance(condition, exp.And):
            waiting += [condition.this, condition.expression]
        elif isinstance(condition, exp.Paren):
            waiting.append(condition.this)
        else:
            yield condition


def _part_of(condition: exp.Expr) -> dict[str, Any]:
    """Return the part of a scope that a condition is; nothing when it is none."""
    if isinstance(condition, exp.In):
        texts = [_text(value) for value in condition.expressions]
        of_names = _column(condition.this) == _NAME and None not in texts
        return {"tables": frozenset(texts)} if of_names and texts else {}
    if isinstance(condition, exp.GT):
        text = _text(condition.expression)
        return {"above": text} if _column(condition.this) == _NAME and text is not None else {}
    if not isinstance(condition, exp.EQ):
        return {}
    left, right = condition.this, condition.expression
    if isinstance(left, exp.Literal):
        left, right = right, left
    part = _COLUMNS.get(_column(left))
    text = _text(right)
    if part is None or text is None:
        return {}
    return {part: frozenset((text,)) if part == "tables" else text}


def _column(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Column) else ""


def _text(node: exp.Expr) -> str | None:
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


def _limit(tree: exp.Select) -> dict[str, Any]:
    """Return how many rows are enough for LIMIT and OFFSET, where each row of the list is one of
    the answer; nothing for any other query.
    """
    args = tree.args
    limit = args.get("limit")
    offset = args.get("offset")
    counts = [clause.expression for clause in (limit, offset) if clause is not None]
    plain = not any(value for key, value in args.items() if key not in _PLAIN)
    items = [item.unalias() for item in tree.expressions]
    if limit is None or not plain or not all(isinstance(item, _ITEMS) for item in items):
        return {}
    if not all(isinstance(count, exp.Literal) for count in counts):
        return {}
    most = sum(int(count.name) for count in counts)
    order = args.get("order")
    if order is None:
        return {"most": most}
    return {"most": most, "by_name": True} if _is_by_name(tree, order) else {}


def _is_by_name(tree: exp.Select, order: exp.Order) -> bool:
    """Tell if *order* is that of table names alone, which no item of the list renames."""
    first = order.expressions[0]
    if len(order.expressions) > 1 or first.args.get("desc") or _column(first.this) != _NAME:
        return False
    renamed = [i for i in tree.expressions if isinstance(i, exp.Alias) and i.alias.lower() == _NAME]
    return all(_column(item.this) == _NAME for item in renamed)
