"""Virtual tables in a query: the rows of their origins, joined by time.

Owns the SQL of it: origins of one table with the same columns are read in one go, whoever they
belong to. Refuses to know what is live; `Relation` does that for each origin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import duckdb
import polars as pl

from penstock.rows import tag_values
from penstock.sql.plan import Column, Member, Origin
from services.store.relation import quote
from services.store.set_tags import as_shown

#: (table id, child tables or None for a plain one, running number) → SQL of the live rows
Rows = Callable[[int, Sequence[str], int], str | None]


def sql(
    con: duckdb.DuckDBPyConnection,
    prefix: str,
    columns: Sequence[tuple[str, str]],
    tags: Sequence[Column],
    members: Sequence[Member],
    rows: Rows,
) -> str:
    """A SELECT of `tbname`, the columns (name, DuckDB type; the first is the time) and the tags of
    all *members*.
    """
    time = quote(columns[0][0])
    width = len(columns) - len(tags)
    values = columns[1:width]
    parts = [_empty(columns[:width])]
    for number, (origins, owners) in enumerate(_groups(members)):
        found = rows(origins[0].table_id, sorted({table for table, _ in owners}), number)
        if found is None:
            continue
        name = f"{prefix}_map{number}"
        con.register(
            name, pl.DataFrame(owners, schema=["_origin", "_member"], orient="row").to_arrow()
        )
        listed = _origin_values(origins, [c for c, _ in values])
        parts.append(
            f"SELECT m._member AS tbname, r._penstock_ts AS {time}{listed} FROM ({found}) r"
            f" JOIN {name} m ON r.tbname = m._origin"
        )
    joined = "".join(f", CAST(any_value({quote(c)}) AS {t}) AS {quote(c)}" for c, t in values)
    both = (
        f"SELECT tbname, {time}{joined} FROM ({' UNION ALL '.join(parts)}) GROUP BY tbname, {time}"
    )
    if not tags:
        return both
    _register_tags(con, f"{prefix}_tags", tags, members)
    kinds = dict(columns)
    shown = ", ".join(
        f"{as_shown(f't.{quote(t.name)}', kinds[t.name])} AS {quote(t.name)}" for t in tags
    )
    return f"SELECT v.*, {shown} FROM ({both}) v JOIN {prefix}_tags t ON v.tbname = t._member"


def _origin_values(origins: Sequence[Origin], columns: Sequence[str]) -> str:
    """Return the part of a SELECT list that takes *columns* from an origin; the others are NULL."""
    taken = {o.column: o.source for o in origins}
    values = (f"r.{quote(taken[c])}" if c in taken else "NULL" for c in columns)
    return "".join(f", {value} AS {quote(c)}" for value, c in zip(values, columns, strict=True))


def _register_tags(
    con: duckdb.DuckDBPyConnection, name: str, tags: Sequence[Column], members: Sequence[Member]
) -> None:
    """Register the tags of all members as a relation."""
    made = [pl.Series("_member", [m.name for m in members], dtype=pl.String)]
    for i, tag in enumerate(tags):
        values = [m.tags[i] for m in members]
        made.append(tag_values.to_series(tag.name, tag.type, values))
    con.register(name, pl.DataFrame(made).to_arrow())


def _empty(columns: Sequence[tuple[str, str]]) -> str:
    """Return the SQL of no rows, with names and types."""
    return (
        "SELECT CAST(NULL AS VARCHAR) AS tbname,"
        f" {', '.join(f'CAST(NULL AS {t}) AS {quote(c)}' for c, t in columns)} WHERE false"
    )


def _groups(members: Sequence[Member]) -> list[tuple[list[Origin], list[tuple[str, str]]]]:
    """Group origins that one scan can serve, each with its (origin table, member) pairs."""
    found: dict[tuple[int, tuple[tuple[str, str], ...]], list[tuple[str, str]]] = defaultdict(list)
    origins: dict[tuple[int, tuple[tuple[str, str], ...]], list[Origin]] = {}
    for member in members:
        by_table: dict[tuple[int, str], list[Origin]] = defaultdict(list)
        for origin in member.origins:
            by_table[origin.table_id, origin.table].append(origin)
        for (table_id, table), mine in by_table.items():
            key = (table_id, tuple((o.column, o.source) for o in mine))
            found[key].append((table, member.name))
            origins[key] = mine
    return [(origins[key], pairs) for key, pairs in found.items()]
