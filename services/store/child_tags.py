"""Child tables as rows that a query reads: the name and the tags of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from penstock.catalog.child_tags import Tagged
from penstock.catalog.model import Table
from penstock.sql.plan import Column


def rows_of_tags(table: Table, children: Sequence[Tagged]) -> pl.DataFrame:
    """Return a row for each child table of *table*, in the order of their names."""
    ordered = sorted(children, key=lambda child: child[0])
    columns = [pl.Series("tbname", [name for name, _ in ordered], dtype=pl.String)]
    for at, tag in enumerate(table.tags):
        # a child table that is older than a tag has no value of it
        values = [tags[at] if at < len(tags) else None for _, tags in ordered]
        columns.append(_series(tag, values, table.precision))
    return pl.DataFrame(columns)


def _series(tag: Column, values: Sequence[Any], precision: str) -> pl.Series:
    kind = tag.type.polars()
    if tag.type.kind == "DECIMAL":
        texts = [None if value is None else str(value) for value in values]
        return pl.Series(tag.name, texts, dtype=pl.String).cast(kind)
    if tag.type.kind == "VARBINARY":
        values = [bytes.fromhex(v) if isinstance(v, str) else v for v in values]
    series = pl.Series(tag.name, values, dtype=kind, strict=False)
    if tag.type.kind == "TIMESTAMP":
        return series.cast(pl.Datetime(precision))  # type: ignore[arg-type]
    return series
