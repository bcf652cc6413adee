"""What kernels share to take a few rows without a frame: see `penstock.rows.rows`.

Owns picking the rows that a stream reads (`Picked`: one child table's, and those that pass WHERE)
and laying out results that are columns of what they are made from (`FewLayout`). Knows no rows that
are deleted or merged, and no expressions of any other form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import polars as pl

from penstock.rows.rows import Rows
from penstock.windows.rows.scope import FAILURES


@dataclass(frozen=True)
class FewResults:
    """What a call publishes: rows in the layout of `Emission.rows`, and what decides the partition
    of each. They may be none.
    """

    rows: Rows
    hashes: Sequence[int]


@runtime_checkable
class TakesFew(Protocol):
    """A kernel that may take a few rows without a frame."""

    def take_few(self, rows: Rows) -> FewResults | None:
        """Do what `apply` does with their frame, and return what that publishes. Return None if
        nothing was done and `apply` has to.
        """
        ...


class Picked:
    """Which of a few rows a stream reads."""

    def __init__(self, child: str | None, where: pl.Expr | None) -> None:
        """*child*: only this table's rows, whatever the case of its name."""
        self._child = None if child is None else child.lower()
        self._where = where
        self._names = [] if where is None else list(dict.fromkeys(where.meta.root_names()))

    def of(self, rows: Rows) -> Rows | None:
        """Return the rows that are read, or None if the kernel has to look at a frame of them."""
        if any(rows.column("_op")):
            return None
        if self._child is not None:
            tables = rows.column("tbname")
            rows = _keep_rows(rows, [name.lower() == self._child for name in tables])
        if self._where is None or not len(rows):
            return rows
        try:
            passed = rows.columns(self._names).select(self._where).to_series().to_list()
        except FAILURES:
            return None
        return _keep_rows(rows, passed) if len(passed) == len(rows) else None


def _keep_rows(rows: Rows, wanted: Sequence[bool | None]) -> Rows:
    """Return those that are *wanted*."""
    if all(wanted):
        return rows
    return rows.picked([i for i, is_wanted in enumerate(wanted) if is_wanted])


class FewLayout:
    """Results whose columns are columns of what they are made from."""

    def __init__(
        self, columns: Mapping[str, str | None], tags: Sequence[str], layout: Mapping[str, Any]
    ) -> None:
        """
        Args:
            columns: of each of the target's columns the one that it is; None: it has no values.
            layout: of `Emission.rows`.
        """
        self._columns = columns
        self._tags = tags
        self._layout = layout
        self.none = FewResults(Rows.of_values({name: [] for name in layout}, layout), ())

    def upserts(
        self, made: Mapping[str, Sequence[Any]], targets: Sequence[tuple[str, int, Sequence[Any]]]
    ) -> FewResults:
        """Return rows that put.

        Args:
            made: the columns that results are made from.
            targets: of each row its child table, that one's hash, and the tags' values.
        """
        count = len(targets)
        columns: dict[str, list[Any]] = {
            "tbname": [name for name, *_ in targets],
            "_op": [0] * count,
        }
        for name, source in self._columns.items():
            columns[name] = [None] * count if source is None else list(made[source])
        for i, tag in enumerate(self._tags):
            columns[tag] = [values[i] for *_, values in targets]
        rows = Rows.of_values(columns, self._layout)
        return FewResults(rows, [number for _, number, _ in targets])
