"""Pushing parts of a query down to another deployment, where the rows of an external stream are.

A query over one deployment alone goes there whole: its filter, projection, aggregates and windows.
In any other query the columns that it names and the conditions that concern only that table go
along, and the rest happens here. Pure: nothing is asked of anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from penstock.catalog.model import External
from penstock.catalog.view import Catalog
from penstock.sql.dialect import to_sql
from penstock.sql.relational import QueryPlan, Scan, SelectPlan, column_names, joins_of
from penstock.sql.words import in_backticks

#: virtual columns: where in the other side's log a row stands
_PLACES = {"_tp_sn", "_tp_shard"}
_KINDS_THAT_KEEP = ("", "INNER", "CROSS")
#: what is read of a table from here
LOCAL = "segments and the log's tail"


def find(catalog: Catalog, database: str, name: str) -> External | None:
    """Find the external stream *name*, or the one that a view of this name writes."""
    found = catalog.external(database, name)
    if found is None and (view := catalog.view(database, name)) is not None:
        target = catalog.by_id(view.target_id)
        found = target if isinstance(target, External) else None
    return found


def whole(
    tree: exp.Query, database: str, look: Callable[[str, str], External | None]
) -> tuple[External, str] | None:
    """Return an external stream of the one deployment that all tables of the query are of, and the
    query as it is put there; else None.

    Args:
        look: database, name → the external stream of that name, if it is one.
    """
    nodes = list(tree.find_all(exp.Table))
    entries = [look(n.db or database, n.name) for n in nodes]
    first = entries[0] if entries else None
    if first is None or len(first.shards) > 1 or not all(_is_beside(e, first) for e in entries):
        return None
    tree = tree.copy()
    for node, entry in zip(list(tree.find_all(exp.Table)), entries, strict=True):
        assert entry is not None
        if not node.args.get("alias"):
            node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
        select = node.find_ancestor(exp.Select)
        if select is not None and not select.args.get("joins"):
            _expand_stars(select, entry)
        node.set("db", exp.to_identifier(entry.remote_database))
        node.set("this", exp.to_identifier(entry.remote_name))
    return first, to_sql(tree)


def _is_beside(entry: External | None, other: External) -> bool:
    """Tell whether both are of one deployment, asked by the same user."""
    if entry is None:
        return False
    return (entry.shards, entry.user, entry.secure) == (other.shards, other.user, other.secure)


def rows(entry: External, columns: Sequence[str], conditions: Sequence[exp.Expr]) -> str:
    """Return the query for `tbname` and *columns* of the rows of each shard that meet the
    *conditions*.
    """
    listed = ", ".join(["tbname", *(in_backticks(c) for c in columns)])
    sql = (
        f"SELECT {listed} FROM"
        f" {in_backticks(entry.remote_database)}.{in_backticks(entry.remote_name)}"
    )
    if not conditions:
        return sql
    return sql + " WHERE " + " AND ".join(f"({to_sql(_drop_qualifiers(c))})" for c in conditions)


def explain(
    tree: exp.Query, database: str, look: Callable[[str, str], External | None]
) -> list[tuple[str, str]]:
    """Return EXPLAIN's lines about a query that reads external streams: where it runs, and what is
    asked of whom; none without any.

    Args:
        look: as for `whole`.
    """
    nodes = list(tree.find_all(exp.Table))
    found = [(n, entry) for n in nodes if (entry := look(n.db or database, n.name)) is not None]
    if not found:
        return []
    sent = whole(tree, database, look)
    if sent is not None:
        return [("runs in", f"the deployment at {_hosts(sent[0])}"), ("pushed down", sent[1])]
    lines = [("runs in", "store")]
    if len(found) < len(nodes):
        lines.append(("reads", LOCAL))
    for node, entry in found:
        lines += [
            ("reads", f"{entry.database}.{entry.name} at {_hosts(entry)}"),
            ("pushed down", _rows_for(entry, tree, node)),
        ]
    return lines


def _rows_for(entry: External, tree: exp.Query, node: exp.Table) -> str:
    """Return the query for the rows of one table of *tree*."""
    select = node.find_ancestor(exp.Select)
    every = [c.name for c in (*entry.columns, *entry.tags)]
    columns = every
    conditions: list[exp.Expr] = []
    # the windows of several shards are cut here, from all of their rows
    if select is None or select.args.get("window") is None:
        columns, conditions = find_needs(entry, tree, node)
    named = {c.name.lower() for c in tree.find_all(exp.Column)}
    places = named & _PLACES - {c.lower() for c in every}
    return rows(entry, [*columns, *sorted(places)], conditions)


def _hosts(entry: External) -> str:
    return ", ".join("|".join(shard) for shard in entry.shards)


def find_needs(
    entry: External, tree: exp.Query, node: exp.Table
) -> tuple[list[str], list[exp.Expr]]:
    """Find the columns of *entry* that the query may read, and the conditions of its SELECT that
    concern nothing else.
    """
    select = node.find_ancestor(exp.Select)
    every = [c.name for c in (*entry.columns, *entry.tags)]
    if select is None:
        return every, []
    columns = every
    if not _selects_star(select) and not _calls_with_star(select):
        # functions of a row and the rows before it go by the time and the key
        own = (entry.time_column, entry.key_column)
        named = _column_names(tree)
        columns = [c for c in every if c.lower() in named or c in own]
    return columns, _conditions(select, node, {c.lower() for c in every})


def _column_names(tree: exp.Query) -> set[str]:
    """Return every column's name in *tree*, in lower case."""
    named = {c.name.lower() for c in tree.find_all(exp.Column) if not isinstance(c.this, exp.Star)}
    joins = tree.find_all(exp.Join)
    return named | {i.name.lower() for j in joins for i in j.args.get("using") or []}


def _selects_star(select: exp.Select) -> bool:
    return any(
        isinstance(e.unalias(), exp.Star)
        or (isinstance(e, exp.Column) and isinstance(e.this, exp.Star))
        for e in select.expressions
    )


def _calls_with_star(select: exp.Select) -> bool:
    """Tell whether `*` is an argument of a function that is not COUNT."""
    parents = [star.parent for star in select.find_all(exp.Star)]
    return any(isinstance(p, exp.Anonymous) and p.name.lower() != "count" for p in parents)


def _expand_stars(select: exp.Select, entry: External) -> None:
    """`*` means the columns that are known here, whatever was added over there."""
    columns = () if select.args.get("tags") else entry.columns
    every = [exp.column(c.name) for c in (*columns, *entry.tags)]
    items = [
        [c.copy() for c in every] if isinstance(e, exp.Star) else [e] for e in select.expressions
    ]
    select.set("expressions", [e for some in items for e in some])


def _conditions(select: exp.Select, node: exp.Table, columns: set[str]) -> list[exp.Expr]:
    """Find the conditions of WHERE that concern only the table *node* and its *columns*."""
    joins = select.args.get("joins") or []
    where = select.args.get("where")
    words = [tuple(str(j.args.get(k) or "") for k in ("method", "side", "kind")) for j in joins]
    if where is None or not all(_keeps_conditions(*each) for each in words):
        return []
    return _concerning(where.this, node.alias_or_name, columns, alone=not joins)


def _concerning(where: exp.Expr, name: str, columns: set[str], *, alone: bool) -> list[exp.Expr]:
    """Return the parts of a condition that concern only *columns* of the table called *name*."""
    parts = where.flatten() if isinstance(where, exp.And) else [where]
    known = {*columns, "tbname", "_tp_time"}
    return [part for part in parts if _concerns(part, name.lower(), known, alone=alone)]


def _keeps_conditions(method: str, side: str, kind: str) -> bool:
    """Tell whether a condition may be met before a join of these words as well as behind it."""
    return not side and not method and kind in _KINDS_THAT_KEEP


def find_needs_of_plan(
    entry: External, plan: QueryPlan, select: SelectPlan, scan: Scan
) -> tuple[list[str], list[exp.Expr]]:
    """Find what `find_needs` does for the table *scan* of *select*, in a plan: there `*` is written
    out.
    """
    every = [c.name for c in (*entry.columns, *entry.tags)]
    # functions of a row and the rows before it go by the time and the key
    own = (entry.time_column, entry.key_column)
    named = column_names(plan)
    columns = [c for c in every if c.lower() in named or c in own]
    joins = list(joins_of(select.source))
    if select.where is None or not all(_keeps_conditions(j.method, j.side, j.kind) for j in joins):
        return columns, []
    known = {c.lower() for c in every}
    return columns, _concerning(select.where, scan.name, known, alone=not joins)


def _concerns(part: exp.Expr, alias: str, known: set[str], *, alone: bool) -> bool:
    """Tell whether *part* reads nothing but *known* columns of the table called *alias*.

    Args:
        alone: it is the only table, so columns need not name it.
    """
    named = list(part.find_all(exp.Column))
    if not named or part.find(exp.Subquery, exp.Exists, exp.Select) is not None:
        return False
    mine = all(c.table.lower() == alias if c.table else alone for c in named)
    return mine and all(c.name.lower() in known for c in named)


def _drop_qualifiers(node: exp.Expr) -> exp.Expr:
    def plain(n: exp.Expr) -> exp.Expr:
        if isinstance(n, exp.Column) and n.table:
            n.set("table", None)
        return n

    return node.copy().transform(plain, copy=False)
