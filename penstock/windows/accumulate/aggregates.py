"""A plan's aggregates: per-row arguments, partial results that merge, final values.

Owns what each function keeps and how two pieces of it become one. A *partial* is a frame with one
line per key and one or several columns per part; parts are shared, so `count(v), avg(v), stddev(v)`
keep one count of `v`.

    arguments                  what is evaluated as `_x0…`
    partial(rows, by)          one line per key
    merge(partials, by)        lines of the same key become one; older lines must come first
    finalise(partials, by)     `by` + `_a0…`
    compute(rows, by)          all of it for rows that are labelled with their window already

NULL and NaN arguments are skipped (`last_row` takes NULL). Ties: `first` takes the smallest (ts,
composite key) and of equals the earliest arrived, `last` the largest and of equals the latest
arrived; companions of min and max come from the row with the earliest ts. Refuses to know windows,
groups and time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from penstock.sql.functions.exact import finite
from penstock.sql.plan import Aggregate
from penstock.types import ColumnType
from penstock.windows.accumulate import sketches
from penstock.windows.accumulate.arguments import ROWS, Arguments
from penstock.windows.emit.projection import (
    Projection,
    Quick,
    cast_to,
    taken,
    where_above_0,
)
from penstock.windows.general.parts import (
    Part,
    PartKind,
    compress,
    expressions_of_partials,
    expressions_of_rows,
)
from penstock.windows.rows import columnwise
from penstock.windows.rows.scope import USER, Scope


class _Value(NamedTuple):
    """An aggregate's value from partials: as an expression, the type that it is cast to (None: as
    it is), and without a query.
    """

    expr: pl.Expr
    kind: pl.DataType | None
    quick: Quick | None = None


_Values = dict[str, _Value]
#: order of a sum that is kept as a double beside one of 64 bits: it tells how often that one has
#: wrapped
_ROUGH = "rough"
#: integers whose sums may leave 64 bits
_WIDE = ("BIGINT", "BIGINT UNSIGNED")
_TURN = 2.0**64
#: a rough sum within it says that the exact one has not wrapped
_SAFE = 2.0**62
_PICKS = ("first", "last", "last_row", "min", "max")


class Aggregates:
    """The aggregates of one plan, compiled."""

    def __init__(self, scope: Scope) -> None:
        plan = scope.plan
        self.time = plan.source.time_column
        self.key = plan.source.key_column
        self.items: tuple[Aggregate, ...] = plan.aggregates
        #: what is evaluated as `_x0…`
        self.arguments = Arguments(scope)
        self._parts: dict[tuple[PartKind, int, str, str], Part] = {}
        final: _Values = {}
        for item in self.items:
            if item.function != "companion":
                final |= self._values_of(item)
        # Their parts come last, and those of averages first, so that those of a state that was
        # saved without them keep their names.
        for function in ("avg", "sum"):
            for item in self.items:
                if item.function == function and self.wide(item):
                    final[item.name] = self._unwrap(item)
        values = [(item.name, *final[item.name]) for item in self.items]
        self._finals = Projection(
            [
                (expr if kind is None else expr.cast(kind, strict=False)).alias(name)
                for name, expr, kind, _ in values
            ],
            [
                cast_to(kind, quick) if kind is not None and quick is not None else None
                for *_, kind, quick in values
            ],
        )
        self.parts: tuple[Part, ...] = tuple(self._parts.values())
        #: whether every part is one number that merges by adding, min or max
        self.elementwise = all(p.elementwise for p in self.parts)
        self.columns: tuple[str, ...] = tuple(c for p in self.parts for c in p.columns)

    # ---------------------------------------------------------------- building

    def _part(self, kind: PartKind, argument: int, order: str = "", of: str = "") -> Part:
        known = self._parts.get((kind, argument, order, of))
        if known is not None:
            return known
        name = f"_p{len(self._parts)}"
        columns: tuple[str, ...] = (name,)
        companions: tuple[int, ...] = ()
        of_rows = argument == ROWS or kind == "n"
        dtype: pl.DataType = pl.Int64() if of_rows else self.arguments.type_of(argument).polars()
        if kind == "sum":
            dtype = pl.Float64() if order == _ROUGH else _sum_type(self.arguments.type_of(argument))
        elif kind == "moments":
            columns = (f"{name}.mean", f"{name}.m2", f"{name}.low")
            dtype = pl.Float64()
        elif kind == "digest":
            columns = (f"{name}.m", f"{name}.w")
        elif kind == "pick":
            companions = tuple(
                self.arguments.number(a.sql)
                for a in self.items
                if a.function == "companion" and a.of == of
            )
            key = (f"{name}.k",) if self.key else ()
            columns = (name, f"{name}.t", *key, *(f"{name}.c{i}" for i in range(len(companions))))
        part = Part(kind, argument, columns, dtype, order, companions)
        self._parts[kind, argument, order, of] = part
        return part

    def _values_of(self, item: Aggregate) -> _Values:
        """The aggregate's value from its partials, and those of its companions: each with the type
        it is cast to.
        """
        argument = self.arguments.number(item.sql)
        function = item.function
        if function.startswith(USER):
            # the values themselves: the function is called where its result is used
            return {item.name: _Value(pl.col(self._part("values", argument).columns[0]), None)}
        if function in ("first", "last", "last_row") or (
            function in ("min", "max") and self._has_companions(item)
        ):
            return self._add_pick(item, argument)
        quick: Quick | None = None
        if function == "apercentile":
            means, weights = self._part("digest", argument).columns
            expr = sketches.quantile(means, weights, float(item.params[0]) / 100.0)
        elif function == "hyperloglog":
            expr = sketches.distinct_estimate(self._part("distinct", argument).columns[0])
        else:
            expr, quick = self._add_number(function, argument)
        return {item.name: _Value(expr, item.type.polars(), quick)}

    def _add_pick(self, item: Aggregate, argument: int) -> _Values:
        part = self._part("pick", argument, item.function, item.name)
        mine = [a for a in self.items if a.function == "companion" and a.of == item.name]
        made: _Values = {
            companion.name: _Value(pl.col(column), companion.type.polars(), taken(column))
            for companion, column in zip(
                mine, part.columns[len(part.columns) - len(mine) :], strict=True
            )
        }
        return made | {
            item.name: _Value(pl.col(part.columns[0]), item.type.polars(), taken(part.columns[0]))
        }

    def _add_number(self, function: str, argument: int) -> tuple[pl.Expr, Quick | None]:
        """The value, and for what most windows ask a way to it that needs no query where each
        window has a value.
        """
        count = self._part("n", argument).columns[0]
        n = pl.col(count)
        if function == "count":
            return n, taken(count)
        if function == "sum":
            part = self._part("sum", argument)
            total = part.columns[0]
            added = pl.when(n > 0).then(pl.col(total))
            if not part.dtype.is_float():
                return added, where_above_0(count, lambda rows: rows.get_column(total))
            return finite(added), where_above_0(
                count, lambda rows: _if_finite(rows.get_column(total))
            )
        if function == "avg":
            total = self._part("sum", argument).columns[0]
            mean = finite(pl.when(n > 0).then(pl.col(total).cast(pl.Float64) / n))
            return mean, where_above_0(
                count,
                lambda rows: _if_finite(
                    rows.get_column(total).cast(pl.Float64) / rows.get_column(count)
                ),
            )
        if function in ("min", "max"):
            found = self._part("min" if function == "min" else "max", argument).columns[0]
            return pl.when(n > 0).then(pl.col(found)), where_above_0(
                count, lambda rows: rows.get_column(found)
            )
        if function == "spread":
            low, high = (
                pl.col(self._part(kind, argument).columns[0]).cast(pl.Float64)
                for kind in ("min", "max")
            )
            return finite(pl.when(n > 0).then(high - low)), None
        if function in ("stddev", "stddev_pop", "var_pop", "stddev_samp", "var_samp"):
            m2 = pl.col(self._part("moments", argument).columns[1])
            least = 2 if function.endswith("_samp") else 1
            variance = finite(pl.when(n >= least).then(m2 / (n - (least - 1))))
            return variance if function.startswith("var") else variance.sqrt(), None
        raise ValueError(f"unknown aggregate {function}")

    def wide(self, item: Aggregate) -> bool:
        """Tell whether a sum over the item's argument may leave 64 bits."""
        argument = self.arguments.number(item.sql)
        return argument != ROWS and self.arguments.type_of(argument).kind in _WIDE

    def _unwrap(self, item: Aggregate) -> _Value:
        """The mean or sum of integers whose sum of 64 bits may have wrapped: a sum that its type
        cannot hold is NULL.
        """
        argument = self.arguments.number(item.sql)
        count = self._part("n", argument).columns[0]
        total = self._part("sum", argument).columns[0]
        rough = self._part("sum", argument, _ROUGH).columns[0]
        wrapped = pl.col(total).cast(pl.Float64)
        turns = ((pl.col(rough) - wrapped) / _TURN).round().cast(pl.Int128)
        exact = pl.col(total).cast(pl.Int128) + turns * pl.lit(1 << 64, pl.Int128)
        mean = item.function == "avg"

        def quick(rows: pl.DataFrame) -> pl.Series | None:
            about = rows.get_column(rough)
            if not rows.height or not bool((about.abs() < _SAFE).all()):
                return None
            added = rows.get_column(total)
            return added.cast(pl.Float64) / rows.get_column(count) if mean else added

        value = exact.cast(pl.Float64) / pl.col(count) if mean else exact
        return _Value(
            pl.when(pl.col(count) > 0).then(value), item.type.polars(), where_above_0(count, quick)
        )

    def held(self, kind: PartKind, item: Aggregate, rough: bool = False) -> Part:
        """The part of a kind that the value of *item* is made from; there is one."""
        argument = self.arguments.number(item.sql)
        return self._parts[kind, argument, _ROUGH if rough else "", ""]

    def completed(self, partials: pl.DataFrame) -> pl.DataFrame:
        """Add the columns that partials saved by an earlier version lack."""
        lacking: list[pl.Series] = []
        for part in self.parts:
            name = part.columns[-1]
            if name in partials.columns:
                continue
            if part.kind == "moments":
                lacking.append(pl.repeat(0.0, partials.height, eager=True).alias(name))
            elif part.order == _ROUGH:
                total = partials.get_column(self._parts["sum", part.argument, "", ""].columns[0])
                lacking.append(total.cast(pl.Float64).alias(name))
        return partials.hstack(lacking) if lacking else partials

    def _has_companions(self, item: Aggregate) -> bool:
        return any(a.of == item.name for a in self.items)

    # ---------------------------------------------------------------- running

    def pick_schema(self, part: Part) -> dict[str, pl.DataType]:
        """Columns of a pick and their types."""
        companions = (self.arguments.type_of(c).polars() for c in part.companions)
        types = [part.dtype, pl.Int64(), *companions]
        return dict(zip((c for c in part.columns if not c.endswith(".k")), types, strict=True))

    def partial(
        self,
        rows: pl.DataFrame,
        by: Sequence[str],
        ordered: bool = False,
        parts: tuple[Part, ...] | None = None,
    ) -> pl.DataFrame:
        """Partials of *rows* (with `_x…`, time and composite-key columns), one line per value of
        *by*.

        *ordered*: the rows of each key are in (time, composite key) order already. *parts*: only
        these.
        """
        parts = self.parts if parts is None else parts
        if any(p.kind == "pick" for p in parts) and not ordered:
            rows = rows.sort([self.time, self.key] if self.key else self.time, maintain_order=True)
        rows = _with_codes(rows, parts)
        made = rows.group_by(list(by), maintain_order=True).agg(
            [e for p in parts for e in expressions_of_rows(p, self.time, self.key)]
        )
        return compress(made, parts)

    def merge(
        self, partials: pl.DataFrame, by: Sequence[str], parts: tuple[Part, ...] | None = None
    ) -> pl.DataFrame:
        """Lines of one key become one. Of two lines that tie the upper counts as the earlier."""
        parts = self.parts if parts is None else parts
        made = partials.group_by(list(by), maintain_order=True).agg(
            [e for p in parts for e in expressions_of_partials(p, self._count_of(p), self.key)]
        )
        return compress(made, parts)

    def _count_of(self, part: Part) -> str | None:
        """Return the column with the number of values of *part*'s argument, if it needs one."""
        return self._part("n", part.argument).columns[0] if part.kind == "moments" else None

    def finalise(self, partials: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """Final values: *by* and `_a0…`."""
        return columnwise.beside(
            [*(partials.get_column(n) for n in by), *self._finals.columns(partials)]
        )

    def compute(self, rows: pl.DataFrame, by: Sequence[str], ordered: bool = True) -> pl.DataFrame:
        """Final values of rows labelled with *by*; rows of one key must be in time order unless
        *ordered* is False.
        """
        rows = rows.with_columns(self.arguments.expressions)
        return self.finalise(self.partial(rows, by, ordered), by)


def _with_codes(rows: pl.DataFrame, parts: Sequence[Part]) -> pl.DataFrame:
    """Return *rows* with `_h…`, the register codes of the arguments that are counted apart."""
    distinct = [p.argument for p in parts if p.kind == "distinct"]
    return rows.with_columns(
        sketches.register_codes(rows.get_column(f"_x{i}")).alias(f"_h{i}") for i in distinct
    )


def unwrapped(total: int, rough: float) -> int:
    """The exact sum that *total* is modulo 2^64 and that is near *rough*."""
    return int(total) + (round((rough - total) / _TURN) << 64)


def _if_finite(values: pl.Series) -> pl.Series | None:
    # a method of a Series that polars writes as an expression is a query of its own
    found = values.is_finite() if values.null_count() else np.isfinite(values.to_numpy())
    return values if found.all() else None


def _sum_type(argument: ColumnType) -> pl.DataType:
    """TDengine: integers add up to BIGINT, unsigned ones to BIGINT UNSIGNED, the rest to DOUBLE."""
    if argument.kind == "DECIMAL":
        return pl.Decimal(38, argument.scale)
    if argument.kind.endswith("UNSIGNED"):
        return pl.UInt64()
    return (
        pl.Int64() if argument.integer or argument.kind in ("BOOL", "TIMESTAMP") else pl.Float64()
    )
