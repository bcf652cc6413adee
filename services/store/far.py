"""External streams in a SELECT: rows that are fetched from other deployments, as few as will do.

A query over one deployment alone goes there whole: its filter, projection, aggregates and windows are computed where the rows are. In any
other query the columns that it names and the conditions that concern only that table go along, and the rest happens here.
Refused: `_tp_append_time`, which only a live row has.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
from sqlglot import exp

from penstock.catalog.model import External, Table, TableVersion
from penstock.catalog.reader import CatalogReader
from penstock.link import external
from penstock.link.client import Links
from penstock.sql.dialect import to_sql

#: virtual columns: where in the other side's log a row stands
_PLACES = {"_tp_sn": pa.int64(), "_tp_shard": pa.int32()}
_KINDS_THAT_KEEP = ("", "INNER", "CROSS")


class Far:
    """Thread-safe. Passwords come from the deployment's secret files, once for each question."""

    def __init__(self, catalog: CatalogReader, data_dir: Path, allowed: tuple[str, ...]) -> None:
        """*allowed*: hosts that may be asked, as `external_allow` has them."""
        self._reader, self._data_dir, self._allowed = catalog, data_dir, allowed
        self._links = Links()
        self._threads = ThreadPoolExecutor(8, "far")

    def find(self, database: str, name: str) -> External | None:
        """The external stream *name*, or the one that a view of this name writes."""
        catalog = self._reader.catalog
        found = catalog.external(database, name)
        if found is None and (view := catalog.view(database, name)) is not None:
            target = catalog.by_id(view.target_id)
            found = target if isinstance(target, External) else None
        return found

    def whole(self, tree: exp.Query, database: str, timezone: str) -> pa.Table | None:
        """The answer of the one deployment that all tables of the query are of; None where there is no such one."""
        nodes = list(tree.find_all(exp.Table))
        entries = [self.find(n.db or database, n.name) for n in nodes]
        first = entries[0] if entries else None
        if first is None or len(first.shards) > 1:
            return None
        if any(e is None or (e.shards, e.user, e.secure) != (first.shards, first.user, first.secure) for e in entries):
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
        (replicas,) = external.addresses(first, self._data_dir, self._allowed)
        return self._links.query(replicas, to_sql(tree), first.remote_database, timezone)

    def rows(self, entry: External, columns: Sequence[str], conditions: Sequence[exp.Expr], timezone: str) -> pa.Table:
        """`tbname` and the columns of the rows of every shard that meet the conditions; times without a zone, as DuckDB has them."""
        listed = ", ".join(["tbname", *(_quote(c) for c in columns)])
        sql = f"SELECT {listed} FROM {_quote(entry.remote_database)}.{_quote(entry.remote_name)}"
        if conditions:
            sql += " WHERE " + " AND ".join(f"({to_sql(_unqualified(c))})" for c in conditions)
        shards = external.addresses(entry, self._data_dir, self._allowed)
        parts = self._threads.map(lambda replicas: self._links.query(replicas, sql, entry.remote_database, timezone), shards)
        kinds = _PLACES | {c.name: c.type.arrow(entry.precision) for c in (*entry.columns, *entry.tags)}
        wanted = [("tbname", pa.string()), *((c, _naive(kinds[c])) for c in columns)]
        return pa.concat_tables([part.cast(pa.schema(wanted)) for part in parts])

    def close(self) -> None:
        self._links.close()


def as_table(entry: External) -> Table:
    """An external stream as a table of nowhere: its names and types."""
    version = TableVersion(0, entry.columns, entry.tags)
    kind = "stable" if entry.tags else "plain"
    return Table(entry.id, entry.database, entry.name, kind, "", 0, entry.precision, (version,), entry.key_column)  # type: ignore[arg-type]


def needed(entry: External, tree: exp.Query, node: exp.Table) -> tuple[list[str], list[exp.Expr]]:
    """Columns of *entry* that the query may read, and conditions of its SELECT that concern nothing else."""
    select = node.find_ancestor(exp.Select)
    every = [c.name for c in (*entry.columns, *entry.tags)]
    if select is None:
        return every, []
    named = {c.name.lower() for c in tree.find_all(exp.Column) if not isinstance(c.this, exp.Star)}
    named |= {i.name.lower() for j in tree.find_all(exp.Join) for i in j.args.get("using") or []}
    stars = any(
        isinstance(e.unalias(), exp.Star) or (isinstance(e, exp.Column) and isinstance(e.this, exp.Star)) for e in select.expressions
    )
    stars = stars or any(
        isinstance(c.parent, exp.Anonymous) for c in select.find_all(exp.Star) if c.parent and c.parent.name.lower() != "count"
    )
    columns = every if stars else [c for c in every if c.lower() in named or c == entry.time_column]
    return columns, _conditions(select, node, {c.lower() for c in every})


def _expand_stars(select: exp.Select, entry: External) -> None:
    """`*` means the columns that are known here, whatever was added over there."""
    every = [exp.column(c.name) for c in (*entry.columns, *entry.tags)]
    items = [[c.copy() for c in every] if isinstance(e, exp.Star) else [e] for e in select.expressions]
    select.set("expressions", [e for some in items for e in some])


def _conditions(select: exp.Select, node: exp.Table, columns: set[str]) -> list[exp.Expr]:
    joins = select.args.get("joins") or []
    outer = any(j.args.get("side") or str(j.args.get("kind") or "") not in _KINDS_THAT_KEEP or j.args.get("method") for j in joins)
    where = select.args.get("where")
    if where is None or outer:
        return []
    alias, alone = node.alias_or_name.lower(), not joins
    found = []
    for part in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        named = list(part.find_all(exp.Column))
        mine = all(c.table.lower() == alias if c.table else alone for c in named)
        known = all(c.name.lower() in columns or c.name.lower() in ("tbname", "_tp_time") for c in named)
        if named and mine and known and not any(isinstance(n, exp.Subquery | exp.Exists | exp.Select) for n in part.walk()):
            found.append(part)
    return found


def _unqualified(node: exp.Expr) -> exp.Expr:
    def plain(n: exp.Expr) -> exp.Expr:
        if isinstance(n, exp.Column) and n.table:
            n.set("table", None)
        return n

    return node.copy().transform(plain, copy=False)


def _naive(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
