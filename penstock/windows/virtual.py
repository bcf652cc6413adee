"""Virtual sources: rows of origin tables → rows of virtual tables, and those joined by time.

`Mapper` renames: an origin's row becomes one partial row (op MERGE) for each virtual table that
takes a column from its table. `JoinKernel` stands before a plan's kernel and makes partial rows
whole: the row of a time is what all origins have said about it so far. Deletes are not passed on
(virtual sources do not repair), and rows of the distant past are completed from `History`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import polars as pl

from penstock.rows.versions import CLEAR, DELETE, MERGE, UPSERT
from penstock.sql.plan import Origin, Source, StreamPlan
from penstock.windows.kernel import EARLIEST, LATEST, Control, Delta, Emission, History, Kernel

#: joined rows kept for the columns that other origins may still bring
ROOM = 100_000
_ROWS = "join.rows"
_FLOORS = "join.floors"
_META = ("_step", "_offset", "_now")


class _Part:
    """Origins in one table that map the same columns: which child tables, to which members."""

    def __init__(self, columns: tuple[tuple[str, str], ...]) -> None:
        self.columns = dict(columns)
        #: (origin table, member)
        self.pairs: list[tuple[str, str]] = []

    def frame(self) -> pl.DataFrame:
        lines = [(table.lower(), member) for table, member in self.pairs]
        return pl.DataFrame(lines, schema={"_from": pl.String, "tbname": pl.String}, orient="row")


class Mapper:
    """Translates the rows of origin tables for one plan."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._types = {c.name: c.type.polars() for c in (*source.columns, *source.tags)}
        self._parts: dict[int, list[_Part]] = defaultdict(list)
        found: dict[tuple[int, tuple[tuple[str, str], ...]], _Part] = {}
        for member in source.members:
            by_table: dict[tuple[int, str], list[Origin]] = defaultdict(list)
            for origin in member.origins:
                by_table[origin.table_id, origin.table].append(origin)
            for (table_id, table), mine in by_table.items():
                key = (table_id, tuple((o.column, o.source) for o in mine))
                if key not in found:
                    found[key] = _Part(key[1])
                    self._parts[table_id].append(found[key])
                found[key].pairs.append((table, member.name))
        self._maps = {part: part.frame() for parts in self._parts.values() for part in parts}
        tags = {t.name: [m.tags[i] for m in source.members] for i, t in enumerate(source.tags)}
        schema = {"tbname": pl.String(), **{t.name: t.type.polars() for t in source.tags}}
        self._tags = pl.DataFrame(
            {"tbname": [m.name for m in source.members], **tags}, schema=schema
        )

    @property
    def tables(self) -> list[int]:
        """Tables that rows come from."""
        return list(self._parts)

    def origins_of(self, table_id: int, names: Iterable[str]) -> list[str]:
        """Tables in *table_id* whose rows the members called *names* need."""
        wanted = {n.lower() for n in names}
        return sorted(
            {f for part in self._parts[table_id] for f, m in part.pairs if m.lower() in wanted}
        )

    def rows(self, table_id: int, time: str, rows: pl.DataFrame) -> pl.DataFrame:
        """Partial rows of the virtual source, in the order of *rows*, whose time column is called
        *time*.

        Besides the kernels' input layout they have `_origin`, the name of the table that each row
        comes from.
        """
        rows = rows.filter(~pl.col("_op").is_in([DELETE, CLEAR])).with_row_index("_at")
        rows = rows.with_columns(pl.col("tbname").str.to_lowercase().alias("_from")).rename(
            {"tbname": "_origin"}
        )
        made = pl.concat([self._part(part, time, rows) for part in self._parts[table_id]])
        return made.sort("_at", maintain_order=True).drop("_at")

    def _part(self, part: _Part, time: str, rows: pl.DataFrame) -> pl.DataFrame:
        owned = rows.join(self._maps[part], on="_from", maintain_order="left")
        columns = [pl.col(time).alias(self._source.time_column)]
        for column in self._source.columns[1:]:
            taken = part.columns.get(column.name)
            value = pl.col(taken) if taken is not None and taken in owned.columns else pl.lit(None)
            columns.append(value.cast(self._types[column.name], strict=False).alias(column.name))
        op = pl.lit(MERGE, dtype=pl.Int8).alias("_op")
        made = owned.select("_at", *_META, op, "tbname", *columns, "_origin")
        made = made.join(self._tags, on="tbname", how="left", maintain_order="left")
        return made.select("_at", *_META, "_op", "tbname", *self._types, "_origin")


def merged(rows: pl.DataFrame, source: Source) -> pl.DataFrame:
    """Live rows of a virtual source from partial ones (later ones last): one per (tbname, ts), with
    what each origin said last.
    """
    keys = ["tbname", source.time_column]
    values = {c.name for c in source.columns[1:]}
    latest = [
        pl.col(c).drop_nulls().last() if c in values else pl.col(c).last()
        for c in rows.columns
        if c not in keys
    ]
    return rows.group_by(keys, maintain_order=True).agg(latest).select(rows.columns)


class JoinKernel:
    """Completes partial rows by time before *inner* sees them."""

    def __init__(self, plan: StreamPlan, inner: Kernel, history: History | None) -> None:
        self.inner = inner
        self._history = history
        self._time = plan.source.time_column
        self._keys = ["tbname", self._time]
        self._values = [c.name for c in plan.source.columns[1:]]
        layout = {"tbname": pl.String(), **{c.name: c.type.polars() for c in plan.source.columns}}
        self._rows = pl.DataFrame(schema=layout)
        #: per member: rows below this time are kept no more
        self._floors = pl.DataFrame(schema={"tbname": pl.String(), "_floor": pl.Int64()})
        self._fresh: list[pl.DataFrame] = []
        self._trimmed = False
        self.room = ROOM

    def apply(self, rows: pl.DataFrame) -> Emission:
        return self.inner.apply(self._whole(rows) if rows.height else rows)

    def _whole(self, rows: pl.DataFrame) -> pl.DataFrame:
        columns = self._rows.columns
        touched = rows.select(self._keys).unique(maintain_order=True)
        known = self._rows.join(touched, on=self._keys, how="semi")
        before = pl.concat([known, *self._find_forgotten(touched)]).with_columns(
            pl.lit(None, dtype=pl.UInt32).alias("_at")
        )
        work = pl.concat(
            [before, rows.select(columns).with_row_index("_at").select(*columns, "_at")]
        )
        work = work.with_columns(pl.col(c).forward_fill().over(self._keys) for c in self._values)
        work = work.filter(pl.col("_at").is_not_null()).sort("_at")
        latest = work.unique(self._keys, keep="last", maintain_order=True).select(columns)
        self._put(latest)
        self._fresh.append(latest)
        self._trim()
        whole = rows.with_columns(work.get_column(c) for c in self._values)
        return whole.with_columns(pl.lit(UPSERT, dtype=pl.Int8).alias("_op"))

    def _put(self, rows: pl.DataFrame) -> None:
        kept = self._rows.join(
            rows.select(self._keys), on=self._keys, how="anti", maintain_order="left"
        )
        self._rows = pl.concat([kept, rows])

    def _find_forgotten(self, touched: pl.DataFrame) -> list[pl.DataFrame]:
        """What is stored of *touched* rows that are kept no more."""
        if self._history is None or not self._floors.height:
            return []
        old = touched.join(self._floors, on="tbname").filter(pl.col(self._time) < pl.col("_floor"))
        if not old.height:
            return []
        low = old.get_column(self._time).min()
        high = old.get_column(self._time).max()
        assert isinstance(low, int) and isinstance(high, int)
        found = self._history.fetch(low, high, old.get_column("tbname").unique().to_list())
        found = found.filter(pl.col("_offset") >= 0)
        return [
            found.join(old.select(self._keys), on=self._keys, how="semi").select(self._rows.columns)
        ]

    def _trim(self) -> None:
        """Keep the latest rows of each member."""
        if self._rows.height <= 2 * self.room:
            return
        each = max(self.room // self._rows.get_column("tbname").n_unique(), 16)
        ranked = self._rows.with_columns(
            pl.col(self._time).rank("ordinal", descending=True).over("tbname").alias("_rank")
        )
        lost = (
            ranked.filter(pl.col("_rank") > each)
            .group_by("tbname")
            .agg((pl.col(self._time).max() + 1).alias("_floor"))
        )
        self._floors = (
            pl.concat([self._floors, lost]).group_by("tbname").agg(pl.col("_floor").max())
        )
        self._rows = ranked.filter(pl.col("_rank") <= each).drop("_rank")
        self._trimmed = True

    def control(self, control: Control) -> Emission:
        return Emission() if control.kind == "delete" else self.inner.control(control)

    def skip(self, rows: pl.DataFrame) -> None:
        """The columns of a row may come from parts that are left out and from others."""

    def load_history(self, low: int = EARLIEST, high: int = LATEST) -> Emission:
        return self.inner.load_history(low, high)

    def open_windows(self) -> pl.DataFrame:
        return self.inner.open_windows()

    def delta(self, full: bool = False) -> Delta:
        inner = self.inner.delta(full)
        frames = dict(inner.frames)
        if full or self._trimmed:
            frames[_FLOORS] = self._floors
        if full:
            frames[_ROWS] = self._rows
        elif self._fresh:
            frames[_ROWS] = pl.concat(self._fresh).unique(
                self._keys, keep="last", maintain_order=True
            )
        self._fresh = []
        self._trimmed = False
        return Delta(frames, inner.full)

    def restore(self, deltas: Iterable[Delta]) -> None:
        inner = []
        for delta in deltas:
            inner.append(
                Delta(
                    {n: f for n, f in delta.frames.items() if n not in (_ROWS, _FLOORS)}, delta.full
                )
            )
            if delta.full:
                self._rows, self._floors = self._rows.clear(), self._floors.clear()
            self._floors = delta.frames.get(_FLOORS, self._floors)
            if _ROWS in delta.frames:
                self._put(delta.frames[_ROWS])
        below = self._rows.join(self._floors, on="tbname", how="left", maintain_order="left")
        kept = below.filter(pl.col("_floor").is_null() | (pl.col(self._time) >= pl.col("_floor")))
        self._rows = kept.select(self._rows.columns)
        self.inner.restore(inner)
        self._fresh = []
