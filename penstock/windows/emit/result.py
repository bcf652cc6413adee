"""From finished windows to rows of the target table.

Takes frames of windows (`_g` group number, `_wstart`, `_wend`, `_a0…`, optionally `_wduration` and
`_now`), computes the select list, casts it to the target's columns and lays it out as
`Emission.rows`. A value that can't be cast is NULL and reported with its reason; a line whose time
comes out NULL can't be stored and is reported instead of published. Refuses to decide when a window
is published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from penstock.rows.versions import DELETE, UPSERT
from penstock.sql.plan import StreamPlan
from penstock.windows.emit.few_results import FewLayout
from penstock.windows.emit.select_list import CompiledSelectList, Selected, columns_as_is
from penstock.windows.emit.target_values import TargetValues
from penstock.windows.groups.groups import Groups
from penstock.windows.rows import columnwise
from penstock.windows.rows.scope import Scope

#: what comes before the columns of a source row
_META = ("_offset", "_now", "_op", "tbname")


@dataclass(frozen=True)
class Made:
    """Rows in the layout of `Emission.rows`, and what could not be made, with a `_reason`: the
    source row it was made of, or of a window's result its `tbname` and the window.

    hashes: of the rows' names, as in `Emission`.
    """

    rows: pl.DataFrame
    failed: pl.DataFrame | None = None
    hashes: pl.Series | None = None


def target_identity(plan: StreamPlan) -> list[str]:
    """Return the columns that tell rows of *plan*'s target from each other."""
    target = plan.target
    key = [target.key_column] if target.key_column else []
    return ["tbname", target.columns[0].name, *key]


class Results:
    """Lays out windows of one plan; for a stream without a window, source rows."""

    def __init__(self, scope: Scope, groups: Groups, windowed: bool = True) -> None:
        plan = scope.plan
        self._groups = groups
        self._target = plan.target
        self.identity = target_identity(plan)
        compiled = {
            o.name: (scope.over_windows if windowed else scope.over_rows)(o.sql)
            for o in plan.outputs
        }
        self._select = CompiledSelectList(plan, compiled)
        self._values = TargetValues(plan.target)
        as_is = columns_as_is(plan, compiled)
        #: for a few rows, where every column is one of what results are made from
        self.few = (
            None
            if as_is is None
            else FewLayout(as_is, [t.name for t in plan.target.tags], self.empty().schema)
        )
        self._tags = [t.name for t in plan.target.tags]
        self.time = plan.target.columns[0].name
        self._types = scope.after if windowed else {}
        source = plan.source
        #: the input layout, where lines are source rows; None: they are windows
        self._input = (
            None
            if windowed
            else (*_META, *(column.name for column in (*source.columns, *source.tags)))
        )
        #: columns of windows, or of source rows, that results are made from
        self.reads = self._select.reads
        self._reads_keys = any(name.startswith("_k") for name in self.reads)

    def upserts(self, windows: pl.DataFrame, shown: Sequence[str] = ()) -> Made:
        """Rows that put *windows*, in their order, with the columns *shown* of these at the end."""
        return self._make(windows, UPSERT, shown)

    def deletes(self, windows: pl.DataFrame) -> Made:
        """Rows that remove what *windows* had put; aggregates that *windows* lacks are taken as
        NULL.
        """
        names = [n for n in self._types if n.startswith("_a") and n not in windows.columns]
        return self._make(
            windows.with_columns(
                pl.lit(None, dtype=self._types[n].polars()).alias(n) for n in names
            ),
            DELETE,
        )

    def changes(self, rows: pl.DataFrame) -> Made:
        """Rows that put or remove, as each line's `_op` says."""
        return self._make(rows, None)

    def empty(self) -> pl.DataFrame:
        """No rows, in the layout."""
        target = self._target
        schema: dict[str, pl.DataType] = {"tbname": pl.String(), "_op": pl.Int8()}
        return pl.DataFrame(
            schema=schema | {c.name: c.type.polars() for c in (*target.columns, *target.tags)}
        )

    def _make(self, windows: pl.DataFrame, op: int | None, shown: Sequence[str] = ()) -> Made:
        if not windows.height:
            return Made(self.empty())
        known = set(windows.columns)
        more: list[pl.Series] = []
        if "_now" not in known and "_now" in self.reads:
            more.append(pl.repeat(None, windows.height, dtype=pl.Int64, eager=True).alias("_now"))
        if "_wduration" not in known and "_wduration" in self.reads:
            more.append(
                (windows.get_column("_wend") - windows.get_column("_wstart")).alias("_wduration")
            )
        if more:
            windows = windows.hstack(more)
        if self._reads_keys and "_k0" not in known:
            windows = windows.hstack(self._groups.keys_of(windows.get_column("_g").to_numpy()))
        selected = self._select.of(windows)
        windows = selected.lines
        about = self._groups.targets.of(windows.get_column("_g").to_numpy())
        ops = (
            windows.get_column("_op")
            if op is None
            else pl.Series("_op", np.full(windows.height, op, np.int8))
        )
        columns = [
            about.get_column("tbname"),
            ops,
            *selected.columns,
            *(about.get_column(t) for t in self._tags),
            *(windows.get_column(name) for name in shown),
        ]
        return self._check(selected, columnwise.beside(columns), about.get_column("_hash"))

    def _describe_failed(self, failed: pl.DataFrame) -> pl.DataFrame:
        """Return source rows that failed as they came; windows by the `tbname` of their results and
        their span, from which they can be computed again.
        """
        if self._input is not None:
            return failed.select(*(c for c in self._input if c in failed.columns), "_reason")
        children = self._groups.targets.of(failed.get_column("_g").to_numpy()).get_column("tbname")
        return failed.select(children.alias("tbname"), "_wstart", "_wend", "_reason")

    def _check(self, selected: Selected, rows: pl.DataFrame, hashes: pl.Series) -> Made:
        """Report NULLs that casts made; drop lines without time."""
        rows = self._values.mended(rows)
        failed = [] if selected.failed is None else [selected.failed]
        failed += self._select.misfits(selected.lines, rows)
        if rows.get_column(self.time).null_count():
            timeless = rows.get_column(self.time).is_null()
            reason = pl.lit("the result's time is NULL").alias("_reason")
            failed.append(selected.lines.filter(timeless).with_columns(reason))
            rows = rows.filter(~timeless)
            hashes = hashes.filter(~timeless)
        reports = [self._describe_failed(lines) for lines in failed]
        return Made(rows, pl.concat(reports, how="diagonal") if reports else None, hashes)
