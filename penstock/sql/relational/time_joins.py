"""Joins by time written out: WINDOW JOIN as a join on a range of times, RIGHT ASOF JOIN as the LEFT
one of the tables the other way round.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.functions.base import TIMESTAMP
from penstock.sql.relational.names import Refuse
from penstock.sql.relational.relations import Relation


def write_out_window(join: exp.Join, left: Relation, right: Relation, refuse: Refuse) -> Relation:
    """Write a WINDOW JOIN as a LEFT or RIGHT JOIN with the window in its condition; return the
    relation whose rows have the windows.
    """
    offset = join.args["window_offset"]
    of_left = join.args.get("side") == "LEFT"
    own, other = (left, right) if of_left else (right, left)
    for relation in (own, other):
        _check_time(relation, offset, refuse)
    _check_order(offset, refuse)
    conditions = [
        exp.GTE(this=_time(other, offset), expression=_move(own, offset.args["begin"])),
        exp.LTE(this=_time(other, offset), expression=_move(own, offset.args["end"])),
    ]
    on = join.args.get("on")
    given = [exp.Paren(this=on)] if on is not None else []
    join.set("on", exp.and_(*given, *conditions, copy=False, wrap=False))
    join.set("method", None)
    join.set("window_offset", None)
    return own


def _check_time(relation: Relation, at: exp.Expr, refuse: Refuse) -> None:
    if not relation.table.stored or relation.columns[0].type != TIMESTAMP:
        refuse(
            at,
            f"a WINDOW JOIN goes by the time of a table, and {relation.name} is a subquery",
            code="E_UNSUPPORTED_QUERY",
            hint="write LEFT JOIN … ON b.ts >= a.ts - 1s AND b.ts <= a.ts + 1s",
        )


def _check_order(offset: nodes.WindowOffset, refuse: Refuse) -> None:
    begin, end = (_nanos(offset.args[side], refuse) for side in ("begin", "end"))
    if begin > end:
        refuse(
            offset,
            "the window of WINDOW_OFFSET ends before it begins",
            code="E_UNSUPPORTED_QUERY",
            hint="write the earlier end first: WINDOW_OFFSET(-1s, 1s)",
        )


def _nanos(node: exp.Expr, refuse: Refuse) -> int:
    literal = node.this if isinstance(node, exp.Neg) else node
    assert isinstance(literal, nodes.DurationLiteral)
    duration = literal.duration
    if duration.natural:
        refuse(
            node,
            f"{duration} has no fixed length",
            code="E_DURATION",
            hint="write days: 30d",
        )
    return duration.ticks("ns") * (-1 if literal is not node else 1)


def _time(relation: Relation, at: exp.Expr) -> exp.Column:
    column = exp.column(relation.columns[0].name, table=relation.name, quoted=True)
    column.meta.update(at.meta)
    return column


def _move(relation: Relation, by: exp.Expr) -> exp.Expr:
    """Return the relation's time plus *by*, which may be the opposite of a length."""
    kind = exp.Sub if isinstance(by, exp.Neg) else exp.Add
    length = by.this if isinstance(by, exp.Neg) else by
    return kind(this=_time(relation, by), expression=length.copy())


def turn_round(select: exp.Select, join: exp.Join) -> None:
    """Write a RIGHT ASOF JOIN, whose right rows look for left ones, as a LEFT one."""
    first = select.args["from_"]
    left, right = first.this, join.this
    first.set("this", right)
    join.set("this", left)
    join.set("side", "LEFT")
