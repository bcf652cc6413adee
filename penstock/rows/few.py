"""A few rows as Python's values, where frames and arrays would be most of the work.

The stream jobs get most records one by one, and what a frame, a query or an array costs is the same
for one row as for hundreds. A few rows may therefore go a short way from their record to their
result. It is a short cut and never a meaning of its own: whoever is given a few rows does exactly
what it would do with their frame, or says that it cannot and has done nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl


@dataclass(frozen=True)
class Few:
    """Rows: `columns`, values by name, all of one length, and their types in a frame. Nobody
    changes them.
    """

    columns: Mapping[str, list[Any]]
    layout: Mapping[str, Any]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The same as a frame, for who cannot do without."""
        # by rows: polars makes a few of them in a third of the time that as many columns take
        return pl.DataFrame(
            list(zip(*(self.columns[name] for name in self.layout), strict=True)),
            dict(self.layout),
            orient="row",
        )
