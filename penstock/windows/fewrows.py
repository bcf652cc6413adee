"""What kernels need to take a few rows without a frame: see `penstock.rows.few`.

Owns picking them (`Picked`: one child table's, and those that pass WHERE) and laying out results
that are columns of what they are made from (`FewResults`). Refused: rows that are deleted or
merged, and expressions of any other form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import polars as pl

from penstock.rows.few import Few
from penstock.windows.scope import FAILURES


@dataclass(frozen=True)
class FewResults:
    """What a call publishes: rows in the layout of `Emission.rows`, and what decides the partition
    of each. They may be none.
    """

    rows: Few
    hashes: Sequence[int]


@runtime_checkable
class TakesFew(Protocol):
    """A kernel that may take a few rows as values."""

    def few(self, rows: Few) -> FewResults | None:
        """Do what `apply` does with their frame, which publishes this; None: nothing was done, and
        `apply` has to.
        """
        ...


class Picked:
    """Which of a few rows a stream reads."""

    def __init__(self, child: str | None, where: pl.Expr | None) -> None:
        """*child*: only this table's rows, whatever the case of its name."""
        self._child = None if child is None else child.lower()
        self._where = where
        self._names = [] if where is None else list(dict.fromkeys(where.meta.root_names()))

    def of(self, rows: Few) -> list[int] | None:
        """The positions of the rows that are read; None: the kernel has to look at a frame of
        them.
        """
        if any(rows.columns["_op"]):
            return None
        found: Sequence[int] = range(len(rows))
        if self._child is not None:
            tables = rows.columns["tbname"]
            found = [i for i in found if tables[i].lower() == self._child]
        if self._where is None or not found:
            return list(found)
        try:
            asked = pl.DataFrame(
                [
                    pl.Series(name, [rows.columns[name][i] for i in found], rows.layout[name])
                    for name in self._names
                ]
            )
            passed = asked.select(self._where).to_series().to_list()
        except FAILURES:
            return None
        return (
            None
            if len(passed) != len(found)
            else [i for i, passes in zip(found, passed, strict=True) if passes]
        )


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
        self.none = FewResults(Few({name: [] for name in layout}, layout), ())

    def upserts(
        self, made: Mapping[str, Sequence[Any]], targets: Sequence[tuple[str, int, Sequence[Any]]]
    ) -> FewResults:
        """Rows that put; *targets*: of each its child table, that one's hash, and the tags'
        values.
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
        return FewResults(Few(columns, self._layout), [number for _, number, _ in targets])
