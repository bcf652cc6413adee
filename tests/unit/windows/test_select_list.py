"""The select list of a plan, cast to the target's columns."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from penstock.sql.plan import Column, Output
from penstock.types import ColumnType
from penstock.windows.emit.select_list import CompiledSelectList, columns_as_is
from penstock.windows.rows.scope import Scope
from tests.unit.windows.plans import DOUBLE, TIMESTAMP, aggregate, window_plan

TINY = ColumnType("TINYINT")


def selecting(*items, columns=None):
    """The list of (name, sql, type) as items, cast to *columns* (name, type)."""
    plan = window_plan(aggregates=(aggregate(0, "sum"),))
    target = replace(
        plan.target,
        columns=tuple(Column(n, t) for n, t in columns or [(n, t) for n, _, t in items]),
        column_of=tuple(n for n, _, _ in items),
    )
    plan = replace(plan, outputs=tuple(Output(*item) for item in items), target=target)
    scope = Scope(plan)
    return plan, {o.name: scope.over_windows(o.sql) for o in plan.outputs}


START = ("t", "_wstart", TIMESTAMP)
WINDOWS = pl.DataFrame({"_wstart": [1, 2, 3], "_a0": [1.0, 300.0, None]})


def test_columns_are_the_target_s():
    made = CompiledSelectList(*selecting(START, ("twice", "_a0 * 2", DOUBLE)))

    selected = made.of(WINDOWS)

    assert made.reads == {"_wstart", "_a0"}
    assert [c.name for c in selected.columns] == ["t", "twice"]
    assert selected.columns[1].to_list() == [2.0, 600.0, None]
    assert selected.failed is None
    assert list(made.misfits(selected.lines, pl.DataFrame(selected.columns))) == []


def test_a_value_that_a_cast_loses_is_told_and_null_is_not():
    made = CompiledSelectList(
        *selecting(START, ("v", "_a0", DOUBLE), columns=[("t", TIMESTAMP), ("v", TINY)])
    )

    selected = made.of(WINDOWS)
    [lost] = made.misfits(selected.lines, pl.DataFrame(selected.columns))

    assert selected.columns[1].to_list() == [1, None, None]
    assert lost.select("_wstart", "_reason").rows() == [(2, "300.0 does not fit column v")]


def test_columns_that_are_taken_as_they_are():
    plain = selecting(START, ("v", "_a0", DOUBLE))
    assert columns_as_is(*plain) == {"t": "_wstart", "v": "_a0"}
    assert columns_as_is(*selecting(START, ("v", "_a0 * 2", DOUBLE))) is None
    cast = selecting(START, ("v", "_a0", DOUBLE), columns=[("t", TIMESTAMP), ("v", TINY)])
    assert columns_as_is(*cast) is None


def test_a_column_may_have_no_values():
    plan, compiled = selecting(START, ("v", "_a0", DOUBLE))
    plan = replace(plan, target=replace(plan.target, column_of=("t", None)))

    assert columns_as_is(plan, compiled) == {"t": "_wstart", "v": None}
    column = CompiledSelectList(plan, compiled).of(WINDOWS).columns[1]
    assert column.dtype == pl.Float64 and column.to_list() == [None] * 3
