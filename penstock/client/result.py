"""The result of a query: an Arrow table, and what else people want of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from penstock import installed
from penstock.notebook.markup import SHOWN_ROWS, table_html

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
        """Return a polars frame. Raises ConfigError: polars is not installed."""
        frame: pl.DataFrame = installed.load("polars", "polars").from_arrow(self.table)
        return frame

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame. Raises ConfigError: pandas is not installed."""
        installed.require(("pandas",), "pandas")
        return self.table.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as Arrow's C stream: `polars.DataFrame(result)`, `pyarrow.table(result)`,
        and DuckDB read it without a copy.
        """
        return self.table.__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        """Return the rows by the interchange protocol of data frames."""
        return self.table.__dataframe__(nan_as_null, allow_copy)

    def _repr_html_(self) -> str:
        """Return the first rows as a notebook shows them."""
        first = Result(self.table.slice(0, SHOWN_ROWS)).rows
        return table_html(self.columns, first, len(self) - len(first))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)
