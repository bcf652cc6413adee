"""The result of a query: an Arrow table, and what else people want of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Count(int):
    """A number of rows; `notices` holds what the gateway has to say about them."""

    notices: tuple[str, ...]

    def __new__(cls, rows: int, notices: Iterable[str] = ()) -> Self:
        made = super().__new__(cls, rows)
        made.notices = tuple(notices)
        return made


@dataclass(frozen=True)
class Result:
    """Rows of a query. Iterating gives tuples. `notices`: what the gateway has to say about what
    was written.
    """

    table: pa.Table
    notices: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.table.column_names)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as tuples of Python values; times are aware datetimes."""
        columns = [column.to_pylist() for column in self.table.columns]
        return list(zip(*columns, strict=True)) if columns else []

    def to_arrow(self) -> pa.Table:
        return self.table

    def to_polars(self) -> pl.DataFrame:
        import polars as pl

        frame = pl.from_arrow(self.table)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_pandas(self) -> pd.DataFrame:
        return self.table.to_pandas()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)
