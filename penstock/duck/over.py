"""OVER and FILTER as DuckDB writes them, printed from checked nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from sqlglot import exp

from penstock.duck.quoting import impossible
from penstock.sql.functions import WINDOW_FUNCTIONS

#: functions that our own trees number rows with
_NUMBERINGS: dict[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.DenseRank: "dense_rank",
}
#: what a window may have
_PARTS = frozenset(("this", "over", "partition_by", "order", "spec"))
_FRAMES = frozenset(("ROWS", "RANGE"))
_SIDES = frozenset(("PRECEDING", "FOLLOWING"))


#: writes an expression inside
Write: TypeAlias = Callable[[object], str]


def write_filter(write: Write, node: exp.Filter) -> str:
    """Text of an aggregate with FILTER."""
    condition = node.expression
    if not isinstance(node.this, exp.Anonymous) or not isinstance(condition, exp.Where):
        raise impossible("FILTER")
    return f"{write(node.this)} FILTER (WHERE {write(condition.this)})"


def write_window(write: Write, node: exp.Window) -> str:
    """Text of a function with OVER."""
    unknown = any(value and key not in _PARTS for key, value in node.args.items())
    if unknown or node.args.get("over") not in (None, "", "OVER"):
        raise impossible("this OVER")
    keys = node.args.get("partition_by")
    order = node.args.get("order")
    spec = node.args.get("spec")
    parts = (
        f"PARTITION BY {_several(write, keys)}" if keys else "",
        f"ORDER BY {_several(write, order.expressions)}" if order is not None else "",
        _frame(write, spec) if spec is not None else "",
    )
    return f"{_function(write, node.this)} OVER ({' '.join(filter(None, parts))})"


def _function(write: Write, node: object) -> str:
    numbering = _NUMBERINGS.get(type(node))  # type: ignore[arg-type]
    if numbering is not None:
        return f"{numbering}()"
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in WINDOW_FUNCTIONS:
        return f"{str(node.this).lower()}({_several(write, node.expressions)})"
    if isinstance(node, exp.Anonymous | exp.Filter):
        return write(node)
    raise impossible("OVER")


def _frame(write: Write, spec: object) -> str:
    if not isinstance(spec, exp.WindowSpec) or spec.args.get("kind") not in _FRAMES:
        raise impossible("this frame")
    if spec.args.get("exclude"):
        raise impossible("EXCLUDE")
    start, end = (_bound(write, spec, side) for side in ("start", "end"))
    return f"{spec.args['kind']} BETWEEN {start} AND {end}"


def _bound(write: Write, spec: exp.WindowSpec, end: str) -> str:
    value = spec.args.get(end)
    side = spec.args.get(f"{end}_side")
    if value == "CURRENT ROW" and side is None:
        return "CURRENT ROW"
    if side not in _SIDES:
        raise impossible("this frame")
    if value == "UNBOUNDED":
        return f"UNBOUNDED {side}"
    if not isinstance(value, exp.Literal | exp.Interval):
        raise impossible("this frame")
    return f"{write(value)} {side}"


def _several(write: Write, items: Iterable[object]) -> str:
    return ", ".join([write(item) for item in items])
