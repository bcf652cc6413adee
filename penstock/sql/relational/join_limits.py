"""JLIMIT of a join by time: between which rows it is, and in what order they count."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from penstock.sql.relational.lowering import note_limit
from penstock.sql.relational.names import Refuse
from penstock.sql.relational.query_plan import JoinLimit
from penstock.sql.relational.relations import Relation

_EARLIER: tuple[type[exp.Expr], ...] = (exp.GT, exp.GTE)
_LATER: tuple[type[exp.Expr], ...] = (exp.LT, exp.LTE)


def bind_limit(join: exp.Join, own: Relation, other: Relation, refuse: Refuse) -> None:
    """Note the limit of *join*, whose condition is bound: an ASOF JOIN of several rows is none of
    DuckDB's.

    Args:
        own: each of its rows has at most so many of *other*.
    """
    note_limit(join, _limit_of(join, own, other, refuse))
    join.set("join_limit", None)
    if join.args.get("method") == "ASOF":
        join.set("method", None)


def _limit_of(join: exp.Join, own: Relation, other: Relation, refuse: Refuse) -> JoinLimit:
    literal = join.args["join_limit"]
    for relation in (own, other):
        if not relation.table.stored:
            refuse(
                literal,
                f"JLIMIT counts rows of tables, and {relation.name} is a subquery",
                code="E_UNSUPPORTED_QUERY",
                hint="join tables, and write conditions behind WHERE",
            )
    names = (own.columns[0].name, "tbname", *own.table.row_keys)
    rows = tuple(_column(own, name) for name in names)
    time = _column(other, other.columns[0].name)
    count = int(literal.name)
    if join.args.get("method") != "ASOF":
        return JoinLimit(count, rows, time)
    backwards = [_is_backwards(part, own, other) for part in _parts(join.args.get("on"))]
    known = [one for one in backwards if one is not None]
    if len(known) != 1:
        refuse(
            literal,
            "JLIMIT of an ASOF JOIN needs one condition on the times of both tables",
            code="E_UNSUPPORTED_QUERY",
            hint=f"write ON {own.name}.{names[0]} >= {other.name}.{time.name}",
        )
    alike = tuple(_alike(join.args["on"], own, other))
    return JoinLimit(count, rows, time, backwards=known[0], near=True, alike=alike)


def _column(relation: Relation, name: str) -> exp.Column:
    return exp.column(name, table=relation.name, quoted=True)


def _parts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the conditions that must all hold."""
    if isinstance(condition, exp.And):
        yield from _parts(condition.this)
        yield from _parts(condition.expression)
    elif isinstance(condition, exp.Paren):
        yield from _parts(condition.this)
    elif condition is not None:
        yield condition


def _is_backwards(part: exp.Expr, own: Relation, other: Relation) -> bool | None:
    """Tell if *part* lets rows of *other* be that are earlier than that of *own*; None: it is no
    condition on the times of both.
    """
    if not isinstance(part, (*_EARLIER, *_LATER)):
        return None
    if _is_time(part.this, own) and _is_time(part.expression, other):
        return isinstance(part, _EARLIER)
    if _is_time(part.this, other) and _is_time(part.expression, own):
        return isinstance(part, _LATER)
    return None


def _is_time(node: exp.Expr, relation: Relation) -> bool:
    if not isinstance(node, exp.Column) or not _is_of(node, relation):
        return False
    found = relation.find(node.name)
    return found is not None and found.name == relation.columns[0].name


def _is_of(column: exp.Column, relation: Relation) -> bool:
    """Tell if a bound column is of *relation*; the name of one without a table is of it alone."""
    if column.table:
        return relation.is_called(column.table)
    return relation.find(column.name) is not None


def _alike(condition: exp.Expr, own: Relation, other: Relation) -> Iterator[exp.Expr]:
    """Yield what rows of *other* are compared by with something of *own*."""
    for part in _parts(condition):
        if not isinstance(part, exp.EQ):
            continue
        for side, against in ((part.this, part.expression), (part.expression, part.this)):
            if _is_all_of(side, other) and _is_all_of(against, own):
                yield side.copy()
                break


def _is_all_of(node: exp.Expr, relation: Relation) -> bool:
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(_is_of(column, relation) for column in columns)
