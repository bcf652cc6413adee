"""Calls in a window select: which of them the kernels do not have, and which stand for several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from penstock.sql.functions import AGGREGATES, QUERY_ONLY, REGISTRY
from penstock.sql.relational import AGGREGATE_NAMES
from penstock.sql.relational.select_list import call_of_column, is_of_all_columns
from services.store.functions import function_name

#: aggregates to which it does not matter how often a value is there
OF_A_SET = frozenset({"first", "hyperloglog", "last", "last_row", "max", "min", "spread"})


def is_of_queries(node: exp.Expr) -> bool:
    """Tell if *node* calls a function that only queries have."""
    name = function_name(node)
    return name in QUERY_ONLY and name not in REGISTRY and name not in AGGREGATES


def is_late(node: exp.Expr) -> bool:
    """Tell if *node* is an aggregate that the kernels do not have, with FILTER or without."""
    if isinstance(node, exp.Filter):
        return is_late(node.this)
    name = function_name(node)
    if name not in AGGREGATE_NAMES or not isinstance(node, exp.Anonymous):
        return False
    arguments = node.expressions
    of_different = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if of_different or name not in AGGREGATES:
        return True
    return any(is_of_queries(inner) for argument in arguments for inner in argument.walk())


def has_place(node: exp.Expr) -> bool:
    """Tell if the late aggregate *node* has the type of the same aggregate of all values, which the
    kernels have.
    """
    of_queries = any(is_of_queries(inner) for inner in node.walk())
    return function_name(node) in AGGREGATES and not of_queries


def of_all(item: exp.Expr) -> exp.Expr:
    """Return the aggregate *item* of DISTINCT values as one of all values."""
    made = item.unalias().copy()
    first, *others = made.expressions
    made.set(
        "expressions",
        [*(first.expressions if isinstance(first, exp.Distinct) else [first]), *others],
    )
    return made


def write_out(items: Sequence[exp.Expr], starred: Sequence[str]) -> Iterator[exp.Expr]:
    """Yield *items* with `last(*)` as a call for each column."""
    for item in items:
        if is_of_all_columns(item.unalias()):
            yield from (call_of_column(item.unalias(), name, item) for name in starred)
        else:
            yield item
