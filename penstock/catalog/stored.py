"""Names that columns and tags have in segments, and in what Redis holds of rows.

A stored name is given when a column is made and never changes. It is the column's own name, unless
that tag was renamed later or a column before it bore the name. Builds before this rule wrote the
name of the moment; such names are read, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from penstock.catalog.model import TableVersion

#: column → its names in segments: the one that is written, then those that earlier builds may have
#: written
StoredNames = Mapping[str, tuple[str, ...]]


def carried(versions: Sequence[TableVersion], version: TableVersion) -> tuple[tuple[str, str], ...]:
    """Stored names of the columns of *version*, which follows *versions*, where they differ from
    their names.
    """
    before = versions[-1]
    there = {c.name.lower(): c.name for c in (*before.columns, *before.tags)}
    kept = {name.lower(): held for name, held in before.stored}
    used = {c.name.lower() for v in versions for c in (*v.columns, *v.tags)}
    used |= {held.lower() for v in versions for _, held in v.stored}
    was = {new.lower(): old.lower() for old, new in version.renamed}
    made: list[tuple[str, str]] = []
    for column in (*version.columns, *version.tags):
        low = column.name.lower()
        old = was.get(low, low)
        if old in there:
            held = kept.get(old, there[old])
        else:
            held = f"{column.name}#{version.schema_id}" if low in used else column.name
        if held != column.name:
            made.append((column.name, held))
    return tuple(made)


def stored_names(versions: Sequence[TableVersion]) -> StoredNames:
    """Stored names of all columns and tags of the last of *versions*."""
    newest = versions[-1]
    kept = dict(newest.stored)
    fields = [c.name for c in (*newest.columns, *newest.tags)]
    taken = {kept.get(name, name).lower() for name in fields}
    found: dict[str, tuple[str, ...]] = {}
    for name in fields:
        earlier = [n for n in _earlier(versions, name) if n.lower() not in taken]
        found[name] = (kept.get(name, name), *earlier)
    return found


def _earlier(versions: Sequence[TableVersion], name: str) -> list[str]:
    """Names that *name* had before builds that did not keep its stored name renamed it, the latest
    first.
    """
    found: list[str] = []
    for before, after in zip(reversed(versions[:-1]), reversed(versions), strict=False):
        low = name.lower()
        old = next((old for old, new in after.renamed if new.lower() == low), None)
        if old is not None:
            if all(new.lower() != low for new, _ in after.stored):
                found.append(old)
            name = old
        if all(c.name.lower() != name.lower() for c in (*before.columns, *before.tags)):
            break
    return found


def written(names: StoredNames) -> dict[str, str]:
    """Column → the name to write, where the two differ."""
    return {name: held[0] for name, held in names.items() if held[0] != name}


def present(names: StoredNames, held: Mapping[str, Any]) -> dict[str, Any]:
    """Stored values under the names that their columns bear now; a column without a value is left
    out.
    """
    sources = {
        name: next((n for n in choices if n in held), None) for name, choices in names.items()
    }
    found = {name: held[source] for name, source in sources.items() if source is not None}
    known = {n.lower() for n in (*names, *(s for s in sources.values() if s is not None))}
    return found | {name: value for name, value in held.items() if name.lower() not in known}


def present_rows(names: StoredNames, rows: pl.DataFrame) -> pl.DataFrame:
    """Stored *rows* with the names that their columns bear now; columns that are not there are left
    out.
    """
    if all(held == (name,) for name, held in names.items()):
        return rows
    there = set(rows.columns)
    sources = {name: [n for n in held if n in there] for name, held in names.items()}
    made = [pl.coalesce(found).alias(name) for name, found in sources.items() if found]
    known = {n.lower() for n in (*names, *(n for found in sources.values() for n in found))}
    return rows.select(*(n for n in rows.columns if n.lower() not in known), *made)
