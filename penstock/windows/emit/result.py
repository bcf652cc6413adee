"""From finished windows to rows of the target table.

Takes frames of windows (`_g` group number, `_wstart`, `_wend`, `_a0…`, optionally `_wduration` and
`_now`), computes the select list, casts it to the target's columns and lays it out as
`Emission.rows`. A value that can't be cast is NULL and reported with its reason; a line whose time
comes out NULL can't be stored and is reported instead of published. Refuses to decide when a window
is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from penstock.rows.versions import DELETE, UPSERT
from penstock.sql.compile import Compiled
from penstock.sql.plan import StreamPlan
from penstock.types import TIME_LIMITS, ColumnType, in_range
from penstock.windows.emit.few_results import FewLayout
from penstock.windows.emit.projection import Projection, Quick, cast_to, taken
from penstock.windows.groups.groups import Groups
from penstock.windows.rows import columnwise
from penstock.windows.rows.cast import cast_expression
from penstock.windows.rows.scope import FAILURES, Scope, evaluate


@dataclass(frozen=True)
class Made:
    """Rows in the layout of `Emission.rows`, and what could not be made: the line's `tbname`, time
    and a `_reason`.

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
        self._scope = scope
        compiled = {
            o.name: (scope.over_windows if windowed else scope.over_rows)(o.sql)
            for o in plan.outputs
        }
        precision = plan.source.precision
        wanted_precision = plan.target.precision
        raw: list[pl.Expr] = []
        cast: list[pl.Expr] = []
        direct: list[pl.Expr] = []  # both in one, where no cast has to be checked
        plain: list[Quick | None] = []
        self._checked: list[str] = []
        for i, (column, origin) in enumerate(
            zip(plan.target.columns, plan.target.column_of, strict=True)
        ):
            if origin is None:
                raw.append(pl.lit(None, dtype=column.type.polars()).alias(f"_r{i}"))
                cast.append(pl.col(f"_r{i}").alias(column.name))
                direct.append(
                    pl.repeat(None, pl.len(), dtype=column.type.polars()).alias(column.name)
                )
                plain.append(None)
                continue
            given: ColumnType = compiled[origin].type
            raw.append(compiled[origin].expr.alias(f"_r{i}"))
            for made, value in ((cast, pl.col(f"_r{i}")), (direct, compiled[origin].expr)):
                value = cast_expression(value, given, column.type, precision, wanted_precision)
                made.append(value.cast(column.type.polars(), strict=False).alias(column.name))
            plain.append(
                cast_to(column.type.polars(), taken(value.meta.root_names()[0]))
                if value.meta.is_column()
                else None
            )
            other = (
                given != column.type
                if column.type.kind == "DECIMAL"
                else given.kind != column.type.kind
            )
            if other and not column.type.sized:
                self._checked.append(column.name)
        taken_as_is = self._columns_as_is(plan, compiled)
        #: for a few rows, where every column is one of what results are made from
        self.few = (
            None
            if taken_as_is is None
            else FewLayout(taken_as_is, [t.name for t in plan.target.tags], self.empty().schema)
        )
        self._raw = Projection(raw)
        self._cast = Projection(cast)
        self._direct = Projection(direct, plain)
        self.columns = [c.name for c in plan.target.columns]
        self._times = [c.name for c in plan.target.columns if c.type.kind == "TIMESTAMP"]
        self._floats = [c.name for c in plan.target.columns if c.type.kind in ("FLOAT", "DOUBLE")]
        self._limits = TIME_LIMITS[plan.target.precision]
        self.tags = [t.name for t in plan.target.tags]
        self.time = self.columns[0]
        self._types = scope.after if windowed else {}
        self.reads = {name for e in raw for name in e.meta.root_names()}
        self._reads_keys = any(name.startswith("_k") for name in self.reads)

    @staticmethod
    def _columns_as_is(
        plan: StreamPlan, compiled: Mapping[str, Compiled]
    ) -> dict[str, str | None] | None:
        """Of each of the target's columns the column that it is, None where it has no values; None:
        some are worked out or cast.
        """
        found: dict[str, str | None] = {}
        for column, origin in zip(plan.target.columns, plan.target.column_of, strict=True):
            if origin is None:
                found[column.name] = None
                continue
            given = compiled[origin]
            value = cast_expression(
                given.expr, given.type, column.type, plan.source.precision, plan.target.precision
            )
            if not value.meta.is_column() or given.type.polars() != column.type.polars():
                return None
            found[column.name] = value.meta.root_names()[0]
        return found

    def upserts(self, windows: pl.DataFrame) -> Made:
        """Rows that put *windows*, in their order."""
        return self._make(windows, UPSERT)

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

    def _make(self, windows: pl.DataFrame, op: int | None) -> Made:
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
        failed: pl.DataFrame | None = None
        if self._checked:
            windows, failed = self._evaluate(windows)
            made = self._cast.columns(windows)
        else:
            try:
                made = self._direct.columns(windows)
            except FAILURES:
                windows, failed = self._evaluate(windows)
                made = self._cast.columns(windows)
        about = self._groups.targets(windows.get_column("_g").to_numpy())
        ops = (
            windows.get_column("_op")
            if op is None
            else pl.Series("_op", np.full(windows.height, op, np.int8))
        )
        columns = [
            about.get_column("tbname"),
            ops,
            *made,
            *(about.get_column(t) for t in self.tags),
        ]
        return self._check(windows, columnwise.beside(columns), about.get_column("_hash"), failed)

    def _evaluate(self, windows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """`_r…` of the lines that have them, and the lines that fail with their reason."""
        raw, failed = evaluate(windows, self._raw)
        if failed is not None:
            children = self._groups.targets(failed.get_column("_g").to_numpy()).get_column("tbname")
            times = [c for c in ("_wstart",) if c in failed.columns]
            failed = failed.select(children.alias("tbname"), *times, "_reason")
        return raw, failed

    def _readable(self, rows: pl.DataFrame) -> pl.DataFrame:
        """*rows* with NULL for values that no table takes: times out of range, infinity."""
        mended: list[pl.Series] = []
        for name in self._times:
            column = rows.get_column(name)
            found = in_range(column, self._limits)
            if found is not column:
                mended.append(found)
        for name in self._floats:
            column = rows.get_column(name)
            if np.isinf(column.to_numpy()).any():  # without a query; NULL is NaN there
                infinite = column.is_infinite()
                nothing = pl.Series(name, [None], dtype=column.dtype)
                mended.append(column.zip_with(~infinite.fill_null(value=False), nothing))
        return rows.with_columns(mended) if mended else rows

    def _check(
        self, raw: pl.DataFrame, rows: pl.DataFrame, hashes: pl.Series, failed: pl.DataFrame | None
    ) -> Made:
        """Report NULLs that casts made; drop lines without time."""
        rows = self._readable(rows)
        reports = [] if failed is None else [failed]
        for name in self._checked:
            column = rows.get_column(name)
            given = raw.get_column(f"_r{self.columns.index(name)}")
            if column.null_count() > given.null_count():
                lost = column.is_null() & given.is_not_null()
                reason = pl.format(
                    "{} does not fit column {}", given.filter(lost).cast(pl.String), pl.lit(name)
                ).alias("_reason")
                reports.append(rows.filter(lost).select("tbname", self.time, reason))
        if rows.get_column(self.time).null_count():
            timeless = rows.get_column(self.time).is_null()
            reports.append(
                rows.filter(timeless).select(
                    "tbname", self.time, pl.lit("the result's time is NULL").alias("_reason")
                )
            )
            rows = rows.filter(~timeless)
            hashes = hashes.filter(~timeless)
        return Made(rows, pl.concat(reports, how="diagonal") if reports else None, hashes)
