"""Numbers that are exact or NULL: what a type cannot hold is NULL, never a wrapped value and never
an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl

from penstock.types import ColumnType

#: whole doubles beyond it are further apart than one
_WHOLE = 2.0**53
_MICRO = 1_000_000
#: digits of a DECIMAL(38) that the number of rows leaves to each of them: ten thousand million rows
_MOST_DIGITS = 28

#: columns that an expression may name (each as often as it stands there) to be written twice, which
#: is the faster form
_LARGEST_REPEATED = 16


def finite(expr: pl.Expr) -> pl.Expr:
    """Give NULL for what has no value in mathematics (log of 0, root of -1) or overflows."""
    if len(expr.meta.root_names()) <= _LARGEST_REPEATED:
        return pl.when(expr.is_finite()).then(expr).otherwise(None)
    # naming a large expression twice would double it at each level of a sum: here it stands once
    value = pl.field("value")
    kept = pl.when(value.is_finite()).then(value).otherwise(None)
    return (
        pl.struct(expr.alias("value")).struct.with_fields(kept.alias("value")).struct.field("value")
    )


def decimal_sum(kind: ColumnType) -> ColumnType | None:
    """Return the type of an exact sum of numbers of *kind*; None: it is no DECIMAL, or one whose
    sums may have more digits than a DECIMAL has.
    """
    if kind.kind != "DECIMAL" or kind.precision > _MOST_DIGITS:
        return None
    return ColumnType("DECIMAL", precision=38, scale=kind.scale)


def to_decimal(number: pl.Expr, given: ColumnType, to: ColumnType) -> pl.Expr:
    """Convert *number* to DECIMAL; NULL for what has more digits than the type."""
    whole = to.precision - to.scale
    if given.kind in ("FLOAT", "DOUBLE"):
        number = number.cast(pl.Float64)
        number = pl.when(number.abs() < 10.0**whole).then(number)
    elif given.kind == "BIGINT UNSIGNED":
        number = number.cast(pl.Int128)
    wide = number.cast(pl.Decimal(38, to.scale), strict=False)
    # Casting between decimals is the one cast of polars that looks at the number of digits.
    return (
        wide.cast(pl.Decimal(to.precision, to.scale), strict=False) if to.precision < 38 else wide
    )


def to_float(number: pl.Expr) -> pl.Expr:
    """Convert *number* to FLOAT; NULL for what is too large."""
    return finite(number.cast(pl.Float32, strict=False))


def narrow(number: pl.Expr, kind: ColumnType) -> pl.Expr:
    """Give a wide integer *number* the type of *kind*; NULL for what does not fit."""
    return number.cast(kind.polars(), strict=False)


def tick_sum(left: pl.Expr, right: pl.Expr, minus: bool = False) -> pl.Expr:
    """Add (or subtract) two Int64 columns; NULL on overflow."""
    left = left.cast(pl.Int64)
    right = right.cast(pl.Int64)
    total = left - right if minus else left + right
    turned = (left ^ total) & ((left ^ right) if minus else (right ^ total))
    return pl.when(turned >= 0).then(total)


def quotient(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """Divide doubles so that a row has the same quotient whatever rows stand beside it.

    polars multiplies a column by the reciprocal of a constant, and only a row alone is divided by
    it.
    """
    if right.meta.root_names() or not left.meta.root_names():
        return left / right
    divisor = pl.select(right.cast(pl.Float64)).item()
    if divisor is None or _has_exact_reciprocal(divisor):
        return left / right
    divide = partial(_divide, divisor)
    return left.map_batches(divide, return_dtype=pl.Float64, is_elementwise=True)


def _has_exact_reciprocal(number: float) -> bool:
    mantissa, exponent = math.frexp(number)
    return abs(mantissa) == 0.5 and abs(exponent) < 1000


def _divide(divisor: float, numbers: pl.Series) -> pl.Series:
    with np.errstate(all="ignore"):
        found = numbers.to_numpy() / divisor
    return pl.Series(numbers.name, found, pl.Float64, nan_to_null=True)


def remainder(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """Compute `left % right` of doubles as C's fmod; NULL when *right* is 0."""
    left = left.cast(pl.Float64)
    right = right.cast(pl.Float64)
    return pl.map_batches([left, right], _fmod, return_dtype=pl.Float64, is_elementwise=True)


def _fmod(sides: Sequence[pl.Series]) -> pl.Series:
    left, right = sides
    with np.errstate(invalid="ignore"):
        found = np.fmod(left.to_numpy(), right.to_numpy())
    return pl.Series(left.name, found, pl.Float64, nan_to_null=True)


def round_whole(number: pl.Expr, digits: pl.Expr, kind: ColumnType, nearest: bool) -> pl.Expr:
    """Round (or cut) an integer to tens, hundreds… as negative *digits* say; NULL when the result
    does not fit.
    """
    wide = number.cast(pl.Int128)
    places = (-digits).clip(0, 20).cast(pl.UInt32)
    unit = pl.lit(10, pl.Int128).pow(places)
    size = wide.abs() + (unit // 2 if nearest else 0)
    size = size // unit * unit
    return narrow(pl.when(wide < 0).then(0 - size).otherwise(size), kind)


def double_text(number: pl.Expr) -> pl.Expr:
    """Write doubles with six digits behind the point as C's `%f`; beyond 2^53 with the shortest
    digits that read back.
    """
    return number.cast(pl.Float64).map_batches(
        _double_text, return_dtype=pl.String, is_elementwise=True
    )


def _double_text(numbers: pl.Series) -> pl.Series:
    values = numbers.to_numpy()
    size = np.abs(values)
    with np.errstate(invalid="ignore"):
        whole = np.trunc(np.where(size < _WHOLE, size, 0.0))
        part = np.where(size < _WHOLE, size - whole, 0.0) * _MICRO
    micro = np.rint(part)
    ticks = whole.astype(np.int64) + (micro == _MICRO)
    left = np.where(micro == _MICRO, 0, micro).astype(np.int64)
    made = pl.select(
        pl.concat_str(
            pl.Series(np.where(np.signbit(values), "-", "")),
            pl.Series(ticks).cast(pl.String),
            pl.lit("."),
            pl.Series(left).cast(pl.String).str.zfill(6),
        )
    ).to_series()
    # The product of a half is not always rounded the way its digits are.
    half = np.abs(part - np.floor(part) - 0.5) < 1e-3
    odd = np.isnan(values) & numbers.is_not_null().to_numpy()
    rare = np.flatnonzero((size >= _WHOLE) | half | odd)
    if len(rare):
        made = made.scatter(rare, [_rare_text(float(values[i])) for i in rare])
    return made.zip_with(numbers.is_not_null(), pl.Series([None], dtype=pl.String)).alias(
        numbers.name
    )


def _rare_text(value: float) -> str | None:
    if not np.isfinite(value):
        return None
    return f"{value:.6f}" if abs(value) < _WHOLE else _large(value)


def _large(value: float) -> str:
    digits, _, power = repr(value).partition("e")
    if not power:
        return digits.removesuffix(".0") + ".000000"
    lead, _, rest = digits.partition(".")
    return lead + rest.ljust(int(power), "0") + ".000000"
