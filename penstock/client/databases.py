"""Databases and partitioned tables, where rows of subscriptions stay, as users of DolphinDB
make them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.client.at_nodes import AtNodes, Statements
from penstock.client.old_names import ON_DATABASE, OldNames
from penstock.client.table_handles import SINK_KEY, PartitionedTable, TableDefinition, quote_name
from penstock.errors import CatalogError, SchemaError

_SCHEMES = ("VALUE", "RANGE", "HASH", "LIST", "COMPO", "SEQ")
_MAX_PARTITIONS = 16


class Database(OldNames):
    """A place for partitioned tables, as `make_database` gives it."""

    _OLD = ON_DATABASE

    def __init__(self, client: Statements, name: str) -> None:
        self._client = client
        self.name = name

    def create_partitioned_table(
        self,
        table: TableDefinition,
        table_name: str,
        partition_columns: str | Sequence[str] = (),
        *,
        keep: str | None = None,
    ) -> PartitionedTable:
        """Make a table for rows to stay. Rows are spread over partitions by table name here, so
        *partition_columns* are only checked.

        Args:
            table: its columns, the time first.
            table_name: its name.
            partition_columns: columns that the reference would partition by.
            keep: how long rows stay, as in SQL: `30d`; by default for ever.
        """
        wanted = (
            [partition_columns] if isinstance(partition_columns, str) else list(partition_columns)
        )
        unknown = [c for c in wanted if c.lower() not in {n.lower() for n in table.names}]
        if unknown:
            raise CatalogError(
                f"partition column {unknown[0]} is no column of the table", code="E_NO_COLUMN"
            )
        first, *others = table.columns_sql().split(", ", 1)
        columns = ", ".join([first, f"{SINK_KEY} BIGINT COMPOSITE KEY", *others])
        kept = f" KEEP {keep}" if keep else ""
        self._client.execute(
            f"CREATE TABLE {quote_name(self.name)}.{quote_name(table_name)} ({columns}){kept}"
        )
        return PartitionedTable(self._client, f"{self.name}.{table_name}", table.names)

    def load_table(self, table_name: str) -> PartitionedTable:
        """A partitioned table that was made before. Raises CatalogError."""
        found = self._client.query(f"DESCRIBE {quote_name(self.name)}.{quote_name(table_name)}")
        return PartitionedTable(
            self._client,
            f"{self.name}.{table_name}",
            [str(r[0]) for r in found.rows if r[0] != SINK_KEY],
        )


class Databases(AtNodes):
    """The part of `Connection.ha` that deals with them."""

    def exists_database(self, name: str) -> bool:
        """Tell whether there is a database; `dfs://stock` means stock."""
        wanted = _database(name).lower()
        return any(
            str(row[0]).lower() == wanted for row in self._connection.query("SHOW DATABASES").rows
        )

    def drop_database(self, name: str) -> None:
        """Drop a database with its tables. Raises CatalogError."""
        self._connection.execute(f"DROP DATABASE {quote_name(_database(name))}")

    def make_database(
        self,
        name: str,
        partition_type: str | None = None,
        partition_scheme: Sequence[Any] | None = None,
    ) -> Database:
        """Make a database, or take the one there is: the reference's `database`.

        Args:
            name: `stock` or `dfs://stock`.
            partition_type: VALUE, RANGE, HASH, …; rows are spread by their table's name here.
            partition_scheme: one entry per partition: a database gets as many partitions, at most
                16.
        """
        if partition_type is not None and str(partition_type).upper() not in _SCHEMES:
            raise SchemaError(
                f"no such partition type: {partition_type}",
                code="E_BODY",
                hint=f"one of {', '.join(_SCHEMES)}",
            )
        count = (
            min(max(len(partition_scheme or ()), 1), _MAX_PARTITIONS)
            if partition_scheme is not None
            else 4
        )
        self._connection.execute(
            f"CREATE DATABASE IF NOT EXISTS {quote_name(_database(name))} PARTITIONS {count}"
        )
        return Database(self._connection, _database(name))


def _database(name: str) -> str:
    return name.partition("://")[2] if "://" in name else name
