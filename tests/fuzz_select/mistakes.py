"""Mistakes put into a SELECT, each with the code of the error that must come of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from tests.fuzz_select import operations
from tests.fuzz_select.tree import (
    Aggregate,
    Apply,
    Column,
    Expression,
    Operation,
    Select,
    TableSource,
    Value,
)


def spoil(dice: random.Random, select: Select) -> tuple[Select, str]:
    """Return *select*, which is one of rows of a table, with a mistake, and the code of its
    error.
    """
    assert isinstance(select.source, TableSource)
    make, code = dice.choice(_MISTAKES)
    return make(select, select.source), code


def _with_item(select: Select, item: Expression) -> Select:
    # behind the others, so that ORDER BY still means the same columns
    return replace(select, items=(*select.items, item))


def _written(text: str, *operands: Expression) -> Apply:
    """Return an operation that nothing can compute."""
    kinds = tuple(o.kind for o in operands)
    return Apply(Operation(text, kinds, "INT", lambda values, zone: None), operands)


def _whole(source: TableSource) -> Column:
    return Column("INT", source.alias, "i")


def _unknown_column(select: Select, source: TableSource) -> Select:
    return _with_item(select, Column("INT", source.alias, "nowhere"))


def _unknown_table(select: Select, source: TableSource) -> Select:
    return replace(select, source=TableSource("nowhere", source.alias))


def _unknown_function(select: Select, source: TableSource) -> Select:
    return _with_item(select, _written("nothing({0})", _whole(source)))


def _too_many_arguments(select: Select, source: TableSource) -> Select:
    return _with_item(select, _written("abs({0}, {0})", _whole(source)))


def _text_in_a_sum(select: Select, source: TableSource) -> Select:
    text = Column("VARCHAR", source.alias, "s")
    return _with_item(select, _written("({0} + {1})", _whole(source), text))


def _word_as_a_time(select: Select, source: TableSource) -> Select:
    time = Column("TIMESTAMP", source.alias, "ts")
    return _with_item(select, _written("({0} > 'no time')", time))


def _aggregate_in_where(select: Select, source: TableSource) -> Select:
    total = Aggregate("BIGINT", "sum", _whole(source))
    operation = operations.comparison(">", "BIGINT", "INT")
    return replace(select, where=Apply(operation, (total, Value("INT", 1, "1"))))


def _nested_aggregates(select: Select, source: TableSource) -> Select:
    inner = Aggregate("INT", "max", _whole(source))
    return replace(select, items=(Aggregate("BIGINT", "sum", inner),), order=())


def _not_grouped(select: Select, source: TableSource) -> Select:
    total = Aggregate("BIGINT", "sum", _whole(source))
    return replace(select, items=(_whole(source), total), order=(), distinct=False)


_MISTAKES: tuple[tuple[Callable[[Select, TableSource], Select], str], ...] = (
    (_unknown_column, "E_UNKNOWN_COLUMN"),
    (_unknown_table, "E_TABLE_NOT_EXIST"),
    (_unknown_function, "E_UNKNOWN_FUNCTION"),
    (_too_many_arguments, "E_FUNCTION_ARGUMENT"),
    (_text_in_a_sum, "E_TYPE"),
    (_word_as_a_time, "E_TYPE"),
    (_aggregate_in_where, "E_AGGREGATE_HERE"),
    (_nested_aggregates, "E_AGGREGATE_HERE"),
    (_not_grouped, "E_NOT_GROUPED"),
)
