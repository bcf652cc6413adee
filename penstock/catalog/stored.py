"""Names that columns and tags have in segments, and in what Redis holds of rows.

A stored name is given when a column is made and never changes. It is the column's own name, unless
that tag was renamed later or a column before it bore the name. Builds before this rule wrote the
name of the moment; such names are read, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from penstock.catalog.model import TableVersion

#: column → its names in segments: the one that is written, then those that earlier builds may have
#: written
StoredNames = Mapping[str, tuple[str, ...]]


def inherit_names(
    versions: Sequence[TableVersion], version: TableVersion
) -> tuple[tuple[str, str], ...]:
    """Return stored names of the columns of *version*, which follows *versions*, where they differ
    from their names.
    """
    before = _names_of(versions[-1])
    used = _all_names(versions)
    was = {new.lower(): old.lower() for old, new in version.renamed}
    differing: list[tuple[str, str]] = []
    for column in (*version.columns, *version.tags):
        low = column.name.lower()
        stored = before.get(was.get(low, low))
        if stored is None:
            stored = f"{column.name}#{version.schema_id}" if low in used else column.name
        if stored != column.name:
            differing.append((column.name, stored))
    return tuple(differing)


def _names_of(version: TableVersion) -> dict[str, str]:
    """Return the stored name of each column, by its own in lower case."""
    names = {c.name.lower(): c.name for c in (*version.columns, *version.tags)}
    stored = {name.lower(): held for name, held in version.stored}
    return {name: stored.get(name, own) for name, own in names.items()}


def _all_names(versions: Sequence[TableVersion]) -> set[str]:
    """Return every name, own or stored, that a column ever had, in lower case."""
    used = {c.name.lower() for v in versions for c in (*v.columns, *v.tags)}
    return used | {held.lower() for v in versions for _, held in v.stored}


def collect_names(versions: Sequence[TableVersion]) -> StoredNames:
    """Return stored names of all columns and tags of the last of *versions*."""
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
    """Return names that *name* had before builds that did not keep its stored name renamed it, the
    latest first.
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
    """Return stored values under the names that their columns bear now; a column without a value
    is left out.
    """
    found: dict[str, Any] = {}
    known = {name.lower() for name in names}
    for name, choices in names.items():
        source = next((n for n in choices if n in held), None)
        if source is not None:
            found[name] = held[source]
            known.add(source.lower())
    return found | {name: value for name, value in held.items() if name.lower() not in known}


def present_rows(names: StoredNames, rows: pl.DataFrame) -> pl.DataFrame:
    """Return stored *rows* with the names that their columns bear now; columns that are not there
    are left out.
    """
    if all(held == (name,) for name, held in names.items()):
        return rows
    import polars as pl

    there = set(rows.columns)
    renamed: list[pl.Expr] = []
    known = {name.lower() for name in names}
    for name, held in names.items():
        found = [n for n in held if n in there]
        if found:
            renamed.append(pl.coalesce(found).alias(name))
            known.update(map(str.lower, found))
    return rows.select(*(n for n in rows.columns if n.lower() not in known), *renamed)
