"""What a plan reads of a table, in words: its columns, and what is left out before it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from sqlglot import exp

from penstock.sql.plan import Precision
from penstock.sql.relational import (
    ComputedRows,
    Derived,
    Join,
    QueryPlan,
    RowSource,
    Scan,
    SelectPlan,
    expressions_of,
    joins_of,
    queries_inside,
)
from services.store.plans import Reading
from services.store.scope import ReadScope

#: most names that a line lists
_MOST_NAMES = 20
#: ticks that a calendar is known for
_FAR = 1 << 62


def describe_scan(scan: Scan, reading: Reading, read: frozenset[str] | None) -> str:
    """Return what is read of a table.

    Args:
        read: names of the columns that the query has, in lower case; None: it reads all.
    """
    found = reading.found
    table = found.table
    name = f"{table.database}.{table.name}"
    if scan.name.lower() != table.name.lower():
        name += f" AS {scan.name}"
    columns = [c.name for c in (*table.columns, *table.tags)]
    listed = ["tbname", *columns]
    if read is not None:
        listed = [column for column in listed if column.lower() in read]
    parts = [f"columns {_list(listed)}" if listed else "no columns"]
    scope = reading.scope() if found.child is None else reading.scope().among([found.child])
    if scope.tables is not None:
        parts.append(f"child tables {_list(sorted(scope.tables)) or 'none'}")
    times = _times(scope, table.precision)
    return f"scan {name}: {'; '.join([*parts, *times])}"


def describe_tags(scan: Scan) -> str:
    """Return what is read of a table whose child tables are meant."""
    known = scan.columns
    name = f"{known.database}.{scan.table}" if known is not None else scan.table
    if scan.name.lower() != scan.table.lower():
        name += f" AS {scan.name}"
    return f"list the child tables of {name} with their tags"


def _list(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown


def _times(scope: ReadScope, precision: Precision) -> list[str]:
    """Return the range of times; a scope has a tick more at each end, for times between ticks."""
    words = []
    if scope.low is not None:
        words.append(f"from {_moment(scope.low + 1, precision)}")
    if scope.high is not None:
        words.append(f"to {_moment(scope.high - 1, precision)}")
    return [f"times {' '.join(words)}"] if words else []


def _moment(ticks: int, precision: Precision) -> str:
    if abs(ticks) > _FAR:
        return str(ticks)
    return f"{np.datetime64(ticks, precision)}Z"


# ---------------------------------------------------------------- columns


def names_read(select: SelectPlan) -> Mapping[str, frozenset[str]]:
    """Return the names, in lower case, that *select* has for columns of each of its tables."""
    if select.source is None:
        return {}
    return {scan.name: frozenset(_names_of(select, scan)) for scan in _scans(select.source)}


def _scans(source: RowSource) -> list[Scan]:
    if isinstance(source, Scan):
        return [source]
    return [*_scans(source.left), *_scans(source.right)] if isinstance(source, Join) else []


def _names_of(select: SelectPlan, scan: Scan) -> set[str]:
    names = _names_in(select, scan, own=True)
    names |= {name.lower() for join in joins_of(select.source) for name in join.using}
    if select.series is not None:
        names.add(select.series.time.lower())
    return names


def _names_in(plan: QueryPlan, scan: Scan, *, own: bool) -> set[str]:
    """Return the names of columns in *plan* that may be those of *scan*.

    Args:
        own: the plan reads the table itself; else it stands inside such a plan, and names without
            a table in front mean its own columns first.
    """
    columns = [c for node in expressions_of(plan) for c in node.find_all(exp.Column)]
    names = {c.name.lower() for c in columns if c.table.lower() == scan.name.lower()}
    plain = {c.name.lower() for c in columns if not c.table}
    names |= plain if own else plain - _names_from(plan)
    for inner in queries_inside(plan):
        names |= _names_in(inner, scan, own=False)
    return names


def _names_from(plan: QueryPlan) -> set[str]:
    """Return the names of the columns that FROM of *plan* gives."""
    source = plan.source if isinstance(plan, SelectPlan) else None
    return set() if source is None else _given(source)


def _given(source: RowSource) -> set[str]:
    if isinstance(source, Scan):
        return {name.lower() for name in _column_names(source)}
    if isinstance(source, Derived):
        return {output.name.lower() for output in source.columns}
    if isinstance(source, ComputedRows):
        return {output.name.lower() for output in source.columns.columns}
    return _given(source.left) | _given(source.right)


def _column_names(scan: Scan) -> list[str]:
    known = scan.columns
    names = [] if known is None else [column.name for column in known.columns]
    return [*names, "tbname"]
