"""Items of the select list: `*` written out, their names, and the list in plan terms."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from penstock.sql.dialect import to_sql
from penstock.sql.plan import Aggregate, Output
from penstock.sql.planning.binder import Binder

MAX_COLUMN_NAME_BYTES = 64
#: mark in the `meta` of a select item that a query around the windows reads and nobody sees
HIDDEN = "hidden"


@dataclass
class SelectList:
    """The select list in plan terms. The name of `outputs[i]` is the one that the user sees."""

    outputs: list[Output] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    #: whether output i is filled by FILL (made of aggregates) or computed
    filled: list[bool] = field(default_factory=list)
    nodes: list[exp.Expr] = field(default_factory=list)

    def takes_values(self) -> list[bool]:
        """Tell of each output if FILL(VALUE, …) has a value for it."""
        return [
            filled and not node.meta.get(HIDDEN)
            for filled, node in zip(self.filled, self.nodes, strict=True)
        ]

    def add(self, item: exp.Expr, output: Output, *, filled: bool) -> None:
        """Append the output of a select item."""
        self.outputs.append(output)
        self.filled.append(filled)
        self.nodes.append(item)


def expand_items(select: exp.Select, binder: Binder) -> list[exp.Expr]:
    """Return the select items with `*`, `last(*)` and the like written out."""
    items: list[exp.Expr] = []
    for item in select.expressions:
        plain = without_alias(item)
        if _is_star(plain):
            if select.args.get("window") is not None:
                binder.refuse_query(
                    item,
                    "* gives rows, but a window gives one result for many",
                    "name aggregates: count(*), last(column)",
                )
            items += _star_columns(binder, plain, item)
        elif is_call_of_star(plain):
            items += [call_of_column(plain, c.name, item) for c in binder.source.columns]
        else:
            items.append(item)
    return items


def without_alias(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    )


def _star_columns(binder: Binder, star: exp.Expr, item: exp.Expr) -> list[exp.Expr]:
    if isinstance(star, exp.Column):
        # says so when the table in front of the star is not the source
        binder.column_name(exp.Column(this=exp.Identifier(this="*"), table=star.args["table"]))
    return [column_reference(name, item) for name in binder.columns if name != "tbname"]


def is_call_of_star(node: exp.Expr) -> bool:
    """Tell if *node* is `first(*)`, `last(*)` or `last_row(*)`."""
    return (
        isinstance(node, exp.Anonymous)
        and str(node.this).lower() in ("first", "last", "last_row")
        and any(isinstance(a, exp.Star) for a in node.expressions)
    )


def call_of_column(call: exp.Expr, name: str, like: exp.Expr) -> exp.Expr:
    """Return *call*, which is of `*`, of the column *name*; it stands where *like* does."""
    function = str(call.this).lower()
    node = exp.Anonymous(this=function, expressions=[column_reference(name, like)])
    node.meta.update(like.meta)
    node.meta["sql"] = f"{function}({name})"
    return node


def column_reference(name: str, like: exp.Expr) -> exp.Expr:
    """Return a column called *name* that stands where *like* does."""
    node = exp.Column(this=exp.Identifier(this=name, quoted=False))
    node.meta.update({k: v for k, v in like.meta.items() if k != "sql"})
    return node


def output_name(item: exp.Expr, bound: exp.Expr) -> str:
    """Return an item's alias, column name, or the text of its expression."""
    if isinstance(item, exp.Alias):
        return item.alias
    if isinstance(item, exp.Column):
        same = isinstance(bound, exp.Column) and bound.name.lower() == item.name.lower()
        return bound.name if same else item.name
    text = " ".join(str(item.meta.get("sql") or to_sql(item)).split())
    return text.encode()[:MAX_COLUMN_NAME_BYTES].decode(errors="ignore")
