"""External streams in a SELECT: rows that are fetched from other deployments, as few as will do.

What is computed where the rows are is `penstock.link.pushdown`'s matter. Refused:
`_tp_append_time`, which only a live row has.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from sqlglot import exp

from penstock.catalog.model import External, Table, TableVersion
from penstock.catalog.reader import CatalogReader
from penstock.link import external, pushdown
from penstock.link.pool import Links
from penstock.outbound.reach import Outbound

#: virtual columns: where in the other side's log a row stands
_PLACES = {"_tp_sn": pa.int64(), "_tp_shard": pa.int32()}


@dataclass(frozen=True)
class FarRows:
    """Rows of another deployment that a query needs: those that meet the conditions."""

    entry: External
    columns: tuple[str, ...]
    conditions: tuple[exp.Expr, ...]


class ExternalRows:
    """Thread-safe. Passwords come from the deployment's secret files, once for each question."""

    def __init__(self, catalog: CatalogReader, data_dir: Path, outbound: Outbound) -> None:
        """*outbound*: which hosts may be asked."""
        self._reader = catalog
        self._data_dir = data_dir
        self._outbound = outbound
        self._links = Links()
        self._threads = ThreadPoolExecutor(8, "far")

    def find(self, database: str, name: str) -> External | None:
        """The external stream *name*, or the one that a view of this name writes."""
        return pushdown.find(self._reader.catalog, database, name)

    def whole(self, tree: exp.Query, database: str, timezone: str) -> pa.Table | None:
        """The answer of the one deployment that all tables of the query are of; None where there is
        no such one.
        """
        sent = pushdown.whole(tree, database, self.find)
        if sent is None:
            return None
        first, text = sent
        (replicas,) = external.addresses(
            first, self._data_dir, self._outbound.reach(first.maker, link=True)
        )
        return self._links.query(replicas, text, first.remote_database, timezone)

    def rows(self, far: FarRows, timezone: str) -> pa.Table:
        """`tbname` and the columns of the rows of every shard; times without a zone, as DuckDB has
        them.
        """
        entry = far.entry
        sql = pushdown.rows(entry, far.columns, far.conditions)
        shards = external.addresses(
            entry, self._data_dir, self._outbound.reach(entry.maker, link=True)
        )
        parts = self._threads.map(
            lambda replicas: self._links.query(replicas, sql, entry.remote_database, timezone),
            shards,
        )
        kinds = _PLACES | {
            c.name: c.type.arrow(entry.precision) for c in (*entry.columns, *entry.tags)
        }
        wanted = [("tbname", pa.string()), *((c, _naive(kinds[c])) for c in far.columns)]
        return pa.concat_tables([part.cast(pa.schema(wanted)) for part in parts])

    def close(self) -> None:
        self._links.close()


def as_table(entry: External) -> Table:
    """An external stream as a table of nowhere: its names and types."""
    version = TableVersion(0, entry.columns, entry.tags)
    kind = "stable" if entry.tags else "plain"
    return Table(
        entry.id,
        entry.database,
        entry.name,
        kind,  # type: ignore[arg-type]
        "",
        0,
        entry.precision,
        (version,),
        entry.key_column,
    )


def _naive(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind
