"""Random aggregates over the rows of a group."""

from __future__ import annotations

from dataclasses import replace

from tests.fuzz_select import operations
from tests.fuzz_select.drawing import Drawing
from tests.fuzz_select.kinds import NUMBERS, SMALL, WHOLE
from tests.fuzz_select.tables import mild
from tests.fuzz_select.tree import Aggregate, Apply, Column, Expression, Value, rough

#: aggregates of numbers whose sums are the same in any order
_SUMS = ("sum", "avg", "spread", "stddev", "var_pop", "stddev_samp")
_DIVIDING = frozenset(_SUMS) - {"sum", "spread"}
_EXTREMES = ("min", "max", "count")
#: these want rows of different times
_BY_TIME = ("first", "last", "last_row")
_COUNT = Aggregate("BIGINT", "count", None)


def aggregates(at: Drawing) -> list[Expression]:
    """Return up to three items that have an aggregate in them."""
    return [_item(at) for _ in range(at.dice.randint(1, 3))]


def having(at: Drawing) -> Expression:
    """Compare an aggregate with a constant."""
    found = aggregate(replace(at, exact=True))
    if found.kind not in NUMBERS:
        return Apply(operations.is_null(found.kind, negated=True), (found,))
    symbol = at.dice.choice(operations.SYMBOLS)
    number = at.dice.choice((0, 1, 2, 5, 100))
    operation = operations.comparison(symbol, found.kind, "INT")
    return Apply(operation, (found, Value("INT", number, str(number))))


def _item(at: Drawing) -> Expression:
    """Return an aggregate, sometimes with arithmetic around it."""
    made = aggregate(at)
    if made.kind not in NUMBERS or rough(made) or at.dice.random() < 0.7:
        return made
    other = aggregate(replace(at, exact=True))
    if other.kind not in NUMBERS:
        return made
    operation = operations.arithmetic(at.dice.choice("+-"), made.kind, other.kind)
    return Apply(operation, (made, other))


def aggregate(at: Drawing) -> Aggregate:
    """Return an aggregate of an expression or of a column."""
    names = [*_EXTREMES, *_SUMS, "count(*)"]
    if not at.in_window:
        names.append("percentile")
    if at.in_time_order:
        names += _BY_TIME
    name = at.dice.choice(names)
    if name == "count(*)":
        return _COUNT
    if name == "percentile":
        return _percentile(at)
    if name in _SUMS:
        return _sum(at, name)
    return _of_any(at, name)


def _of_any(at: Drawing, name: str) -> Aggregate:
    drawer = at.expressions
    of = drawer.draw(drawer.some_kind(), at.dice.choice((0, 0, 1)))
    if isinstance(of, Value):
        of = drawer.column() or of
    if name != "count":
        return Aggregate(of.kind, name, of)
    exact = of.kind in (*WHOLE, "VARCHAR", "BOOL", "TIMESTAMP")
    one_of_each = exact and not at.in_window and at.dice.random() < 0.3
    return Aggregate("BIGINT", "count", of, distinct=one_of_each)


def _percentile(at: Drawing) -> Aggregate:
    column = at.expressions.column(SMALL, "TINYINT", "INT")
    if column is None or at.exact:
        return _COUNT
    return Aggregate("DOUBLE", "percentile", column, share=at.dice.choice((0, 25, 50, 99, 100)))


def _sum(at: Drawing, name: str) -> Aggregate:
    columns = [c for c in at.expressions.columns if mild(c.kind, c.name)]
    if not columns:
        return _COUNT
    if at.exact and name in _DIVIDING:
        name = "sum"
    if name == "sum" and at.dice.random() < 0.3:
        # sums of whole numbers are exact, and none where they do not fit
        columns = [c for c in at.expressions.columns if c.kind in WHOLE] or columns
    of = _chosen(at, columns) if at.dice.random() < 0.2 else at.dice.choice(columns)
    if name != "sum":
        return Aggregate("DOUBLE", name, of)
    if of.kind not in WHOLE:
        return Aggregate("DOUBLE", "sum", of)
    return Aggregate("BIGINT UNSIGNED" if "UNSIGNED" in of.kind else "BIGINT", "sum", of)


def _chosen(at: Drawing, columns: list[Column]) -> Expression:
    """Return one of two columns of a kind, by a condition."""
    of = at.dice.choice(columns)
    other = at.dice.choice([c for c in columns if c.kind == of.kind])
    return Apply(operations.if_of(of.kind), (at.expressions.condition(1), of, other))
