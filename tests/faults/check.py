"""What a check is: it sets something up before the fault and verifies it when all has gone
through.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext

import polars as pl

from tests.faults.load import Load
from tests.faults.world import World, persistently


class Check(ABC):
    """Made anew for each scenario; `db` is the database of that scenario, whose supertable `m` the
    load writes.
    """

    name: str
    #: streams on streams
    depth = 1

    def __init__(self, world: World, db: str) -> None:
        self.world = world
        self.db = db
        self.client = world.client
        self.streams: list[str] = []

    @abstractmethod
    def setup(self) -> None:
        """Before the load begins."""

    @abstractmethod
    def verify(self, load: Load) -> None:
        """When the load has ended and all has gone through."""

    def meanwhile(self) -> AbstractContextManager[None]:
        """What is also the case while the fault happens."""
        return nullcontext()

    def drop(self) -> None:
        """Drop what was made in the mesh, the last first; the database goes behind that."""
        for stream in self.streams[::-1]:
            self.execute(f"DROP STREAM IF EXISTS {stream}")

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Whatever became of it."""

    def execute(self, sql: str) -> None:
        persistently(lambda: self.client.execute(sql, database=self.db))

    def stream(
        self, name: str, query: str, options: str = "", *, tags: str = "", notify: str = ""
    ) -> None:
        self.streams.append(name)
        self.client.execute(
            f"CREATE STREAM {name} {options} INTO {name}_r {tags} AS {query} {notify}",
            database=self.db,
        )

    def ask(self, sql: str) -> pl.DataFrame:
        return persistently(lambda: pl.DataFrame(self.client.query(sql, database=self.db).table))

    def same(self, found: pl.DataFrame, expected: pl.DataFrame, what: str) -> None:
        """Compare as sets of rows; numbers with a fraction as far as sums in another order
        agree.
        """
        expected = expected.rename(dict(zip(expected.columns, found.columns, strict=True)))
        left, right = (
            f.with_columns(pl.col(pl.Float64, pl.Float32).round(6)).sort(pl.all())
            for f in (found, expected)
        )
        right = right.cast({c: t for c, t in left.schema.items() if right.schema[c] != t})  # type: ignore[arg-type]
        if not left.equals(right):
            lost = right.join(left, on=left.columns, how="anti", nulls_equal=True)
            more = left.join(right, on=left.columns, how="anti", nulls_equal=True)
            raise AssertionError(
                f"{what}: {left.height} rows, expected {right.height}\nmissing {lost.head(5)}\nnot expected {more.head(5)}"
            )
