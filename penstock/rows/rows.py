"""Rows in one of two forms: a frame, or a few of them as Python values.

The stream jobs get most records one by one, and what a frame, a query or an array costs is the same
for one row as for hundreds. The codec therefore reads a few rows as values. They may go a short way
from their record to their result; it is a short cut and never a meaning of its own. Whoever takes
rows does exactly the same with both forms, or asks for the frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import polars as pl


class Rows:
    """Rows of a table. Nobody changes them."""

    def __init__(
        self, values: Mapping[str, list[Any]], layout: Mapping[str, Any], frame: pl.DataFrame | None
    ) -> None:
        """Use `of_frame` or `of_values` instead."""
        #: of each column, all of one length; without any where there is a frame
        self.values = values
        self._layout = layout
        self._given = frame

    @classmethod
    def of_frame(cls, frame: pl.DataFrame) -> Rows:
        """Return the rows of *frame*, in this form."""
        return cls({}, {}, frame)

    @classmethod
    def of_values(cls, values: Mapping[str, list[Any]], layout: Mapping[str, Any]) -> Rows:
        """Return a few rows as values.

        Args:
            values: of each column.
            layout: the columns' types, in the order that they have in a frame.
        """
        return cls(values, layout, None)

    def __len__(self) -> int:
        if self._given is not None:
            return self._given.height
        return len(next(iter(self.values.values())))

    @property
    def few(self) -> bool:
        """Tell whether the rows are values: then no column has to be turned into them."""
        return self._given is None

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The rows as a frame, for who cannot do without."""
        if self._given is not None:
            return self._given
        # by rows: polars makes a few of them in a third of the time that as many columns take
        return pl.DataFrame(
            list(zip(*(self.values[name] for name in self._layout), strict=True)),
            dict(self._layout),
            orient="row",
        )

    def column(self, name: str) -> list[Any]:
        """Return the values of a column."""
        return self.values[name] if self._given is None else self._given[name].to_list()

    def columns(self, names: Sequence[str]) -> pl.DataFrame:
        """Return some of the columns as a frame."""
        if self._given is not None:
            return self._given.select(names)
        return pl.DataFrame(
            [pl.Series(name, self.values[name], self._layout[name]) for name in names]
        )

    def picked(self, places: Sequence[int]) -> Rows:
        """Return the rows at *places*, in this order."""
        if self._given is not None:
            return Rows.of_frame(self._given[places])
        picked = {name: [column[i] for i in places] for name, column in self.values.items()}
        return Rows.of_values(picked, self._layout)

    def with_head(
        self, head: Mapping[str, list[Any]], layout: Mapping[str, Any], without: Sequence[str]
    ) -> Rows:
        """Return the rows with other columns in front.

        Args:
            head: the values of these columns.
            layout: their types.
            without: columns that go.
        """
        if self._given is not None:
            series = [pl.Series(name, head[name], kind) for name, kind in layout.items()]
            kept_columns = self._given.drop(without).get_columns()
            return Rows.of_frame(pl.DataFrame([*series, *kept_columns]))
        kept = {name: kind for name, kind in self._layout.items() if name not in without}
        return Rows.of_values(
            {**head, **{name: self.values[name] for name in kept}}, {**layout, **kept}
        )
