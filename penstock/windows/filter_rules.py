"""What the options of a stream without a window mean for what becomes of its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from penstock.windows.emit.result import target_identity
from penstock.windows.rows.row_columns import RowColumns
from penstock.windows.rows.scope import Scope


@dataclass(frozen=True)
class FilterRules:
    """The options of one plan, decided."""

    #: a row that is written again takes the place of the one before it
    replaces: bool
    #: the key of a result follows from the key of the source row, whatever its values are
    stable: bool
    #: an update can remove a result, so that it matters which rows may be updates
    retracts: bool

    @classmethod
    def of(cls, scope: Scope, keys: Sequence[pl.Expr]) -> FilterRules:
        """Decide what the options of the plan mean.

        Args:
            keys: expressions over source rows that make the keys of groups.
        """
        plan = scope.plan
        source = plan.source
        replaces = (
            not plan.ignore_update or source.result_of is not None or source.kind == "virtual"
        )
        identity = target_identity(plan)
        keyed = [
            origin
            for column, origin in zip(plan.target.columns, plan.target.column_of, strict=True)
            if column.name in identity
        ]
        items = [scope.over_rows(o.sql).expr for o in plan.outputs if o.name in keyed]
        own = {*RowColumns.of(source).identity, *(t.name for t in source.tags)}
        stable = all(set(e.meta.root_names()) <= own for e in (*items, *keys))
        retracts = replaces and (plan.where is not None or not stable)
        return cls(replaces, stable, retracts)
