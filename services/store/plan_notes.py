"""What EXPLAIN knows of a query besides its plan: what its relations stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from penstock.sql.dialect import to_sql
from penstock.sql.relational import QueryPlan, RowSource
from services.store.interp import Interpolated
from services.store.plans import Reading
from services.store.window_select import SplitSelect, column_name
from services.store.windowed import Windows


@dataclass(frozen=True)
class ComputedRows:
    """Rows that are computed: windows, or values at points in time.

    Args:
        steps: how, in words, the last step first.
        source: what they are computed from.
        where: which of these rows are left out.
        meanings: their columns, each with the expression that it holds.
        partition_by: of what partitions they are.
        read: names of the columns that are read of a table, in lower case; None: all are.
    """

    steps: tuple[str, ...]
    source: RowSource
    where: exp.Expr | None
    meanings: Mapping[str, exp.Expr]
    partition_by: tuple[exp.Expr, ...]
    read: frozenset[str] | None


@dataclass(frozen=True)
class PlanNotes:
    """The relations that a query reads, by their names: rows of tables, of queries inside it, and
    rows that are computed before DuckDB is asked for the rest.
    """

    tables: Mapping[str, Reading]
    queries: Mapping[str, QueryPlan]
    computed: Mapping[str, ComputedRows]


def note_windows(select: exp.Select, windows: Windows) -> ComputedRows:
    """Describe the computed windows of *select*."""
    engine = "the kernels of streams" if windows.by_kernels else "DuckDB"
    partition_by = _partition_by(select)
    each = f" of each {_list(partition_by)}" if partition_by else ""
    fill = select.args.get("fill")
    filled = (to_sql(fill),) if fill is not None else ()
    step = f"windows of {to_sql(select.args['window'])}{each}, computed by {engine}"
    meanings = _meanings_of(windows.select)
    meanings.setdefault(windows.start, exp.column("_wstart"))
    where = select.args.get("where")
    return ComputedRows(
        (*filled, step),
        windows.source,
        where.this if where is not None else None,
        meanings,
        partition_by,
        _names_read(select, windows),
    )


def note_points(select: exp.Select, points: Interpolated) -> ComputedRows:
    """Describe the values between rows of *select*, which has RANGE."""
    partition_by = _partition_by(select)
    each = f" of each {_list(partition_by)}" if partition_by else ""
    fill = select.args.get("fill")
    filled = f" {to_sql(fill)}" if fill is not None else ""
    step = f"values between rows{each} at {to_sql(select.args['range'])}{filled}"
    return ComputedRows((step,), points.source, None, points.meanings, partition_by, None)


def _meanings_of(split: SplitSelect) -> dict[str, exp.Expr]:
    """Return what the columns of the inner select, and late aggregates, stand for."""
    listed = enumerate(split.inner.expressions)
    found = {column_name(position): item.unalias() for position, item in listed}
    found |= {
        late.name if late.place is None else column_name(late.place): late.call
        for late in split.late
    }
    return found


def _names_read(select: exp.Select, windows: Windows) -> frozenset[str] | None:
    if windows.by_kernels:
        return None
    named = {column.name.lower() for column in select.find_all(exp.Column)}
    return frozenset({windows.source.time.lower(), *named})


def _partition_by(select: exp.Select) -> tuple[exp.Expr, ...]:
    clause = select.args.get("partition_by")
    return tuple(key.unalias() for key in clause.expressions) if clause is not None else ()


def _list(items: tuple[exp.Expr, ...]) -> str:
    return ", ".join(map(to_sql, items))
