"""Names in the SELECT of a stream: which its source answers to, and how its plan writes them.

A stream has one source, so that a column needs no table in front: plans have the spelling of the
table and nothing else. Texts of expressions are compared by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.functions.base import BIGINT
from penstock.sql.relational.bindings import Binding, binding_of, is_alias, note
from penstock.sql.relational.names import Refuse
from penstock.sql.relational.relations import Output, Relation
from penstock.types import ColumnType

#: of a record in a topic; what computes streams is not given them
_OF_RECORDS = ("_tp_sn", "_tp_shard")
#: of a key of PARTITION BY whose values are out of JSON: they are text where the key is meant
KEY_TEXT = ColumnType("VARCHAR", length=4096)

#: expressions that stay one whatever stands beside them
_WHOLE = (exp.Column, exp.Func, exp.Literal, exp.Paren)
#: what leaves the expressions in it whole
_AROUND = (exp.Alias, exp.Func, exp.Paren, nodes.PartitionBy)


@dataclass(frozen=True)
class StreamSource(Relation):
    """The table that the rows of a stream come from. `others` are names that it has besides."""

    others: tuple[str, ...] = ()

    def is_called(self, name: str) -> bool:
        return name.lower() in {n.lower() for n in (self.name, *self.others)}

    def find(self, name: str) -> Output | None:
        return None if name.lower() in _OF_RECORDS else super().find(name)


def spell(node: exp.Expr, source: StreamSource, refuse: Refuse) -> exp.Expr:
    """Return a copy of *node* with names as *source* spells them. Names that it does not have stay
    as they are: they may mean something else.
    """
    made = exp.Paren(this=node.copy())
    for column in made.find_all(exp.Column):
        check_table(column, source, refuse)
        found = source.find(column.name)
        if found is not None:
            column.set("this", exp.to_identifier(found.name))
    write_plan_names(made, {})
    spelled: exp.Expr = made.this.pop()
    return spelled


def check_table(column: exp.Column, source: StreamSource, refuse: Refuse) -> None:
    """Refuse a column of another table than *source*."""
    if column.table and not source.is_called(column.table):
        refuse(
            column,
            f"{column.table} is not in FROM",
            code="E_UNKNOWN_COLUMN",
            hint=f"FROM has {source.name}",
        )


def write_plan_names(tree: exp.Expr, keys: Mapping[str, exp.Expr]) -> None:
    """Write the names in *tree* (bound) as a stream's plan has them. *keys* are what the names mean
    that PARTITION BY gives to expressions, in lower case.
    """
    for column in list(tree.find_all(exp.Column)):
        meant = keys.get(column.name.lower()) if is_alias(column) else None
        if meant is not None:
            column.replace(_in_place_of(column, meant))
            continue
        column.set("this", exp.Identifier(this=column.name, quoted=False))
        for part in ("table", "db"):
            column.set(part, None)


def _in_place_of(column: exp.Column, meant: exp.Expr) -> exp.Expr:
    """Return a copy of *meant*, in parentheses where the text around *column* would part it."""
    made = meant.copy()
    if isinstance(made, _WHOLE) or isinstance(column.parent, _AROUND):
        return made
    whole = exp.Paren(this=made)
    whole.meta.update(made.meta)
    return whole


def plan_names(node: exp.Expr, keys: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return a copy of *node* with names as a stream's plan has them."""
    made = exp.Paren(this=node.copy())
    write_plan_names(made, keys)
    inner: exp.Expr = made.this.pop()
    return inner


def as_text(key: exp.Expr) -> exp.Expr:
    """Return *key*, whose values are out of JSON, as the text that it is for whoever names it."""
    made = exp.Cast(this=key.copy(), to=nodes.TypeName(this=str(KEY_TEXT)))
    note(made, Binding(KEY_TEXT))
    return made


def type_of(bound: exp.Expr) -> ColumnType:
    """Return the type of a bound expression; NULL alone is a whole number in a stream."""
    binding = binding_of(bound)
    return BIGINT if binding is None or binding.kind == "NULL" else binding.type


def strip_parentheses(node: exp.Expr) -> exp.Expr:
    """Return what stands in the parentheses of *node*."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
