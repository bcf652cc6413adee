"""A tree lowered to a plan. Each clause that a query may have is taken by name; any other is
refused, so that nothing of a tree goes on unseen.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.relational.bindings import binding_of
from penstock.sql.relational.query_plan import (
    NO_LIMITS,
    ComputedRows,
    Derived,
    Enclosed,
    Join,
    JoinLimit,
    PlannedQuery,
    QueryPlan,
    RowLimits,
    RowSource,
    Scan,
    SelectItem,
    SelectPlan,
    SetOperation,
)
from penstock.sql.relational.relations import Output, TableColumns
from penstock.sql.relational.series import series_order
from penstock.sql.relational.tag_rows import reads_tags

_TAIL = frozenset(("order", "limit", "offset"))
_CLAUSES = _TAIL | {
    "expressions",
    "from_",
    "joins",
    "where",
    "partition_by",
    "group",
    "having",
    "qualify",
    "distinct",
    "slimit",
    "soffset",
    # read before a query is bound: the windows of it that are open
    "open_windows",
}
_SETS: dict[type[exp.Expr], str] = {
    exp.Union: "UNION",
    exp.Except: "EXCEPT",
    exp.Intersect: "INTERSECT",
}
_COLUMNS = "columns"
_COMPUTED = "computed"
_LIMIT = "join_limit"


def note_columns(node: exp.Expr, columns: TableColumns | tuple[Output, ...]) -> None:
    """Say which columns a table or a subquery of FROM, or a set operation, has."""
    node.meta[_COLUMNS] = columns


def note_computed(node: exp.Table, rows: ComputedRows) -> None:
    """Say which computed rows a name of FROM means."""
    node.meta[_COMPUTED] = rows


def note_limit(node: exp.Join, limit: JoinLimit) -> None:
    """Say how many rows of the one side a join has for each of the other."""
    node.meta[_LIMIT] = limit


def lower(tree: exp.Query) -> QueryPlan:
    """Return the plan of *tree*, whose nodes become part of it: nobody else may have them.

    Raises:
        SqlSemanticError: it has what no query may have.
    """
    if isinstance(tree, exp.Subquery):
        return Enclosed(lower(tree.this), _order(tree), _limits(tree))
    if type(tree) in _SETS:
        return _lower_set(tree)
    if type(tree) is not exp.Select:
        raise _impossible(tree.key.upper())
    return lower_select(tree)


def _impossible(what: str) -> SqlSemanticError:
    return SqlSemanticError(
        f"{what} is not possible in a query",
        code="E_QUERY",
        hint="docs/sql-rows.md shows what a query may have",
    )


def _lower_set(tree: exp.Query) -> SetOperation:
    return SetOperation(
        _SETS[type(tree)],
        lower(tree.this),
        lower(tree.args["expression"]),
        every=not tree.args.get("distinct"),
        outputs=tree.meta.get(_COLUMNS, ()),
        order_by=_order(tree),
        limits=_limits(tree),
    )


def lower_select(tree: exp.Select) -> SelectPlan:
    """Return the plan of one SELECT."""
    for key, value in tree.args.items():
        if value and key not in _CLAUSES:
            raise _impossible(key.upper())
    partition = tree.args.get("partition_by")
    group = tree.args.get("group")
    return SelectPlan(
        tuple(map(_item, tree.expressions)),
        _sources(tree),
        _condition(tree, "where"),
        tuple(_expression(key.unalias()) for key in partition.expressions) if partition else (),
        tuple(map(_expression, group.expressions)) if group else (),
        _condition(tree, "having"),
        _condition(tree, "qualify"),
        _order(tree),
        _limits(tree),
        distinct=tree.args.get("distinct") is not None,
        series=series_order(tree),
        span=(tree.meta["start"], tree.meta["end"]) if "start" in tree.meta else None,
    )


def _item(node: exp.Expr) -> SelectItem:
    name = node.alias if isinstance(node, exp.Alias) else ""
    return SelectItem(_expression(node.unalias()), name, binding_of(node))


def _condition(tree: exp.Select, key: str) -> exp.Expr | None:
    clause = tree.args.get(key)
    return None if clause is None else _expression(clause.this)


def _order(tree: exp.Query) -> tuple[exp.Ordered, ...]:
    order = tree.args.get("order")
    items = order.expressions if order is not None else []
    return tuple(_order_item(item) for item in items)


def _order_item(item: exp.Expr) -> exp.Ordered:
    made = _expression(item)
    if not isinstance(made, exp.Ordered):
        raise _impossible("this ORDER BY")
    return made


def _limits(tree: exp.Query) -> RowLimits:
    args = tree.args
    counts = [args[key].expression if args.get(key) else None for key in ("limit", "offset")]
    counts += [args.get(key) for key in ("slimit", "soffset")]
    if not any(counts):
        return NO_LIMITS
    return RowLimits(*map(_count, counts))


def _count(node: object) -> exp.Literal | None:
    if node is not None and not isinstance(node, exp.Literal):
        raise _impossible("this LIMIT")
    return node


# ---------------------------------------------------------------- FROM


def _sources(tree: exp.Select) -> RowSource | None:
    first = tree.args.get("from_")
    if first is None:
        return None
    source = _source(first.this)
    for join in tree.args.get("joins") or []:
        source = _join(source, join)
    return source


def _source(node: object) -> RowSource:
    if isinstance(node, exp.Subquery):
        return _subquery(node)
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise _impossible("this table")
    alias = _alias(node)
    if node.args.get("catalog") is not None or (alias is not None and alias.args.get("columns")):
        raise _impossible("this table")
    computed: ComputedRows | None = node.meta.get(_COMPUTED)
    if computed is not None:
        return computed
    columns = node.meta.get(_COLUMNS)
    return Scan(
        node.name,
        node.db,
        alias.name if alias is not None else "",
        columns,
        of_tags=reads_tags(node),
    )


def _subquery(node: exp.Subquery) -> Derived:
    if any(node.args.get(key) for key in _TAIL):
        raise _impossible("an order behind a subquery of FROM")
    query = lower(node.this)
    alias = _alias(node)
    names = tuple(_name(n) for n in alias.args.get("columns") or []) if alias is not None else ()
    columns = node.meta.get(_COLUMNS, query.outputs)
    return Derived(query, alias.name if alias is not None else "", names, columns)


def _alias(node: exp.Expr) -> exp.TableAlias | None:
    alias = node.args.get("alias")
    if alias is not None and not (
        isinstance(alias, exp.TableAlias) and isinstance(alias.this, exp.Identifier)
    ):
        raise _impossible("this alias")
    return alias


def _name(node: object) -> str:
    if not isinstance(node, exp.Identifier):
        raise _impossible("this name")
    return str(node.this)


def _join(left: RowSource, node: exp.Join) -> Join:
    on = node.args.get("on")
    return Join(
        left,
        _source(node.this),
        node.args.get("method") or "",
        node.args.get("side") or "",
        node.args.get("kind") or "",
        None if on is None else _expression(on),
        tuple(map(_name, node.args.get("using") or [])),
        node.meta.get(_LIMIT),
    )


# ---------------------------------------------------------------- expressions


def _expression(node: exp.Expr) -> exp.Expr:
    """Return an expression with plans in place of its queries."""
    for part in list(node.walk(prune=lambda n: isinstance(n, exp.Query))):
        if isinstance(part, exp.Subquery):
            _lower_inside(part)
        elif isinstance(part, exp.Query):
            part.replace(PlannedQuery(plan=lower(part)))
    return node


def _lower_inside(node: exp.Subquery) -> None:
    """Put the plan of a query in parentheses into them."""
    inner = lower(node)
    assert isinstance(inner, Enclosed)
    plan = inner if inner.order_by or inner.limits else inner.query
    for key in _TAIL:
        node.set(key, None)
    node.set("this", PlannedQuery(plan=plan))
