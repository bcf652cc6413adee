"""Rows of a virtual source for kernels that read again: those of its origins, joined by time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import polars as pl

from penstock.catalog.model import Table
from penstock.rows.versions import UPSERT
from penstock.sql.plan import Source
from penstock.windows.virtual import Mapper, merged
from spark_jobs.history import META, TableHistory
from spark_jobs.worker import Worker


class VirtualHistory:
    """`penstock.windows.kernel.History` of a virtual source: rows of its origins since the stream
    began, joined by time.
    """

    since_begin = True

    def __init__(
        self,
        worker: Worker,
        source: Source,
        bounds: Callable[[str, int], Mapping[int, int]],
        begins: Callable[[str], Mapping[int, int]],
    ) -> None:
        """*bounds*: (topic, its partitions) → as for `TableHistory`; *begins*: topic → as there."""
        self._worker = worker
        self._source = source
        self._bounds = bounds
        self._begins = begins
        self._mapper = Mapper(source)
        self._tables: dict[int, TableHistory] = {}

    def fetch(self, low: int, high: int, tables: Sequence[str] | None = None) -> pl.DataFrame:
        """Live rows with low <= ts <= high in the kernels' input layout, sorted by (tbname, ts)."""
        time = self._source.time_column
        parts = []
        for table in self._origins():
            wanted = None if tables is None else self._mapper.origins_of(table.id, tables)
            rows = self._origin(table).fetch(low, high, wanted)
            parts.append(
                self._mapper.rows(
                    table.id, table.time_column, rows.filter(pl.col("_offset") >= 0)
                ).drop("_origin")
            )
        names_of = [*META, *(c.name for c in (*self._source.columns, *self._source.tags))]
        types = {c.name: c.type.polars() for c in (*self._source.columns, *self._source.tags)}
        rows = pl.concat(parts) if parts else pl.DataFrame(schema={**META, **types})
        if tables is not None:
            rows = rows.filter(
                pl.col("tbname").str.to_lowercase().is_in([t.lower() for t in tables])
            )
        made = merged(rows.select(names_of).sort("_now", maintain_order=True), self._source).sort(
            "tbname", time
        )
        return made.with_columns(
            pl.int_range(pl.len(), dtype=pl.UInt32).alias("_step"),
            pl.lit(UPSERT, dtype=pl.Int8).alias("_op"),
        )

    def fetch_versions(
        self, low: int, high: int, tables: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """The same as `fetch`: a joined row is made of its parts, and has no versions of its
        own.
        """
        return self.fetch(low, high, tables)

    def mark(self) -> str:
        """See `penstock.windows.kernel.Rewindable`."""
        return json.dumps({str(table.id): self._origin(table).mark() for table in self._origins()})

    def at(self, mark: str) -> None:
        """See `penstock.windows.kernel.Rewindable`."""
        marks = json.loads(mark) if mark else {}
        for table in self._origins():
            self._origin(table).at(marks.get(str(table.id), ""))

    def _origins(self) -> list[Table]:
        found = (self._worker.catalog.catalog.table_by_id(i) for i in self._mapper.tables)
        return [t for t in found if t is not None]

    def _origin(self, table: Table) -> TableHistory:
        if table.id not in self._tables:
            source = Source(
                table.id,
                table.database,
                table.name,
                "stable" if table.tags else "plain",
                table.columns,
                table.tags,
                table.precision,
                key_column=table.key_column,
            )
            topic = table.topic
            partitions = table.partitions
            self._tables[table.id] = TableHistory(
                self._worker,
                source,
                topic,
                lambda: self._bounds(topic, partitions),
                lambda: self._begins(topic),
                self._worker.names_in_storage(table.id),
            )
        return self._tables[table.id]
