"""Mean and squared deviations as expressions: of rows, and of partials that merge.

The mean is kept in two doubles, so that its error is far below that of one.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def of_rows(names: Sequence[str], x: pl.Expr, n: pl.Expr) -> list[pl.Expr]:
    """Return mean, squared deviations and low part of the mean of the rows' values *x*, *n* in
    number, under *names*.
    """
    pivot = x.drop_nulls().first()
    above = x - pivot
    share = above.sum() / n
    apart = above - share
    m2 = (apart**2).sum() - apart.sum() ** 2 / n
    return _apart(names, pivot, share, m2, n)


def of_partials(names: Sequence[str], n: pl.Expr) -> list[pl.Expr]:
    """Merge the moments of partials, by Chan's rule about a common pivot."""
    mean, m2, low = (pl.col(name) for name in names)
    pivot = mean.filter(n > 0).first()
    above = (mean - pivot) + low
    total = n.sum()
    share = (above * n).sum() / total
    return _apart(names, pivot, share, m2.sum() + (n * (above - share) ** 2).sum(), total)


def _apart(
    names: Sequence[str], pivot: pl.Expr, share: pl.Expr, m2: pl.Expr, n: pl.Expr
) -> list[pl.Expr]:
    mean = pivot + share
    back = mean - pivot
    low = (pivot - (mean - back)) + (share - back)
    return [
        pl.when(n > 0).then(e).otherwise(0.0).alias(name)
        for e, name in zip((mean, m2, low), names, strict=True)
    ]
