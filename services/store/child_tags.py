"""Child tables as rows that a query reads: the name and the tags of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from penstock.catalog.child_tags import Tagged
from penstock.catalog.model import Table
from penstock.rows import tag_values
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
    series = tag_values.to_series(tag.name, tag.type, values)
    if tag.type.kind == "TIMESTAMP":
        return series.cast(pl.Datetime(precision))  # type: ignore[arg-type]
    return series
