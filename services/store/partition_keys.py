"""The keys of PARTITION BY, as expressions of the same select name them."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.dialect import to_sql


class WindowPartitionKeys:
    """`nodes` are the keys without their aliases."""

    def __init__(self, select: exp.Select) -> None:
        partition = select.args.get("partition_by")
        keys = partition.expressions if partition is not None else []
        self.nodes = [key.unalias() for key in keys]
        self._texts = {canonical_text(key) for key in self.nodes}
        self._texts |= {key.alias.lower() for key in keys if isinstance(key, exp.Alias)}

    def has_name(self, name: str) -> bool:
        """Tell if a key, or its alias, is the column *name*, which is in lower case."""
        return name in self._texts

    def has(self, node: exp.Expr) -> bool:
        """Tell if PARTITION BY has the expression *node*."""
        alike = [key for key in self.nodes if type(key) is type(node)]
        # texts take long, and a chain of operators has as many parts as it has operators
        if not any(_size(key) == _size(node) for key in alike):
            return False
        return canonical_text(node) in self._texts


def canonical_text(node: exp.Expr) -> str:
    """Return the canonical text of *node*: names of columns compare without case."""
    made = node.copy()
    for column in made.find_all(exp.Column):
        if isinstance(column.this, exp.Identifier):
            column.this.set("this", column.name.lower())
    return to_sql(made)


def _size(node: exp.Expr) -> int:
    return sum(1 for _ in node.walk())
