"""The groups of a stream: PARTITION BY values → dense numbers, target child tables and their tags.

`KeyIndex` numbers the values at hash-table speed, without a Python loop over rows. `Groups` adds
what a group means: id, target child name, tag values; there a loop runs once per *new* group. A
group is never forgotten, since numbers index the kernels' state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock import names
from penstock.rows.partition import beside, hashes
from penstock.sql.plan import StreamPlan
from penstock.types import ColumnType
from penstock.windows.emit.projection import Projection
from penstock.windows.groups.key_index import KeyIndex, Numbers
from penstock.windows.groups.table_names import TableNames
from penstock.windows.rows import columnwise
from penstock.windows.rows.cast import cast_expression
from penstock.windows.rows.scope import Scope, evaluate

#: groups whose targets are kept as values, at most
_MOST_MET = 1 << 16
_GROUP_ID = ColumnType("BIGINT UNSIGNED")


class Groups:
    """The groups of one kernel.

    `expressions` make the key columns `_k0…` from source rows; `numbers(rows)` reads those. `solo`:
    the rows of a group all come from one child table, so a row below its group's highest time is
    out of order for its table too.
    """

    def __init__(self, scope: Scope, tables: TableNames) -> None:
        """*tables*: numbers the source's child tables."""
        plan = scope.plan
        self.plan: StreamPlan = plan
        self._names = tables
        compiled = [scope.over_rows(key.sql) for key in plan.keys]
        self.expressions = [c.expr.alias(f"_k{i}") for i, c in enumerate(compiled)]
        self.columns = [f"_k{i}" for i in range(len(compiled))]
        self._types = {f"_k{i}": c.type for i, c in enumerate(compiled)}
        self._index = KeyIndex({name: t.polars() for name, t in self._types.items()})
        self._own: Numbers = np.empty(
            0, np.int64
        )  # number of a table → group, where the groups are the tables
        self._tables: Numbers = np.empty(0, np.int64)  # and back
        subtable = plan.target.subtable_sql
        self._subtable = (
            Projection([scope.over_keys(subtable).expr.cast(pl.String).alias("_name")])
            if subtable
            else None
        )
        texts = [k.sql.strip('`" ').lower() for k in plan.keys]
        tags = {t.name.lower() for t in plan.source.tags}
        single = plan.source.kind in ("child", "plain")
        #: `_k…` that holds the child table, if one does
        self.table_column = f"_k{texts.index('tbname')}" if "tbname" in texts else None
        self.solo = single or self.table_column is not None
        #: whether a group is a whole table, not a part of one
        self.whole = self.solo and all(t == "tbname" or t in tags for t in texts)
        self._tags = self._tag_expressions()
        self._by_table = self.columns == ["_k0"] and self.table_column == "_k0"
        fixed = {"tbname": pl.String, "_hash": pl.UInt32, "_group": pl.UInt64}
        self._about = pl.DataFrame(
            schema={**fixed, **{t.name: t.type.polars() for t in plan.target.tags}}
        )
        self._lines: Numbers = np.empty(0, np.int64)  # group → its line there
        self._met: dict[int, tuple[str, int, tuple[Any, ...]]] = {}  # of those, some as values
        self._started = (
            False  # without keys there is just group 0, which exists from the first row on
        )
        self._saved = 0
        self._none: pl.DataFrame | None = None

    def __len__(self) -> int:
        if self._by_table:
            return len(self._tables)
        return len(self._index) if self.columns else int(self._started)

    def numbers(self, rows: pl.DataFrame, tables: Numbers | None = None) -> Numbers:
        """Group number of each row (rows have `_k…`); new groups are added. *tables*: the
        numbers of their child tables, where known.
        """
        if not self.columns:
            self._started = self._started or rows.height > 0
            return np.zeros(rows.height, np.int64)
        if self._by_table:
            return self._of_tables(self._names.numbers(rows) if tables is None else tables)
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
        return self._by_table or not self.columns

    def keys_in(self, rows: pl.DataFrame, tables: Numbers) -> Numbers:
        """Of each row a number that tells its group: its table's where groups are tables, otherwise
        the group's.
        """
        return tables if self._by_table else self.numbers(rows)

    def of_keys(self, keys: Numbers, appeared: Callable[[], Numbers]) -> Numbers:
        """Group number of each of the distinct *keys*; *appeared* gives them in order of their
        first rows.

        New groups are numbered in that order, whatever numbers tables have in this process.
        """
        if not self._by_table:
            self._started = True
            return keys
        if len(self._names) > len(self._own) or self._own.take(keys).min() < 0:
            self._of_tables(appeared())
        return self._own.take(keys)

    def of_table(self, name: str) -> int:
        """Group number of the rows of a table; -1: there is none yet, or it does not follow from
        the table's name.
        """
        if not self.columns:
            return 0 if self._started else -1
        number = self._names.met(name) if self._by_table else -1
        return self._own.item(number) if 0 <= number < len(self._own) else -1

    def _of_tables(self, tables: Numbers) -> Numbers:
        if len(self._names) > len(self._own):
            own = np.full(len(self._names) * 2, -1, np.int64)
            own[: len(self._own)] = self._own
            self._own = own
        found: Numbers = self._own.take(tables)
        if len(found) and found.min() < 0:
            fresh, places = np.unique(tables[found < 0], return_index=True)
            fresh = fresh[np.argsort(places)]
            self._own[fresh] = np.arange(len(self._tables), len(self._tables) + len(fresh))
            self._tables = np.concatenate([self._tables, fresh])
            found = self._own[tables]
        return found

    def _tag_expressions(self) -> list[pl.Expr]:
        target = self.plan.target
        made = []
        for tag, origin in zip(target.tags, target.tag_of, strict=True):
            if origin == "group_id":
                value = cast_expression(
                    pl.col("_group"),
                    _GROUP_ID,
                    tag.type,
                    self.plan.source.precision,
                    target.precision,
                )
            elif origin is None:
                value = pl.lit(None, dtype=tag.type.polars())
            else:
                key = f"_k{origin}"
                value = cast_expression(
                    pl.col(key),
                    self._types[key],
                    tag.type,
                    self.plan.source.precision,
                    target.precision,
                )
            made.append(value.cast(tag.type.polars(), strict=False).alias(tag.name))
        return made

    def targets(self, numbers: Numbers) -> pl.DataFrame:
        """Of each group: `tbname` (target child table), `_hash` (of that, see `partition.hashes`),
        `_group` (id) and the target's tags.

        Worked out when first asked for.
        """
        if len(self) > len(self._lines):
            lines = np.full(len(self) * 2, -1, np.int64)
            lines[: len(self._lines)] = self._lines
            self._lines = lines
        found: Numbers = self._lines.take(numbers)
        if len(found) and found.min() < 0:
            fresh = np.unique(numbers[found < 0])
            base = self._about.height
            self._about = self._about.vstack(self._describe(self.keys_of(fresh)))
            if self._about.n_chunks() > 16:
                self._about = self._about.rechunk()
            self._lines[fresh] = np.arange(base, base + len(fresh))
            found = self._lines.take(numbers)
        return columnwise.picked(self._about, found)

    def target(self, number: int) -> tuple[str, int, tuple[Any, ...]]:
        """`targets` of one group as values: child table, its hash, tags."""
        known = self._met.get(number)
        if known is None:
            if len(self._met) >= _MOST_MET:
                self._met.clear()
            child, place, _, *tags = self.targets(np.array([number])).row(0)
            known = self._met[number] = (child, place, tuple(tags))
        return known

    def about(self) -> pl.DataFrame:
        """`targets` of all groups in order of number."""
        return self.targets(np.arange(len(self)))

    def keys(self) -> pl.DataFrame:
        """`_k0…` of all groups in order of number."""
        return self.keys_of(np.arange(len(self)))

    def keys_of(self, numbers: Numbers) -> pl.DataFrame:
        """`_k0…` of each group."""
        if self._by_table:
            return self._names.names(self._tables[numbers]).alias("_k0").to_frame()
        return (
            columnwise.picked(self._index.keys, numbers)
            if self.columns
            else pl.DataFrame({"_one": np.zeros(len(numbers), np.int64)})
        )

    def _describe(self, keys: pl.DataFrame) -> pl.DataFrame:
        stable = self.plan.target.table
        values = keys.select(self.columns).rows() if self.columns else [()] * keys.height
        ids = [names.group_id(stable, v) for v in values]
        named: list[str | None] = [None] * len(ids)
        if self._subtable is not None:
            # where the name cannot be worked out the child has the automatic one, as where it is
            # NULL
            made, _ = evaluate(keys.with_row_index("_at"), self._subtable)
            for at, name in made.select("_at", "_name").iter_rows():
                named[at] = name
        own = [names.automatic_child(stable, g) for g in ids]
        if (
            self.plan.target.beside and self.columns
        ):  # results of one table alone are one record wherever they go
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
        if self.table_column is None:
            return np.array(ids, np.uint64)
        return hashes(keys.get_column(self.table_column)).astype(np.uint64)

    # ---------------------------------------------------------------- state

    def delta(self, full: bool = False) -> pl.DataFrame:
        """Keys of the groups added since the last call (all when *full*), in order of number."""
        start = 0 if full else self._saved
        self._saved = len(self)
        if start < len(self):
            return self.keys_of(np.arange(start, len(self)))
        if self._none is None:  # what no lines are made of takes as long to find out as lines
            self._none = self.keys_of(np.empty(0, np.int64))
        return self._none

    def restore(self, keys: pl.DataFrame) -> None:
        """Add groups as `delta` gave them."""
        if self.columns:
            self.numbers(
                keys.with_columns(pl.col("_k0").alias("tbname")) if self._by_table else keys
            )
        else:
            self._started = self._started or keys.height > 0
        self._saved = len(self)
