"""Plain SESSION windows without the kernels: rows are sorted once by partition and time and
numbered by session, and DuckDB groups them by number.

As with INTERVAL (`interval_sql`), only what both compute alike: aggregates whose answer does not
depend on the order of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from penstock.sql.plan import Session, StreamPlan
from services.store.interval_sql import PlanWriter
from services.store.relation import quote
from services.store.times import TICKS

#: number of a row's session
_NUMBER = "_session"


@dataclass(frozen=True)
class SessionWindows:
    """The sessions of a plan. `rows`: SELECT of what they are made of; `shown`: what is selected of
    each; `keys`: how many columns tell partitions apart.
    """

    rows: str
    shown: str
    keys: int
    tolerance: int

    def sql(self, relation: str) -> str:
        """Return the SELECT of the sessions, times in ticks.

        Args:
            relation: name of the numbered rows.
        """
        groups = ", ".join([_NUMBER, *_keys(self.keys)])
        return f"SELECT {self.shown} FROM {relation} GROUP BY {groups}"

    def numbered(self, rows: pl.DataFrame) -> pl.DataFrame | None:
        """Return the rows with the numbers of their sessions; None: the kernels must look at them.

        Args:
            rows: of the SELECT of them.
        """
        if rows.get_column("_t").null_count():
            return None
        return number(rows, self.keys, self.tolerance)


def sessions(plan: StreamPlan, rows: str) -> SessionWindows | None:
    """Return the sessions of a plan; None where the kernels must compute them.

    Args:
        rows: FROM and WHERE of the rows that count.
    """
    window = plan.window
    if not isinstance(window, Session) or plan.fill.mode != "none" or plan.functions:
        return None
    if plan.target.precision != plan.source.precision:
        return None
    tolerance = window.tolerance.ticks(plan.source.precision)
    writer = PlanWriter(plan)
    values = writer.values() | {"_wstart": "min(_t)", "_wend": f"max(_t) + {tolerance}"}
    shown = [values.get(output.sql) for output in plan.outputs]
    if None in shown or not writer.groups_alike():
        return None
    listed = ", ".join(
        f"{value} AS {quote(c.name)}" for value, c in zip(shown, plan.target.columns, strict=True)
    )
    time = f"{TICKS[plan.source.precision]}({quote(plan.source.time_column)}) AS _t"
    return SessionWindows(writer.select([time], rows), listed, len(plan.keys), tolerance)


def number(rows: pl.DataFrame, keys: int, tolerance: int) -> pl.DataFrame:
    """Return rows by partition and time, with the number of their session: a gap longer than
    *tolerance* begins another.

    Args:
        rows: `_t`, and `_k0`, `_k1`…, which tell partitions apart.
    """
    codes = [_code(rows.get_column(key)).rename(f"_code{i}") for i, key in enumerate(_keys(keys))]
    names = [code.name for code in codes]
    rows = rows.with_columns(codes).sort(*names, "_t")
    first = pl.col("_t").diff() > tolerance
    for name in names:
        first |= pl.col(name).ne_missing(pl.col(name).shift())
    numbers = first.fill_null(False).cum_sum().cast(pl.UInt32)
    return rows.with_columns(numbers.alias(_NUMBER)).drop(names)


def _keys(count: int) -> list[str]:
    return [f"_k{i}" for i in range(count)]


def _code(values: pl.Series) -> pl.Series:
    """Return numbers that differ where *values* do: they are sorted sooner than texts."""
    if values.dtype == pl.String:
        return values.cast(pl.Categorical).to_physical()
    return values
