"""The columns of a chunk that streams aggregate, worked out once for all of them."""

from __future__ import annotations

from functools import cached_property

import polars as pl

from penstock.windows.assign.calls import Array, as_numbers
from penstock.windows.assign.exact_sums import ExactSums, exact_sums
from penstock.windows.clocks.ticks import Ticks
from penstock.windows.groups.key_index import Numbers


class ChunkColumns:
    """All rows of a chunk, and the arguments that streams aggregate, by their text."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows
        self._arguments: dict[object, pl.Series] = {}
        self._numbers: dict[object, Array] = {}
        self._exact: dict[object, ExactSums | None] = {}

    def put(self, argument: object, values: pl.Series) -> None:
        """Keep the values of an argument, one a row."""
        self._arguments[argument] = values

    def holds(self, argument: object) -> bool:
        return argument in self._arguments

    def values(self, argument: object) -> pl.Series:
        return self._arguments[argument]

    def numbers(self, argument: object, dtype: pl.DataType, nothing: float) -> Array:
        """The values as machine numbers, *nothing* for NULL."""
        key = (argument, dtype, nothing)
        if key not in self._numbers:
            self._numbers[key] = as_numbers(self.values(argument), dtype, nothing)
        return self._numbers[key]

    def exact(self, argument: object) -> ExactSums | None:
        """What is known of sums of the values as doubles; None: they may be rounded."""
        if argument not in self._exact:
            self._exact[argument] = exact_sums(self.numbers(argument, pl.Float64(), 0))
        return self._exact[argument]

    @cached_property
    def appended(self) -> Ticks:
        return self.rows.get_column("_now").to_numpy()

    @cached_property
    def steps(self) -> Numbers:
        return self.rows.get_column("_step").to_numpy()
