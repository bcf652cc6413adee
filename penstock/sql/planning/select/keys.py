"""PARTITION BY in plan terms."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from penstock.sql.dialect import to_sql
from penstock.sql.plan import Key
from penstock.sql.planning.context import PlanningContext
from penstock.sql.relational import StreamSelect
from penstock.sql.relational.stream_names import as_text, strip_parentheses, type_of


@dataclass
class PartitionKeys:
    """PARTITION BY, planned. `texts` maps the canonical text of each key to its place."""

    items: tuple[Key, ...] = ()
    texts: dict[str, int] = field(default_factory=dict)

    @property
    def by_table(self) -> bool:
        """True when tbname is among the keys, so that every partition is one table."""
        return "tbname" in self.texts

    def place(self, bound: exp.Expr) -> int | None:
        """Return the place of the key that an expression is."""
        if not self.texts:
            return None
        return self.texts.get(to_sql(strip_parentheses(bound)))

    def place_of_alias(self, name: str) -> int | None:
        """Return the place of the key called *name*: by alias, or by its own text."""
        for i, key in enumerate(self.items):
            if key.alias.lower() == name.lower():
                return i
        return None


def plan_keys(context: PlanningContext, query: StreamSelect) -> PartitionKeys:
    """Plan PARTITION BY."""
    keys = PartitionKeys()
    items = []
    bound = query.select.partition_by
    for place, (name, node) in enumerate(zip(query.key_names, bound, strict=True)):
        key = strip_parentheses(node)
        keys.texts.setdefault(to_sql(key), place)
        kind = type_of(key)
        if kind.kind == "JSON":
            _refuse_tag(context, key)
            key = as_text(key)
            kind = type_of(key)
        items.append(Key(name, to_sql(key), kind))
    keys.items = tuple(items)
    return keys


def _refuse_tag(context: PlanningContext, key: exp.Expr) -> None:
    """Refuse a whole JSON tag; a value from JSON is text from here on."""
    if isinstance(key, exp.Column):
        context.refuse_query(
            key,
            "a JSON tag cannot be a partition key",
            "take a value out of it: tag->'key'",
        )
