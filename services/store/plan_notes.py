"""What EXPLAIN knows of a query besides its plan: what its relations stand for, and who computes
them. And how computed rows are told of in a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from penstock.sql.relational import ComputedRows
from services.store.interp import BoundPoints
from services.store.plans import Reading
from services.store.window_select import SplitSelect, column_name
from services.store.windowed import BoundWindows

#: who computes rows
DUCKDB = "DuckDB"
KERNELS = "the kernels of streams"
STORE = "the store"


@dataclass(frozen=True)
class RowEngine:
    """Who computes rows. `read` are the names of the columns that are read of a table for them, in
    lower case; None: all are.
    """

    name: str
    read: frozenset[str] | None = None


@dataclass(frozen=True)
class PlanNotes:
    """The relations that a query reads, by their names: rows of tables, and computed rows with
    who computes them.
    """

    tables: Mapping[str, Reading]
    computed: Mapping[str, RowEngine]


def describe_windows(bound: BoundWindows, relation: str) -> ComputedRows:
    """Return what windows are in a plan."""
    select = bound.select
    where = select.args.get("where")
    meanings = _meanings_of(bound.parts)
    meanings.setdefault(bound.start, exp.column("_wstart"))
    return ComputedRows(
        relation,
        select.args["window"],
        bound.source.origin.node,
        where.this if where is not None else None,
        _partition_by(select),
        select.args.get("fill"),
        bound.columns,
        meanings,
    )


def describe_points(select: exp.Select, bound: BoundPoints, relation: str) -> ComputedRows:
    """Return what the values between rows of *select*, which has RANGE, are in a plan."""
    return ComputedRows(
        relation,
        select.args["range"],
        bound.source,
        None,
        _partition_by(select),
        select.args.get("fill"),
        bound.columns,
        bound.meanings,
    )


def names_read(bound: BoundWindows) -> frozenset[str]:
    """Return the names of the columns that DuckDB reads to compute windows."""
    named = {column.name.lower() for column in bound.select.find_all(exp.Column)}
    return frozenset({bound.source.time_column.lower(), *named})


def _meanings_of(split: SplitSelect) -> dict[str, exp.Expr]:
    """Return what the columns of the inner select, and late aggregates, stand for."""
    listed = enumerate(split.inner.expressions)
    found = {column_name(position): item.unalias() for position, item in listed}
    found |= {
        late.name if late.place is None else column_name(late.place): late.call
        for late in split.late
    }
    return found


def _partition_by(select: exp.Select) -> tuple[exp.Expr, ...]:
    clause = select.args.get("partition_by")
    return tuple(key.unalias() for key in clause.expressions) if clause is not None else ()
