"""What a name on the command line means, and the rows or events that come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.cli.following.rows import rows_table, selection_table, unknown_columns
from penstock.cli.table_name import TableName
from penstock.errors import CatalogError, ConfigError, PenstockError
from penstock.sql.words import in_backticks

if TYPE_CHECKING:
    from penstock.client.connection import Connection
    from penstock.client.subscribe import Subscription


@dataclass(frozen=True)
class Followed:
    """A table or stream: `columns` are those of the rows that come."""

    name: TableName
    is_stream: bool
    columns: pa.Schema

    @property
    def kind(self) -> str:
        return "stream" if self.is_stream else "table"


def find(client: Connection, name: TableName) -> Followed:
    """Find the table called *name*, else the stream. Raises PenstockError."""
    try:
        return Followed(name, False, _columns(client, name))
    except PenstockError:
        targets = _targets(client, name.database)
        if name.table.lower() not in targets:
            raise
    target = targets[name.table.lower()]
    if target is None:
        raise CatalogError(
            f"stream {name} has no result table",
            code="E_TABLE_NOT_EXIST",
            hint="--events shows its window events",
        )
    return Followed(name, True, _columns(client, target))


def _targets(client: Connection, database: str | None) -> dict[str, TableName | None]:
    """Return the table that each stream of a database writes to, if any; names are in lower
    case.
    """
    listed = client.query("SHOW STREAMS", database=database).table
    wanted = ("stream_name", "target_db", "target_table")
    columns = (listed.column(c).to_pylist() for c in wanted)
    return {
        str(stream).lower(): None if table is None else TableName(str(home), str(table))
        for stream, home, table in zip(*columns, strict=True)
    }


def require_stream(client: Connection, name: TableName) -> None:
    """Return if there is a stream *name*. Raises CatalogError."""
    if name.table.lower() not in _targets(client, name.database):
        raise CatalogError(
            f"there is no stream {name}",
            code="E_STREAM_NOT_EXIST",
            hint="window events are a stream's; without --events a table is followed, too",
        )


def _columns(client: Connection, name: TableName) -> pa.Schema:
    found: pa.Schema = client.query(f"SELECT * FROM {name.sql} LIMIT 0").table.schema
    return found.remove_metadata()


def subscribe(
    client: Connection,
    followed: Followed,
    children: Sequence[str],
    start: str,
    *,
    patience: float | None = None,
) -> Subscription:
    """Follow a table's or stream's rows; *children*: of these child tables only."""
    return client.subscribe(
        str(followed.name),
        stream=followed.is_stream,
        tables=children or None,
        start=start,
        patience=patience,
    )


def pieces(
    subscription: Subscription, columns: pa.Schema, notice: Callable[[str], None]
) -> Iterator[pa.Table]:
    """Yield rows as they come; *notice* is told, once, of columns that were added meanwhile."""
    told = False
    for update in subscription:
        fresh = [] if told else unknown_columns(update.items, columns)
        if fresh:
            told = True
            notice(f"columns were added: {', '.join(fresh)}; start again to see them")
        yield rows_table(update.items, columns)


def select_rows(
    client: Connection,
    followed: Followed,
    condition: str,
    start: str,
    *,
    patience: float | None = None,
) -> Iterator[pa.Table]:
    """Yield rows of a table for which *condition* is true, as they come.

    Raises:
        ConfigError: it is a stream.
        PenstockError: the condition does not fit the table.
    """
    if followed.is_stream:
        raise ConfigError(
            "--where is for tables", hint="name the table that the stream writes to: SHOW STREAMS"
        )
    columns = ", ".join(in_backticks(name) for name in followed.columns.names)
    text = f"SELECT {columns} FROM {followed.name.sql} WHERE {condition}"
    database = followed.name.database
    with client.stream(text, start=start, database=database, patience=patience) as stream:
        for message in stream:
            yield selection_table(message.rows)
