"""Where the groups of one exchange stream are finished: the exchange partition of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from penstock import names

PARTITIONS = names.BUILT_IN_TOPICS[names.EXCHANGE]


class GroupPlaces:
    """The exchange partitions of one stream's groups; worked out once a group."""

    def __init__(self, target: str, keys: Sequence[str], only: int | None) -> None:
        """
        Args:
            target: table of the results.
            keys: columns that hold the keys of groups.
            only: the partition of all groups; None: each has its own.
        """
        self._target = target
        self._keys = list(keys)
        self._only = only
        self._known: dict[tuple[Any, ...], int] = {}

    def add_to(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return *rows* with `_place`, the exchange partition of each one's group."""
        if self._only is not None:
            return rows.with_columns(pl.lit(self._only).alias("_place"))
        groups = rows.select(self._keys).unique(maintain_order=True)
        places = groups.with_columns(
            _place=pl.Series([self._place(k) for k in groups.rows()], dtype=pl.Int64)
        )
        return rows.join(places, on=self._keys, how="left", nulls_equal=True, maintain_order="left")

    def _place(self, values: tuple[Any, ...]) -> int:
        if values not in self._known:
            self._known[values] = names.group_id(self._target, values) % PARTITIONS
        return self._known[values]
