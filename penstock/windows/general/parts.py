"""A piece of an aggregate's partial state: its columns, how rows make it, how two of it merge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from penstock.windows.accumulate import moments, sketches

PartKind = Literal["n", "sum", "min", "max", "moments", "pick", "digest", "distinct", "values"]


@dataclass(frozen=True)
class Part:
    """A piece of partial state. `argument` is the index of `_x…` (-1: whole rows).

    `columns` are its columns in a partial frame; `n`, `sum`, `min` and `max` have just one, which
    merges element by element. A pick has value, time, [composite key], then its companions' values.
    """

    kind: PartKind
    argument: int
    columns: tuple[str, ...]
    dtype: pl.DataType
    order: str = ""
    companions: tuple[int, ...] = ()

    @property
    def elementwise(self) -> bool:
        """Whether it is one machine number that merges by adding, min or max."""
        return (
            self.kind in ("n", "sum", "min", "max")
            and self.dtype.is_numeric()
            and not self.dtype.is_decimal()
        )


def expressions_of_rows(part: Part, time: str, key: str | None) -> list[pl.Expr]:
    """Return what makes *part* of the rows of one key, an expression a column.

    Rows hold the evaluated arguments `_x…`, their register codes `_h…`, the *time* column and the
    composite *key* column, and are in the order of these two.
    """
    names = part.columns
    x = pl.col(f"_x{part.argument}")
    if part.kind == "pick":
        return _pick_from_rows(part, x, time, key)
    if part.kind == "moments":
        return moments.of_rows(names, x.cast(pl.Float64), x.count())
    if part.kind == "digest":
        values = x.drop_nulls().cast(pl.Float64)
        weights = pl.lit(1.0).repeat_by(x.count()).first()
        return [values.alias(names[0]), weights.alias(names[1])]
    if part.kind == "n":
        number = pl.len() if part.argument < 0 else x.count()
        return [number.cast(pl.Int64).alias(names[0])]
    made = {
        "sum": x.cast(part.dtype).sum(),
        "min": x.min(),
        "max": x.max(),
        "values": x.drop_nulls(),
        "distinct": pl.col(f"_h{part.argument}").drop_nulls().unique(),
    }
    return [made[part.kind].alias(names[0])]


def _pick_from_rows(part: Part, x: pl.Expr, time: str, key: str | None) -> list[pl.Expr]:
    named = [*filter(None, (time, key)), *(f"_x{c}" for c in part.companions)]
    sources = [x, *map(pl.col, named)]
    if part.order in ("min", "max"):
        best = x.min() if part.order == "min" else x.max()
        chosen = [s.filter(x == best).first() for s in sources]
    else:
        if part.order != "last_row":
            sources = [s.filter(x.is_not_null()) for s in sources]
        chosen = [s.first() if part.order == "first" else s.last() for s in sources]
    return [c.alias(name) for c, name in zip(chosen, part.columns, strict=True)]


def expressions_of_partials(part: Part, count: str | None, key: str | None) -> list[pl.Expr]:
    """Return what merges lines of *part* that belong to one key, older ones first.

    *count*: for moments, the column with the number of values. *key*: the composite key column.
    """
    columns = [pl.col(c) for c in part.columns]
    if part.kind == "moments":
        assert count is not None
        return moments.of_partials(part.columns, pl.col(count))
    if part.kind == "pick":
        return _pick_from_partials(part, columns, with_key=key is not None)
    if part.kind in ("digest", "distinct", "values"):
        return [c.explode(empty_as_null=False, keep_nulls=False) for c in columns]
    only = columns[0]
    if part.kind == "min":
        return [only.min()]
    return [only.max() if part.kind == "max" else only.sum()]


def _pick_from_partials(part: Part, columns: Sequence[pl.Expr], *, with_key: bool) -> list[pl.Expr]:
    value = columns[0]
    time = columns[1]
    valid = time.is_not_null()
    order = [value, time] if part.order in ("min", "max") else columns[1 : 3 if with_key else 2]
    keys = [o.filter(valid) for o in order]
    descending = [part.order == "max", *(False for _ in keys[1:])]
    ranked = [
        c.filter(valid).sort_by(keys, descending=descending, maintain_order=True) for c in columns
    ]
    return [r.last() if part.order in ("last", "last_row") else r.first() for r in ranked]


def compress(partials: pl.DataFrame, parts: Iterable[Part]) -> pl.DataFrame:
    """Return *partials* with sketches cut down to their size."""
    for part in parts:
        if part.kind == "digest":
            partials = sketches.compress_digests(partials, *part.columns)
        elif part.kind == "distinct":
            partials = sketches.compress_registers(partials, part.columns[0])
    return partials
