"""WHERE of a DELETE, as the range of times and the child tables it means.

Owns the few conditions a DELETE may have: comparisons of the time column and of tbname, joined by
AND. Refuses the rest, because a delete takes effect in the log and has to be clear without reading
a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from sqlglot import exp

from gateway import literals
from gateway.layout import TBNAME, RowLayout
from penstock.errors import SqlSemanticError
from penstock.sql.nodes import DurationLiteral
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
class Range:
    """Rows of `tables` (None: all) with low <= ts <= high; nothing when low > high."""

    tables: tuple[str, ...] | None
    low: int = _MIN
    high: int = _MAX


def bounds(statement: Delete, layout: RowLayout, tz: tzinfo, now: int) -> Range:
    """What a DELETE means; *now* in ticks. Raises SqlSemanticError."""
    found = Range(None)
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
    statement: Delete, layout: RowLayout, tz: tzinfo, now: int, found: Range, node: exp.Expr
) -> Range:
    def time(value: exp.Expr) -> int:
        try:
            return literals.ticks(_value(value), layout.precision, tz, now)
        except (ValueError, OverflowError) as wrong:
            raise _refused(statement, node, "this is not a time") from wrong

    def is_time(side: exp.Expr) -> bool:
        return isinstance(side, exp.Column) and side.name.lower() in (
            layout.time.lower(),
            "_tp_time",
            "_rowts",
        )

    if isinstance(node, exp.Between) and is_time(node.this):
        return Range(
            found.tables,
            max(found.low, time(node.args["low"])),
            min(found.high, time(node.args["high"])),
        )
    if (
        isinstance(node, exp.EQ)
        and _is_tbname(node.left)
        and isinstance(node.right, exp.Literal)
        and node.right.is_string
    ):
        return _tables(found, (node.right.this,))
    if (
        isinstance(node, exp.In)
        and _is_tbname(node.this)
        and all(isinstance(e, exp.Literal) and e.is_string for e in node.expressions)
    ):
        return _tables(found, tuple(e.this for e in node.expressions))
    kind = type(node)
    if kind not in _FLIPPED:
        raise _refused(statement, node, "a DELETE cannot have this condition")
    assert isinstance(node, exp.Binary)
    left = node.left
    right = node.right
    if is_time(right) and not is_time(left):
        left, right, kind = right, left, _FLIPPED[kind]
    if not is_time(left):
        raise _refused(statement, node, "a DELETE cannot have this condition")
    at = time(right)
    low = at if kind in (exp.GTE, exp.EQ) else at + 1 if kind is exp.GT else _MIN
    high = at if kind in (exp.LTE, exp.EQ) else at - 1 if kind is exp.LT else _MAX
    return Range(found.tables, max(found.low, low), min(found.high, high))


def _is_tbname(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() == TBNAME


def _tables(found: Range, tables: tuple[str, ...]) -> Range:
    both = tables if found.tables is None else tuple(t for t in found.tables if t in tables)
    return Range(tuple(dict.fromkeys(both)), found.low, found.high)


def _value(node: exp.Expr) -> Value:
    """A literal, a negative number, or now plus and minus durations."""
    node = node.unnest()
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else int(node.this)
    if isinstance(node, exp.Neg):
        inner = _value(node.this)
        if not isinstance(inner, int):
            raise ValueError(node.sql())
        return -inner
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.right, DurationLiteral):
        inner = _value(node.left)
        base = (
            inner
            if isinstance(inner, RelativeTime)
            else RelativeTime(inner, (), isinstance(inner, str))  # type: ignore[arg-type]
        )
        return RelativeTime(
            base.base,
            (*base.steps, (1 if isinstance(node, exp.Add) else -1, node.right.duration)),
            base.literal,
        )
    name = node.name.lower() if isinstance(node, exp.Column | exp.Anonymous | exp.Var) else ""
    if name in ("now", "today") or isinstance(node, exp.CurrentTimestamp):
        return RelativeTime(name or "now")
    raise ValueError(node.sql())


def _refused(statement: Delete, node: exp.Expr, words: str) -> SqlSemanticError:
    hint = "ranges of the time column and tbname = 'name', joined by AND"
    return statement.error(words, node, code="E_BAD_DELETE", hint=hint)
