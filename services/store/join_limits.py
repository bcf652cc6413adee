"""JLIMIT of joins by time: at most so many rows of the one table for each row of the other.

DuckDB has no such limit. The limited side becomes a subquery: its rows joined as the query says,
each with what tells its partner apart, and numbered. The query then joins those whose number is low
enough to their partners.

A WINDOW JOIN has a range of times already. An ASOF JOIN of several rows gets one: DuckDB's own ASOF
JOIN finds the nearest row, which knows the time of the row so many places from it. So rows that are
far away are not met.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.sql.relational import (
    Derived,
    Join,
    JoinLimit,
    NamedRows,
    RowSource,
    SelectItem,
    SelectPlan,
)

#: columns of a chosen row that tell its partner apart
_PARTNER = "_penstock_partner_"
#: time of the farthest row that can count
_EDGE = "_penstock_edge"


def limit_joins(select: SelectPlan) -> SelectPlan:
    """Return *select* with the limit of its join written out."""
    source = select.source
    if not isinstance(source, Join) or source.limit is None:
        return select
    return replace(select, source=_limit(source, source.limit))


def _limit(join: Join, limit: JoinLimit) -> Join:
    own, other = (join.right, join.left) if join.side == "RIGHT" else (join.left, join.right)
    # the binder lets a limit be between two tables alone
    assert not isinstance(own, Join) and not isinstance(other, Join) and join.on is not None
    partner: RowSource = own
    condition: exp.Expr = exp.Paren(this=join.on.copy())
    if limit.near:
        partner = _with_edge(own, other, join.on, limit)
        edge = exp.column(_EDGE, table=own.name, quoted=True)
        within = exp.GTE if limit.backwards else exp.LTE
        condition = exp.and_(condition, within(this=limit.time.copy(), expression=edge), copy=False)
    own_rows = [row.copy() for row in limit.rows]
    names = [f"{_PARTNER}{number}" for number in range(len(own_rows))]
    chosen = SelectPlan(
        (_every_column(other), *map(SelectItem, own_rows, names)),
        Join(partner, other, kind="INNER", on=condition),
        qualify=exp.LTE(this=_number(other, limit), expression=exp.Literal.number(limit.count)),
    )
    same = [
        exp.EQ(this=row.copy(), expression=exp.column(name, table=other.name, quoted=True))
        for row, name in zip(limit.rows, names, strict=True)
    ]
    rows = Derived(chosen, other.name)
    left, right = (rows, own) if join.side == "RIGHT" else (own, rows)
    return Join(left, right, side=join.side, on=exp.and_(*same, copy=False))


def _every_column(source: NamedRows) -> SelectItem:
    table = exp.to_identifier(source.name, quoted=True)
    return SelectItem(exp.Column(this=exp.Star(), table=table))


def _number(other: NamedRows, limit: JoinLimit) -> exp.Window:
    """Return the number of a row among those of its partner; of one time, by tables."""
    table = exp.column("tbname", table=other.name, quoted=True)
    time = exp.Ordered(this=limit.time.copy(), desc=limit.backwards)
    return exp.Window(
        this=exp.RowNumber(),
        partition_by=[row.copy() for row in limit.rows],
        order=exp.Order(expressions=[time, exp.Ordered(this=table)]),
    )


def _with_edge(own: NamedRows, other: NamedRows, on: exp.Expr, limit: JoinLimit) -> Derived:
    """Return the rows of *own* that have a near row, each with the time of the farthest one that
    can count.
    """
    steps = exp.Literal.number(max(limit.count, 1) - 1)
    if limit.backwards:
        name = "first_value"
        frame: dict[str, object] = {"start": steps, "start_side": "PRECEDING", "end": "CURRENT ROW"}
    else:
        name = "last_value"
        frame = {"start": "CURRENT ROW", "end": steps, "end_side": "FOLLOWING"}
    edge = exp.Window(
        this=exp.Anonymous(this=name, expressions=[limit.time.copy()]),
        partition_by=[part.copy() for part in limit.alike],
        order=exp.Order(expressions=[exp.Ordered(this=limit.time.copy())]),
        spec=exp.WindowSpec(kind="ROWS", **frame),
    )
    numbered = Derived(
        SelectPlan((_every_column(other), SelectItem(edge, _EDGE)), other), other.name
    )
    found = SelectItem(exp.column(_EDGE, table=other.name, quoted=True), _EDGE)
    near = Join(own, numbered, method="ASOF", on=on.copy())
    return Derived(SelectPlan((_every_column(own), found), near), own.name)
