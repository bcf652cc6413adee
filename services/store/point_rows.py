"""The values of one SELECT with RANGE at points in time: the rows that they are made of are found
when the query is written for DuckDB, and read when it is executed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import polars as pl
from sqlglot import exp

from penstock.sql.relational import ComputedRows, QueryPlan
from services.store.interp import BoundPoints
from services.store.plan_notes import STORE, RowEngine, describe_points
from services.store.plans import Translated


class PointTables(Protocol):
    """A query that is being written for its engine."""

    def write(self, plan: QueryPlan) -> Translated:
        """Return what the engine gets for *plan*, whose tables become relations."""
        ...


class PointReader(PointTables, Protocol):
    """A query that is being executed."""

    def read(self, text: str) -> pl.DataFrame:
        """Return the rows of the engine's *text*, which are no more than an answer may have."""
        ...

    def add_frame(self, name: str, frame: pl.DataFrame) -> None:
        """Let a relation have the rows of *frame*."""
        ...


class PointRows:
    """The values of one select. `node` is what they are in a plan."""

    #: the values are made here, of rows that DuckDB has read
    engine = RowEngine(STORE)
    is_filled = True
    sql = ""

    def __init__(self, select: exp.Select, bound: BoundPoints, relation: str) -> None:
        """
        Args:
            relation: name of the values.
        """
        self._bound = bound
        self.node = describe_points(select, bound, relation)
        #: DuckDB's text of the rows, once they are found
        self._text = ""

    def place(self, queries: PointTables) -> ComputedRows:
        """Find the rows that are read; return the node with them in it."""
        done = queries.write(self._bound.plan)
        self._text = done.text
        return replace(self.node, source=replace(self._bound.source, query=done.placed))

    def fill(self, queries: PointReader, *, compute: bool) -> None:
        """Let the relation have its rows.

        Args:
            compute: else it has none of them, and nothing is read.
        """
        text = self._text if compute else f"SELECT * FROM ({self._text}) LIMIT 0"
        queries.add_frame(self.node.relation, self._bound.at_points(queries.read(text)))
