"""The part of a list that a query can have rows of, so that no more is made: tools ask for the tags
of one child table, and there may be 200,000.

A scope may be wider than the query, never narrower: the query's own WHERE still decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

#: the database of these lists
SCHEMA = "information_schema"
_COLUMNS = {
    "db_name": "database",
    "stable_name": "stable",
    "table_name": "table",
    "type": "kind",
}


@dataclass(frozen=True)
class ListScope:
    """Names as the query spells them; None for any."""

    database: str | None = None
    stable: str | None = None
    table: str | None = None
    #: as the column `type` has it
    kind: str | None = None

    @property
    def has_children(self) -> bool:
        """Tell whether child tables are asked for, of which there may be millions."""
        return self.kind is None or self.kind.endswith("CHILD_TABLE")

    def has_stable(self, name: str) -> bool:
        return self.stable is None or self.stable == name


EVERYTHING = ListScope()


def is_own(database: str | None) -> bool:
    """Tell whether *database* is the one of these lists."""
    return database is not None and database.lower() == SCHEMA


def scope_of(tree: exp.Query) -> ListScope:
    """Read `column = 'text'` of a WHERE over one list; everything for any other query."""
    if not isinstance(tree, exp.Select) or len(list(tree.find_all(exp.Table))) != 1:
        return EVERYTHING
    where = tree.args.get("where")
    source = tree.args.get("from_")
    if where is None or source is None or not isinstance(source.this, exp.Table):
        return EVERYTHING
    found: dict[str, str] = {}
    waiting = [where.this]
    while waiting:
        condition = waiting.pop()
        if isinstance(condition, exp.And):
            waiting += [condition.this, condition.expression]
        elif isinstance(condition, exp.Paren):
            waiting.append(condition.this)
        elif isinstance(condition, exp.EQ):
            found.update(_equals(condition.this, condition.expression))
    return ListScope(**found)


def _equals(left: exp.Expression, right: exp.Expression) -> dict[str, str]:
    """Return the part of a scope that `left = right` is; nothing when it is none."""
    if isinstance(left, exp.Literal):
        left, right = right, left
    if not isinstance(left, exp.Column) or not isinstance(right, exp.Literal):
        return {}
    part = _COLUMNS.get(left.name.lower())
    return {part: right.name} if part is not None and right.is_string else {}
