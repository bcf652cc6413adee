"""WHERE of a DELETE, as the range of times and the child tables it means.

Owns the few conditions a DELETE may have: comparisons of the time column and of tbname, joined by
AND. The rest is refused, because a delete takes effect in the log and has to be clear without
reading a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import Literal

from sqlglot import exp

from gateway import literals
from gateway.layout import TBNAME, RowLayout
from penstock.errors import SqlSemanticError
from penstock.sql.nodes import DurationLiteral
from penstock.sql.plan import Duration
from penstock.sql.statements import Delete, RelativeTime, Value

_MIN = -(2**63)
_MAX = 2**63 - 1
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}


@dataclass(frozen=True)
class DeletedRange:
    """Rows of `tables`, or of all when that is None, with low <= ts <= high; nothing when
    low > high.
    """

    tables: tuple[str, ...] | None
    low: int = _MIN
    high: int = _MAX


def bounds(statement: Delete, layout: RowLayout, tz: tzinfo, now: int) -> DeletedRange:
    """Return what a DELETE means; *now* in ticks. Raises SqlSemanticError."""
    found = DeletedRange(None)
    if statement.where is None:
        return found
    for condition in _conjuncts(statement.where):
        found = _narrow(statement, layout, tz, now, found, condition)
    return found


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    return (
        [*_conjuncts(node.left), *_conjuncts(node.right)] if isinstance(node, exp.And) else [node]
    )


def _narrow(
    statement: Delete, layout: RowLayout, tz: tzinfo, now: int, found: DeletedRange, node: exp.Expr
) -> DeletedRange:
    def time(value: exp.Expr) -> int:
        try:
            return literals.ticks(_value(value), layout.precision, tz, now)
        except (ValueError, OverflowError) as wrong:
            raise _refusal(statement, node, "this is not a time") from wrong

    tables = _tables_of(node)
    if tables is not None:
        return _intersect(found, tables)
    if isinstance(node, exp.Between) and _is_time(node.this, layout):
        low = time(node.args["low"])
        high = time(node.args["high"])
    else:
        kind, side = _comparison(statement, layout, node)
        low, high = _limits(kind, time(side))
    return DeletedRange(found.tables, max(found.low, low), min(found.high, high))


def _comparison(
    statement: Delete, layout: RowLayout, node: exp.Expr
) -> tuple[type[exp.Expr], exp.Expr]:
    """Return how the time column is compared, as if it stood on the left, and with what."""
    kind = type(node)
    if kind in _FLIPPED:
        assert isinstance(node, exp.Binary)
        if _is_time(node.left, layout):
            return kind, node.right
        if _is_time(node.right, layout):
            return _FLIPPED[kind], node.left
    raise _refusal(statement, node, "a DELETE cannot have this condition")


def _limits(kind: type[exp.Expr], at: int) -> tuple[int, int]:
    """Return the first and the last tick that *kind* allows."""
    if kind is exp.EQ:
        return at, at
    if kind in (exp.GT, exp.GTE):
        return at + (kind is exp.GT), _MAX
    return _MIN, at - (kind is exp.LT)


def _is_time(side: exp.Expr, layout: RowLayout) -> bool:
    names = (layout.time.lower(), "_tp_time", "_rowts")
    return isinstance(side, exp.Column) and side.name.lower() in names


def _tables_of(node: exp.Expr) -> tuple[str, ...] | None:
    """Return the child tables of `tbname = 'a'` or `tbname IN ('a', 'b')`."""
    if isinstance(node, exp.EQ):
        side, named = node.left, [node.right]
    elif isinstance(node, exp.In):
        side, named = node.this, node.expressions
    else:
        return None
    if not _is_tbname(side) or not all(isinstance(e, exp.Literal) and e.is_string for e in named):
        return None
    return tuple(e.this for e in named)


def _is_tbname(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() == TBNAME


def _intersect(found: DeletedRange, tables: tuple[str, ...]) -> DeletedRange:
    both = tables if found.tables is None else tuple(t for t in found.tables if t in tables)
    return DeletedRange(tuple(dict.fromkeys(both)), found.low, found.high)


def _value(node: exp.Expr) -> Value:
    """Return a literal, also as `TIMESTAMP '…'`; a negative number; or now plus and minus
    durations.
    """
    node = node.unnest()
    if isinstance(node, exp.Cast) and node.args["to"].name == "TIMESTAMP":
        node = node.this
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else int(node.this)
    if isinstance(node, exp.Neg):
        inner = _value(node.this)
        if not isinstance(inner, int):
            raise ValueError(node.sql())
        return -inner
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.right, DurationLiteral):
        sign: Literal[1, -1] = 1 if isinstance(node, exp.Add) else -1
        return _shift(_value(node.left), sign, node.right.duration)
    name = node.name.lower() if isinstance(node, exp.Column | exp.Anonymous | exp.Var) else ""
    if name in ("now", "today") or isinstance(node, exp.CurrentTimestamp):
        return RelativeTime(name or "now")
    raise ValueError(node.sql())


def _shift(value: Value, sign: Literal[1, -1], duration: Duration) -> RelativeTime:
    """Return *value* plus or minus a duration."""
    if not isinstance(value, RelativeTime):
        value = RelativeTime(value, (), isinstance(value, str))  # type: ignore[arg-type]
    return RelativeTime(value.base, (*value.steps, (sign, duration)), value.literal)


def _refusal(statement: Delete, node: exp.Expr, words: str) -> SqlSemanticError:
    hint = "ranges of the time column and tbname = 'name', joined by AND"
    return statement.error(words, node, code="E_BAD_DELETE", hint=hint)
