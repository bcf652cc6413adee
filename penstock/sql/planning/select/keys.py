"""PARTITION BY, bound to the source."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Key
from penstock.sql.planning.binder import Binder
from penstock.sql.planning.select.items import without_alias
from penstock.types import ColumnType


@dataclass
class PartitionKeys:
    """PARTITION BY, bound. `texts` maps the canonical text of each key to its place."""

    items: tuple[Key, ...] = ()
    nodes: tuple[exp.Expr, ...] = ()
    texts: dict[str, int] = field(default_factory=dict)

    @property
    def by_table(self) -> bool:
        """True when tbname is among the keys, so that every partition is one table."""
        return "tbname" in self.texts

    def place(self, bound: exp.Expr) -> int | None:
        """Return the place of the key that an expression is."""
        return self.texts.get(to_sql(strip_parentheses(bound)))

    def place_of_alias(self, name: str) -> int | None:
        """Return the place of the key called *name*: by alias, or by its own text."""
        for i, key in enumerate(self.items):
            if key.alias.lower() == name.lower():
                return i
        return None


def strip_parentheses(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def plan_keys(binder: Binder, clause: nodes.PartitionBy | None) -> PartitionKeys:
    """Bind PARTITION BY and make its aliases known to the binder."""
    keys = PartitionKeys()
    items = []
    bound_nodes = []
    for i, item in enumerate(clause.expressions if clause else []):
        alias = item.alias if isinstance(item, exp.Alias) else ""
        bound = strip_parentheses(binder.bind(without_alias(item)))
        text = to_sql(bound)
        name = bound.name if isinstance(bound, exp.Column) else item.meta.get("sql", text)
        bound, kind = _without_json(binder, item, bound)
        keys.texts.setdefault(text, i)
        items.append(Key(alias or name, to_sql(bound), kind))
        bound_nodes.append(bound)
        if alias:
            binder.aliases.setdefault(alias.lower(), bound)
    keys.items = tuple(items)
    keys.nodes = tuple(bound_nodes)
    return keys


def _without_json(binder: Binder, item: exp.Expr, bound: exp.Expr) -> tuple[exp.Expr, ColumnType]:
    """Return a key and its type; a value from JSON is text from here on."""
    kind = binder.compile(bound).type
    if kind.kind != "JSON":
        return bound, kind
    if isinstance(bound, exp.Column):
        binder.refuse_query(
            item,
            "a JSON tag cannot be a partition key",
            "take a value out of it: tag->'key'",
        )
    kind = ColumnType("VARCHAR", length=4096)
    return exp.Cast(this=bound, to=nodes.TypeName(this=str(kind))), kind
