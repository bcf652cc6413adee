"""The groups of a stream: PARTITION BY values → dense numbers, target child tables and their tags.

`KeyIndex` numbers the values at hash-table speed, without a Python loop over rows; where groups are
tables, `TableGroups` does. `GroupTargets` knows what a group means: id, target child name, tag
values. A group is never forgotten, since numbers index the kernels' state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import polars as pl

from penstock.windows.groups.key_index import KeyIndex, Numbers
from penstock.windows.groups.table_groups import TableGroups
from penstock.windows.groups.table_names import TableNames
from penstock.windows.groups.targets import GroupTargets
from penstock.windows.rows import columnwise
from penstock.windows.rows.scope import Scope


class Groups:
    """The groups of one kernel.

    `expressions` make the key columns `_k0…` from source rows; `numbers(rows)` reads those. `solo`:
    the rows of a group all come from one child table, so a row below its group's highest time is
    out of order for its table too.
    """

    def __init__(self, scope: Scope, tables: TableNames) -> None:
        """*tables*: numbers the source's child tables."""
        plan = scope.plan
        compiled = [scope.over_rows(key.sql) for key in plan.keys]
        types = {f"_k{i}": c.type for i, c in enumerate(compiled)}
        self.expressions = [c.expr.alias(name) for name, c in zip(types, compiled, strict=True)]
        self.columns = list(types)
        self._index = KeyIndex({name: t.polars() for name, t in types.items()})
        texts = [k.sql.strip('`" ').lower() for k in plan.keys]
        tags = {t.name.lower() for t in plan.source.tags}
        single = plan.source.kind in ("child", "plain")
        #: `_k…` that holds the child table, if one does
        self.table_column = f"_k{texts.index('tbname')}" if "tbname" in texts else None
        self.solo = single or self.table_column is not None
        #: whether a group is a whole table, not a part of one
        self.whole = self.solo and all(t == "tbname" or t in tags for t in texts)
        by_table = self.columns == ["_k0"] and self.table_column == "_k0"
        #: where the table's name is the key
        self._tables = TableGroups(tables) if by_table else None
        self.targets = GroupTargets(scope, types, self.table_column, self.keys_of)
        #: without keys there is just group 0, which exists from the first row on
        self._started = False
        self._saved = 0

    def __len__(self) -> int:
        if self._tables is not None:
            return len(self._tables)
        return len(self._index) if self.columns else int(self._started)

    def numbers(self, rows: pl.DataFrame, tables: Numbers | None = None) -> Numbers:
        """Group number of each row (rows have `_k…`); new groups are added. *tables*: the
        numbers of their child tables, where known.
        """
        if not self.columns:
            self._started = self._started or rows.height > 0
            return np.zeros(rows.height, np.int64)
        if self._tables is not None:
            if tables is None:
                return self._tables.of_rows(rows)
            return self._tables.of_tables(tables)
        return self._index.numbers(columnwise.beside([rows.get_column(c) for c in self.columns]))

    @property
    def by_name(self) -> bool:
        """Whether a group is a whole table, whose name tells which."""
        return self.whole and self.common

    @property
    def common(self) -> bool:
        """Whether the keys of rows are the same for every stream with these expressions, and not
        numbers of these groups.
        """
        return self._tables is not None or not self.columns

    def keys_in(self, rows: pl.DataFrame, tables: Numbers) -> Numbers:
        """Of each row a number that tells its group: its table's where groups are tables, otherwise
        the group's.
        """
        return tables if self._tables is not None else self.numbers(rows)

    def of_keys(self, keys: Numbers, appeared: Callable[[], Numbers]) -> Numbers:
        """Group number of each of the distinct *keys*; *appeared* gives them in order of their
        first rows.

        New groups are numbered in that order, whatever numbers tables have in this process.
        """
        if self._tables is not None:
            return self._tables.of_distinct(keys, appeared)
        self._started = True
        return keys

    def of_table(self, name: str) -> int:
        """Group number of the rows of a table; -1: there is none yet, or it does not follow from
        the table's name.
        """
        if not self.columns:
            return 0 if self._started else -1
        return self._tables.of_name(name) if self._tables is not None else -1

    def keys(self) -> pl.DataFrame:
        """`_k0…` of all groups in order of number."""
        return self.keys_of(np.arange(len(self)))

    def keys_of(self, numbers: Numbers) -> pl.DataFrame:
        """`_k0…` of each group."""
        if self._tables is not None:
            return self._tables.names(numbers).alias("_k0").to_frame()
        return (
            columnwise.picked(self._index.keys, numbers)
            if self.columns
            else pl.DataFrame({"_one": np.zeros(len(numbers), np.int64)})
        )

    # ---------------------------------------------------------------- state

    @cached_property
    def _no_keys(self) -> pl.DataFrame:
        # what no lines are made of takes as long to find out as lines
        return self.keys_of(np.empty(0, np.int64))

    def delta(self, full: bool = False) -> pl.DataFrame:
        """Keys of the groups added since the last call (all when *full*), in order of number."""
        start = 0 if full else self._saved
        self._saved = len(self)
        return self.keys_of(np.arange(start, len(self))) if start < len(self) else self._no_keys

    def restore(self, keys: pl.DataFrame) -> None:
        """Add groups as `delta` gave them."""
        if self._tables is not None:
            self._tables.of_rows(keys.select(pl.col("_k0").alias("tbname")))
        elif self.columns:
            self.numbers(keys)
        else:
            self._started = self._started or keys.height > 0
        self._saved = len(self)
