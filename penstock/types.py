"""Column types: TDengine's names, and what each is in Avro, Arrow, polars and DuckDB.

One frozen `ColumnType` is used everywhere a column is described (catalog, plan, codec, store). In
polars frames a TIMESTAMP is an `Int64` of ticks (exact, and arithmetic stays cheap); on the wire
and in segments it is a real timestamp of the database's precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    # clients know types, too, and have no polars
    import polars as pl

#: kind → (name of the polars type, TDengine REST type name, bytes)
_FIXED: dict[str, tuple[str, str, int]] = {
    "BOOL": ("Boolean", "BOOL", 1),
    "TINYINT": ("Int8", "TINYINT", 1),
    "SMALLINT": ("Int16", "SMALLINT", 2),
    "INT": ("Int32", "INT", 4),
    "BIGINT": ("Int64", "BIGINT", 8),
    "TINYINT UNSIGNED": ("UInt8", "TINYINT UNSIGNED", 1),
    "SMALLINT UNSIGNED": ("UInt16", "SMALLINT UNSIGNED", 2),
    "INT UNSIGNED": ("UInt32", "INT UNSIGNED", 4),
    "BIGINT UNSIGNED": ("UInt64", "BIGINT UNSIGNED", 8),
    "FLOAT": ("Float32", "FLOAT", 4),
    "DOUBLE": ("Float64", "DOUBLE", 8),
    "TIMESTAMP": ("Int64", "TIMESTAMP", 8),
    "JSON": ("String", "JSON", 4095),
}
#: Arrow's types that one of ours is exactly
FROM_ARROW: dict[pa.DataType, str] = {
    pa.bool_(): "BOOL",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.uint8(): "TINYINT UNSIGNED",
    pa.uint16(): "SMALLINT UNSIGNED",
    pa.uint32(): "INT UNSIGNED",
    pa.uint64(): "BIGINT UNSIGNED",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
}
_TO_ARROW = {kind: arrow for arrow, kind in FROM_ARROW.items()}
#: first and last time of each precision in ticks: years 1 to 9999, and what fits into 64 bits of
#: nanoseconds
TIME_LIMITS: dict[str, tuple[int, int]] = {
    "ms": (-62_135_596_800_000, 253_402_300_799_999),
    "us": (-62_135_596_800_000_000, 253_402_300_799_999_999),
    "ns": (-(2**63) + 1, 2**63 - 1),
}
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
SIZED = ("VARCHAR", "NCHAR", "VARBINARY")
#: every type that a column can have
KINDS = (*_FIXED, *SIZED, "DECIMAL")


@dataclass(frozen=True)
class ColumnType:
    """`kind` is upper case (`INT UNSIGNED`); `length` for VARCHAR/NCHAR/VARBINARY, `precision,
    scale` for DECIMAL.
    """

    kind: str
    length: int = 0
    precision: int = 0
    scale: int = 0

    @property
    def sized(self) -> bool:
        return self.kind in SIZED

    @property
    def numeric(self) -> bool:
        return (
            self.kind in _FIXED
            and self.kind not in ("BOOL", "TIMESTAMP", "JSON")
            or self.kind == "DECIMAL"
        )

    @property
    def integer(self) -> bool:
        return self.kind in _FIXED and self.numeric and self.kind not in ("FLOAT", "DOUBLE")

    @property
    def text(self) -> bool:
        return self.kind in ("VARCHAR", "NCHAR", "JSON")

    def polars(self) -> pl.DataType:
        """Type inside polars frames (TIMESTAMP: Int64 ticks)."""
        import polars as pl

        if self.kind == "DECIMAL":
            return pl.Decimal(self.precision, self.scale)
        if self.kind == "VARBINARY":
            return pl.Binary()
        if self.sized:
            return pl.String()
        return getattr(pl, _FIXED[self.kind][0])()  # type: ignore[no-any-return]

    def arrow(self, precision: str = "ms") -> pa.DataType:
        """Type on the wire and in segments; *precision* is the database's."""
        if self.kind == "TIMESTAMP":
            return pa.timestamp(precision, "UTC")
        if self.kind == "DECIMAL":
            return pa.decimal128(self.precision, self.scale)
        if self.kind == "VARBINARY":
            return pa.binary()
        if self.text:
            return pa.string()
        return _TO_ARROW[self.kind]

    def bytes(self) -> int:
        """Size that TDengine reports in `column_meta` and DESCRIBE."""
        if self.kind == "DECIMAL":
            return 16 if self.precision > 18 else 8
        return self.length if self.sized else _FIXED[self.kind][2]

    def __str__(self) -> str:
        if self.sized:
            return f"{self.kind}({self.length})"
        if self.kind == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        return self.kind


def to_ticks(times: pl.Series, precision: str) -> pl.Series:
    """Ticks of a column of dates or times; those beyond 64 bits are the least number, which is no
    time of any precision.
    """
    import polars as pl

    if isinstance(times.dtype, pl.Datetime):
        unit = _PER_SECOND[times.dtype.time_unit]
        if unit >= _PER_SECOND[precision]:
            return times.dt.cast_time_unit(precision).cast(pl.Int64)  # type: ignore[arg-type]
        factor = _PER_SECOND[precision] // unit
    else:
        factor = 86_400 * _PER_SECOND[precision]
    counts = times.cast(pl.Int64 if isinstance(times.dtype, pl.Datetime) else pl.Int32).cast(
        pl.Int64
    )
    most = (2**63 - 1) // factor
    inside = counts.is_between(-most, most).fill_null(value=True)
    return (counts * factor).zip_with(inside, pl.Series(times.name, [-(2**63)], dtype=pl.Int64))


def in_range(ticks: pl.Series, limits: tuple[int, int]) -> pl.Series:
    """*ticks* with NULL for what is no time of their precision; mostly as they are."""
    low, high = limits
    least = ticks.min()
    most = ticks.max()
    if not isinstance(least, int) or not isinstance(most, int) or (low <= least and most <= high):
        return ticks
    import polars as pl

    inside = ticks.is_between(low, high)
    return ticks.zip_with(
        inside.fill_null(value=False), pl.Series(ticks.name, [None], dtype=ticks.dtype)
    )
