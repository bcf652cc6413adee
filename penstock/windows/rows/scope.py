"""What names mean inside a stream's expressions, and how a compiled expression is run over rows.

Owns the two scopes of a plan (before and after aggregation) and the rule that a row on which an
expression fails never takes other rows with it. Refuses to know SQL: compiling is
`penstock.sql.compile`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import polars as pl

from penstock.sql.compile import Compiled, compile_expression
from penstock.sql.plan import StreamPlan
from penstock.types import ColumnType
from penstock.udf import sandbox
from penstock.windows.emit.projection import Projection

#: in front of a user-defined aggregate's name in a plan
USER = "user:"
TIMESTAMP = ColumnType("TIMESTAMP")
BIGINT = ColumnType("BIGINT")
TBNAME = ColumnType("VARCHAR", 192)


#: what an expression that fails on a row raises: anything, and the panic of a polars kernel, which
#: is no Exception
FAILURES = (Exception, pl.exceptions.PanicException)


class Scope:
    """Compiles a plan's expressions, each with the names it may use."""

    def __init__(self, plan: StreamPlan) -> None:
        self.plan = plan
        source = plan.source
        self.before: dict[str, ColumnType] = {
            c.name: c.type for c in (*source.columns, *source.tags)
        }
        self.before |= {"tbname": TBNAME, "_now": TIMESTAMP}
        self.keys: dict[str, ColumnType] = {f"_k{i}": key.type for i, key in enumerate(plan.keys)}
        self._functions = {f.name.lower(): f for f in plan.functions}
        #: a user-defined aggregate runs where its result is used, so that a failing one is that
        #: result's dead letter
        self._aggregated = {
            a.name: pl.col(a.name).map_batches(
                partial(sandbox.aggregate, f), return_dtype=f.returns.polars()
            )
            for a in plan.aggregates
            if (f := self._functions.get(a.function.removeprefix(USER).lower())) is not None
            and a.function.startswith(USER)
        }
        self.after: dict[str, ColumnType] = {a.name: a.type for a in plan.aggregates}
        self.after |= self.keys | {
            "_wstart": TIMESTAMP,
            "_wend": TIMESTAMP,
            "_wduration": BIGINT,
            "_now": TIMESTAMP,
        }

    def over_rows(self, sql: str) -> Compiled:
        """Compile *sql* over source columns, tags, `tbname` and `_now`."""
        return self._compile(sql, self.before)

    def over_keys(self, sql: str) -> Compiled:
        """Compile *sql* over `_k0…`."""
        return self._compile(sql, self.keys)

    def over_windows(self, sql: str) -> Compiled:
        """Compile *sql* over `_a*`, `_k*`, `_wstart`, `_wend` and `_wduration`."""
        return self._compile(sql, self.after, self._aggregated)

    def _compile(
        self,
        sql: str,
        columns: Mapping[str, ColumnType],
        computed: Mapping[str, pl.Expr] | None = None,
    ) -> Compiled:
        return compile_expression(
            sql,
            columns,
            precision=self.plan.source.precision,
            timezone=self.plan.timezone,
            functions=self._functions.get,
            computed=computed,
        )


def evaluate(
    rows: pl.DataFrame, expressions: Projection
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Add *expressions* to *rows* as columns.

    Rows on which one of them fails are left out and come back as the second frame with a `_reason`
    column (None: no row failed). One bad row costs a binary search, never the batch.
    """
    try:
        return expressions.add(rows), None
    except FAILURES as error:
        if rows.height <= 1:
            return expressions.add_none(rows), rows.with_columns(
                _reason=pl.lit(str(error).splitlines()[0] if str(error) else type(error).__name__)
            )
    middle = rows.height // 2
    low, low_failed = evaluate(rows[:middle], expressions)
    high, high_failed = evaluate(rows[middle:], expressions)
    failed = [f for f in (low_failed, high_failed) if f is not None]
    return pl.concat([low, high]), pl.concat(failed) if failed else None
