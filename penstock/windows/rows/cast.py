"""Casts of result and tag values to the target table's column types, as expressions that never
raise.

Rules (docs/sql-streams.md, "Casts into a result table"): numbers to integers truncate toward zero;
what does not fit or does not parse is NULL; text longer than a VARCHAR (bytes) or NCHAR
(characters) is cut, at a character's border, as TDengine's CAST cuts it; BOOL becomes
`true`/`false` in text and 1/0 in numbers; timestamps are rescaled between precisions (toward the
past); a number becomes a TIMESTAMP of that many ticks.
"""

from __future__ import annotations

import polars as pl

from penstock.sql.functions.exact import finite, to_decimal, to_float
from penstock.sql.plan import TICKS_PER_SECOND
from penstock.types import SIZED, ColumnType


def cast_expression(
    value: pl.Expr, given: ColumnType, wanted: ColumnType, precision: str, target_precision: str
) -> pl.Expr:
    """*value* of type *given* as type *wanted*; *precision* counts the ticks of *value*,
    *target_precision* those of the result.
    """
    if wanted.kind == "TIMESTAMP":
        return _timestamp(value, given, precision, target_precision)
    if wanted.text:
        return _text(value, given, wanted)
    if wanted.kind == "VARBINARY":
        return _cut_bytes(
            value
            if given.kind == "VARBINARY"
            else _text(value, given, ColumnType("NCHAR")).cast(pl.Binary),
            wanted.length,
        )
    if given == wanted:
        return value
    if wanted.kind == "DECIMAL" and given.kind not in ("VARBINARY", *SIZED, "JSON"):
        return to_decimal(value.cast(pl.Int8) if given.kind == "BOOL" else value, given, wanted)
    if given.text:
        return _parse(value, wanted)
    if given.kind == "VARBINARY":
        return pl.lit(None, dtype=wanted.polars()) if not wanted.sized else value
    if given.kind in ("FLOAT", "DOUBLE", "DECIMAL") and wanted.integer:
        return _whole(value.cast(pl.Float64), wanted)
    if wanted.kind == "BOOL":
        return value != 0
    if wanted.kind == "FLOAT":
        return to_float(value)
    return value.cast(wanted.polars(), strict=False)


def _whole(value: pl.Expr, wanted: ColumnType) -> pl.Expr:
    value = pl.when(value.is_finite()).then(value)
    return (pl.when(value < 0).then(value.ceil()).otherwise(value.floor())).cast(
        wanted.polars(), strict=False
    )


def _parse(value: pl.Expr, wanted: ColumnType) -> pl.Expr:
    text = value.str.strip_chars()
    if wanted.kind == "BOOL":
        lower = text.str.to_lowercase()
        number = text.cast(pl.Float64, strict=False) != 0
        return (
            pl.when(lower == "true").then(True).when(lower == "false").then(False).otherwise(number)
        )
    if wanted.integer:
        exact = text.cast(wanted.polars(), strict=False)
        return pl.coalesce(exact, _whole(text.cast(pl.Float64, strict=False), wanted))
    if wanted.kind == "DECIMAL":
        exact = text.cast(pl.Decimal(38, wanted.scale), strict=False).cast(
            wanted.polars(), strict=False
        )
        return pl.coalesce(
            exact, to_decimal(text.cast(pl.Float64, strict=False), ColumnType("DOUBLE"), wanted)
        )
    number = text.cast(pl.Float64, strict=False)
    return to_float(number) if wanted.kind == "FLOAT" else finite(number)


def _timestamp(value: pl.Expr, given: ColumnType, precision: str, target_precision: str) -> pl.Expr:
    if given.kind != "TIMESTAMP":
        return (
            _parse(value, ColumnType("BIGINT"))
            if given.text
            else value.cast(pl.Int64, strict=False)
        )
    source = TICKS_PER_SECOND[precision]
    target = TICKS_PER_SECOND[target_precision]
    if source == target:
        return value
    if target < source:
        return value.floordiv(source // target)
    return (value.cast(pl.Int128) * (target // source)).cast(pl.Int64, strict=False)


def _text(value: pl.Expr, given: ColumnType, wanted: ColumnType) -> pl.Expr:
    if given.kind == "BOOL":
        value = pl.when(value).then(pl.lit("true")).when(value.not_()).then(pl.lit("false"))
    elif given.kind == "VARBINARY":
        value = value.cast(pl.String, strict=False)
    elif not given.text:
        value = value.cast(pl.String)
    if wanted.kind == "NCHAR" and wanted.length:
        return value.str.head(wanted.length)
    if (
        wanted.kind == "VARCHAR"
        and wanted.length
        and not (given.kind == "VARCHAR" and 0 < given.length <= wanted.length)
    ):
        # a character is at most four bytes, so only long texts need the slow cut
        fits = value.str.len_bytes() <= wanted.length
        return (
            pl.when(fits | value.is_null()).then(value).otherwise(_cut_text(value, wanted.length))
        )
    return value


def _cut_text(value: pl.Expr, length: int) -> pl.Expr:
    def cut(values: pl.Series) -> pl.Series:
        texts = [
            None if v is None else v.encode()[:length].decode(errors="ignore")
            for v in values.to_list()
        ]
        return pl.Series(values.name, texts, dtype=pl.String)

    return value.map_batches(cut, return_dtype=pl.String, is_elementwise=True)


def _cut_bytes(value: pl.Expr, length: int) -> pl.Expr:
    return value.bin.head(length) if length else value
