"""DuckDB's text of a query, printed from its plan.

The printer knows the nodes that a plan may have, and the words that may stand in them. Names are
quoted, relations are those that the caller names, expressions are printed by
`penstock.duck.expressions`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from penstock.duck.expressions import ExpressionPrinter
from penstock.duck.functions import FUNCTIONS
from penstock.duck.quoting import impossible, quote
from penstock.errors import SqlSemanticError
from penstock.sql.relational import (
    ComputedRows,
    Derived,
    Enclosed,
    Join,
    QueryPlan,
    RowLimits,
    RowSource,
    Scan,
    SelectItem,
    SelectPlan,
)

_METHODS = frozenset(("ASOF",))
_SIDES = frozenset(("LEFT", "RIGHT", "FULL"))
_KINDS = frozenset(("INNER", "CROSS", "OUTER", "SEMI", "ANTI"))
_SETS = frozenset(("UNION", "EXCEPT", "INTERSECT"))


def print_query(
    plan: QueryPlan, relations: Collection[str], functions: Collection[str] = ()
) -> str:
    """Return DuckDB's text of *plan*. PARTITION BY and limits of partitions, which DuckDB does not
    have, mean nothing here.

    Args:
        relations: names of the relations that it may read, all of them registered by the caller.
        functions: names of functions that it may call besides the dialect's own.

    Raises:
        SqlSemanticError: it holds anything that a query may not have.
    """
    known = FUNCTIONS | {f.lower() for f in functions}
    return _QueryPrinter({r.lower() for r in relations}, known).query(plan)


class _QueryPrinter:
    """Prints one plan."""

    def __init__(self, relations: Collection[str], functions: Collection[str]) -> None:
        self._relations = relations
        self._expressions = ExpressionPrinter(functions, self.query)

    def query(self, plan: QueryPlan) -> str:
        """Return the text of a SELECT, or of several with UNION and the like between them."""
        if isinstance(plan, SelectPlan):
            return self._select(plan)
        tail = self._tail(plan.order_by, plan.limits)
        if isinstance(plan, Enclosed):
            return f"({self.query(plan.query)}){tail}"
        if plan.word not in _SETS:
            raise impossible("this set operation")
        word = f"{plan.word} ALL" if plan.every else plan.word
        return f"{self._side(plan.left)} {word} {self._side(plan.right)}{tail}"

    def _side(self, plan: QueryPlan) -> str:
        """Return the text of one side of a set operation."""
        text = self.query(plan)
        return f"({text})" if plan.order_by or plan.limits else text

    # ---------------------------------------------------------------- SELECT

    def _select(self, plan: SelectPlan) -> str:
        sql = self._expressions.sql
        parts = ["SELECT DISTINCT" if plan.distinct else "SELECT"]
        parts.append(", ".join(map(self._item, plan.items)))
        if plan.source is not None:
            parts.append(f"FROM {self._source(plan.source)}")
        if plan.where is not None:
            parts.append(f"WHERE {sql(plan.where)}")
        if plan.group_by:
            parts.append(f"GROUP BY {self._expressions.several(plan.group_by)}")
        if plan.having is not None:
            parts.append(f"HAVING {sql(plan.having)}")
        if plan.qualify is not None:
            parts.append(f"QUALIFY {sql(plan.qualify)}")
        return " ".join(parts) + self._tail(plan.order_by, plan.limits)

    def _item(self, item: SelectItem) -> str:
        text = self._expressions.sql(item.expression)
        return f"{text} AS {quote(item.name)}" if item.name else text

    def _tail(self, order_by: Sequence[exp.Ordered], limits: RowLimits) -> str:
        text = f" ORDER BY {self._expressions.several(order_by)}" if order_by else ""
        if limits.rows is not None:
            text += f" LIMIT {self._expressions.count(limits.rows)}"
        if limits.skipped is not None:
            text += f" OFFSET {self._expressions.count(limits.skipped)}"
        return text

    # ---------------------------------------------------------------- FROM

    def _source(self, source: RowSource) -> str:
        if isinstance(source, Scan):
            return self._relation(source.relation, source.table) + _alias(source.alias)
        if isinstance(source, ComputedRows):
            return self._relation(source.relation, source.name)
        if isinstance(source, Derived):
            return f"({self.query(source.query)}){_alias(source.alias, source.names)}"
        return self._source(source.left) + self._join(source)

    def _relation(self, relation: str, table: str) -> str:
        if relation.lower() not in self._relations:
            raise SqlSemanticError(f'table "{table}" does not exist', code="E_TABLE_NOT_EXIST")
        return quote(relation)

    def _join(self, join: Join) -> str:
        words = _join_words(join)
        right = self._source(join.right)
        if not words and join.on is None and not join.using:
            return f", {right}"
        text = " ".join(["", *words, "JOIN", right])
        if join.using:
            return f"{text} USING ({', '.join(map(quote, join.using))})"
        return text if join.on is None else f"{text} ON {self._expressions.sql(join.on)}"


def _join_words(join: Join) -> list[str]:
    known = ((join.method, _METHODS), (join.side, _SIDES), (join.kind, _KINDS))
    for word, words in known:
        if word and word not in words:
            raise impossible("this join")
    return [word for word, _ in known if word]


def _alias(name: str, columns: Sequence[str] = ()) -> str:
    if not name:
        return ""
    listed = f" ({', '.join(map(quote, columns))})" if columns else ""
    return f" AS {quote(name)}{listed}"
