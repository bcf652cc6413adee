"""What of a query is computed in another deployment, where the rows of an external stream are.

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
from penstock.sql.words import in_backticks

#: virtual columns: where in the other side's log a row stands
_PLACES = {"_tp_sn", "_tp_shard"}
_KINDS_THAT_KEEP = ("", "INNER", "CROSS")
#: what is read of a table from here
LOCAL = "segments and the log's tail"


def find(catalog: Catalog, database: str, name: str) -> External | None:
    """The external stream *name*, or the one that a view of this name writes."""
    found = catalog.external(database, name)
    if found is None and (view := catalog.view(database, name)) is not None:
        target = catalog.by_id(view.target_id)
        found = target if isinstance(target, External) else None
    return found


def whole(
    tree: exp.Query, database: str, look: Callable[[str, str], External | None]
) -> tuple[External, str] | None:
    """An external stream of the one deployment that all tables of the query are of, and the query
    as it is put there; else None.

    Args:
        look: database, name → the external stream of that name, if it is one.
    """
    nodes = list(tree.find_all(exp.Table))
    entries = [look(n.db or database, n.name) for n in nodes]
    first = entries[0] if entries else None
    if first is None or len(first.shards) > 1:
        return None
    if any(
        e is None or (e.shards, e.user, e.secure) != (first.shards, first.user, first.secure)
        for e in entries
    ):
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


def rows(entry: External, columns: Sequence[str], conditions: Sequence[exp.Expr]) -> str:
    """The query for `tbname` and *columns* of the rows of each shard that meet the *conditions*."""
    listed = ", ".join(["tbname", *(in_backticks(c) for c in columns)])
    sql = (
        f"SELECT {listed} FROM"
        f" {in_backticks(entry.remote_database)}.{in_backticks(entry.remote_name)}"
    )
    return sql + (
        " WHERE " + " AND ".join(f"({to_sql(_unqualified(c))})" for c in conditions)
        if conditions
        else ""
    )


def shown(
    tree: exp.Query, database: str, look: Callable[[str, str], External | None]
) -> list[tuple[str, str]]:
    """EXPLAIN's lines about a query that reads external streams: where it runs, and what is asked
    of whom; none without any.

    Args:
        look: as for `whole`.
    """
    nodes = list(tree.find_all(exp.Table))
    found = [
        (node, entry)
        for node in nodes
        if (entry := look(node.db or database, node.name)) is not None
    ]
    if (sent := whole(tree, database, look)) is not None:
        return [("runs in", f"the deployment at {_hosts(sent[0])}"), ("pushed down", sent[1])]
    lines = (
        [("runs in", "store"), *([("reads", LOCAL)] if len(found) < len(nodes) else [])]
        if found
        else []
    )
    for node, entry in found:
        select = node.find_ancestor(exp.Select)
        every = [c.name for c in (*entry.columns, *entry.tags)]
        # the windows of several shards are cut here, from all of their rows
        here = select is not None and select.args.get("window") is not None
        columns, conditions = (every, []) if here else needed(entry, tree, node)
        places = sorted(
            {c.name.lower() for c in tree.find_all(exp.Column)}
            & _PLACES - {c.lower() for c in every}
        )
        lines += [
            ("reads", f"{entry.database}.{entry.name} at {_hosts(entry)}"),
            ("pushed down", rows(entry, [*columns, *places], conditions)),
        ]
    return lines


def _hosts(entry: External) -> str:
    return ", ".join("|".join(shard) for shard in entry.shards)


def needed(entry: External, tree: exp.Query, node: exp.Table) -> tuple[list[str], list[exp.Expr]]:
    """Columns of *entry* that the query may read, and conditions of its SELECT that concern nothing
    else.
    """
    select = node.find_ancestor(exp.Select)
    every = [c.name for c in (*entry.columns, *entry.tags)]
    if select is None:
        return every, []
    named = {c.name.lower() for c in tree.find_all(exp.Column) if not isinstance(c.this, exp.Star)}
    named |= {i.name.lower() for j in tree.find_all(exp.Join) for i in j.args.get("using") or []}
    stars = any(
        isinstance(e.unalias(), exp.Star)
        or (isinstance(e, exp.Column) and isinstance(e.this, exp.Star))
        for e in select.expressions
    )
    stars = stars or any(
        isinstance(c.parent, exp.Anonymous)
        for c in select.find_all(exp.Star)
        if c.parent and c.parent.name.lower() != "count"
    )
    columns = every if stars else [c for c in every if c.lower() in named or c == entry.time_column]
    return columns, _conditions(select, node, {c.lower() for c in every})


def _expand_stars(select: exp.Select, entry: External) -> None:
    """`*` means the columns that are known here, whatever was added over there."""
    every = [exp.column(c.name) for c in (*entry.columns, *entry.tags)]
    items = [
        [c.copy() for c in every] if isinstance(e, exp.Star) else [e] for e in select.expressions
    ]
    select.set("expressions", [e for some in items for e in some])


def _conditions(select: exp.Select, node: exp.Table, columns: set[str]) -> list[exp.Expr]:
    joins = select.args.get("joins") or []
    outer = any(
        j.args.get("side")
        or str(j.args.get("kind") or "") not in _KINDS_THAT_KEEP
        or j.args.get("method")
        for j in joins
    )
    where = select.args.get("where")
    if where is None or outer:
        return []
    alias = node.alias_or_name.lower()
    alone = not joins
    found = []
    for part in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        named = list(part.find_all(exp.Column))
        mine = all(c.table.lower() == alias if c.table else alone for c in named)
        known = all(
            c.name.lower() in columns or c.name.lower() in ("tbname", "_tp_time") for c in named
        )
        if (
            named
            and mine
            and known
            and not any(isinstance(n, exp.Subquery | exp.Exists | exp.Select) for n in part.walk())
        ):
            found.append(part)
    return found


def _unqualified(node: exp.Expr) -> exp.Expr:
    def plain(n: exp.Expr) -> exp.Expr:
        if isinstance(n, exp.Column) and n.table:
            n.set("table", None)
        return n

    return node.copy().transform(plain, copy=False)
