"""What groups are in the target: their child tables, ids and tags, worked out when first asked for.

A loop runs once per group that is new here. Does not number groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock import names
from penstock.rows.partition import beside, hashes
from penstock.sql.plan import StreamPlan
from penstock.types import ColumnType
from penstock.windows.clocks.ticks import grown
from penstock.windows.emit.projection import Projection
from penstock.windows.groups.key_index import Numbers
from penstock.windows.rows import columnwise
from penstock.windows.rows.cast import cast_expression
from penstock.windows.rows.scope import Scope, evaluate

#: groups that are kept as values, at most
_MOST_MET = 1 << 16
_GROUP_ID = ColumnType("BIGINT UNSIGNED")


class GroupTargets:
    """The targets of one kernel's groups."""

    def __init__(
        self,
        scope: Scope,
        types: Mapping[str, ColumnType],
        table_column: str | None,
        keys_of: Callable[[Numbers], pl.DataFrame],
    ) -> None:
        """
        Args:
            types: the columns of keys and their types.
            table_column: the one that holds the child table, if one does.
            keys_of: gives the keys of groups, line by line.
        """
        plan = scope.plan
        self._target = plan.target
        self._key_columns = list(types)
        self._table_column = table_column
        self._keys_of = keys_of
        subtable = plan.target.subtable_sql
        self._subtable = (
            Projection([scope.over_keys(subtable).expr.cast(pl.String).alias("_name")])
            if subtable
            else None
        )
        self._tags = _tag_expressions(plan, types)
        fixed = {"tbname": pl.String, "_hash": pl.UInt32, "_group": pl.UInt64}
        self._about = pl.DataFrame(
            schema={**fixed, **{t.name: t.type.polars() for t in plan.target.tags}}
        )
        #: group → its line there; -1: it has none yet
        self._lines: Numbers = np.empty(0, np.int64)
        #: some of the groups, as values
        self._met: dict[int, tuple[str, int, tuple[Any, ...]]] = {}

    def of(self, groups: Numbers) -> pl.DataFrame:
        """Return of each group: `tbname` (target child table), `_hash` (of that, see
        `partition.hashes`), `_group` (id) and the target's tags.
        """
        try:
            found: Numbers = self._lines.take(groups)
        except IndexError:
            self._lines = grown(self._lines, int(groups.max()) + 1, -1)  # type: ignore[assignment]
            found = self._lines.take(groups)
        if len(found) and found.min() < 0:
            fresh = np.unique(groups[found < 0])
            base = self._about.height
            self._about = self._about.vstack(self._describe(self._keys_of(fresh)))
            if self._about.n_chunks() > 16:
                self._about = self._about.rechunk()
            self._lines[fresh] = np.arange(base, base + len(fresh))
            found = self._lines.take(groups)
        return columnwise.picked(self._about, found)

    def one(self, group: int) -> tuple[str, int, tuple[Any, ...]]:
        """Return `of` one group as values: child table, its hash, tags."""
        known = self._met.get(group)
        if known is None:
            if len(self._met) >= _MOST_MET:
                self._met.clear()
            child, place, _, *tags = self.of(np.array([group])).row(0)
            known = self._met[group] = (child, place, tuple(tags))
        return known

    def _describe(self, keys: pl.DataFrame) -> pl.DataFrame:
        stable = self._target.table
        columns = self._key_columns
        values = keys.select(columns).rows() if columns else [()] * keys.height
        ids = [names.group_id(stable, v) for v in values]
        named: list[str | None] = [None] * len(ids)
        if self._subtable is not None:
            # where the name cannot be worked out the child has the automatic one, as where it is
            # NULL
            made, _ = evaluate(keys.with_row_index("_at"), self._subtable)
            for at, name in made.select("_at", "_name").iter_rows():
                named[at] = name
        own = [names.automatic_child(stable, g) for g in ids]
        # results of one table alone are one record wherever they go
        if self._target.beside and columns:
            own = beside(own, self._places(keys, ids))
        children = [
            a if not n else names.child_name(n, stable, g)
            for n, a, g in zip(named, own, ids, strict=True)
        ]
        named_so = pl.Series("tbname", children, dtype=pl.String)
        about = [
            named_so,
            pl.Series("_hash", hashes(named_so)),
            pl.Series("_group", ids, dtype=pl.UInt64),
        ]
        return keys.with_columns(about).select("tbname", "_hash", "_group", *self._tags)

    def _places(self, keys: pl.DataFrame, ids: list[int]) -> npt.NDArray[np.uint64]:
        """What tells where automatic child tables go: beside the tables that they are made of, or
        else with groups computed where they are.

        Then what a scan, or a partition of the exchange, computes at once leaves in one record, and
        not in one for each partition.
        """
        if self._table_column is None:
            return np.array(ids, np.uint64)
        return hashes(keys.get_column(self._table_column)).astype(np.uint64)


def _tag_expressions(plan: StreamPlan, types: Mapping[str, ColumnType]) -> list[pl.Expr]:
    """Return the expressions over keys and `_group` that make the target's tags."""
    target = plan.target
    made = []
    for tag, origin in zip(target.tags, target.tag_of, strict=True):
        if origin is None:
            value = pl.lit(None, dtype=tag.type.polars())
        else:
            column, given = ("_group", _GROUP_ID)
            if origin != "group_id":
                column = f"_k{origin}"
                given = types[column]
            value = cast_expression(
                pl.col(column), given, tag.type, plan.source.precision, target.precision
            )
        made.append(value.cast(tag.type.polars(), strict=False).alias(tag.name))
    return made
