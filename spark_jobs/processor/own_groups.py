"""The part of a stored history whose groups one exchange partition finishes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from penstock.windows.kernel import LATEST
from spark_jobs.history import TableHistory
from spark_jobs.processor.route import Route
from spark_jobs.virtual_history import VirtualHistory


class OwnGroups:
    """The part of a history whose groups one exchange partition finishes.

    A kernel computes every group that it reads rows of: others' would be published from here too,
    as far as this partition knows them.
    """

    def __init__(self, stored: TableHistory | VirtualHistory, route: Route, partition: int) -> None:
        self._stored = stored
        self._route = route
        self._partition = partition
        self.since_begin = stored.since_begin

    def fetch(self, low: int, high: int, tables: Sequence[str] | None = None) -> pl.DataFrame:
        """See `penstock.windows.kernel.History`."""
        return self._route.select_finished(self._partition, self._stored.fetch(low, high, tables))

    def fetch_versions(
        self, low: int, high: int, tables: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """See `penstock.windows.kernel.History`."""
        return self._route.select_finished(
            self._partition, self._stored.fetch_versions(low, high, tables)
        )

    def mark(self) -> str:
        """See `penstock.windows.kernel.Rewindable`."""
        return self._stored.mark()

    def at(self, mark: str) -> None:
        """See `penstock.windows.kernel.Rewindable`."""
        self._stored.at(mark)

    def stretches(self, most: int) -> list[int]:
        """See `TableHistory`; no history of a virtual table is filled."""
        return (
            [LATEST] if isinstance(self._stored, VirtualHistory) else self._stored.stretches(most)
        )
