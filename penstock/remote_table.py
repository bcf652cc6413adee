"""`RemoteTable`s by builder: tables of this or another deployment, subscribed to or taken as a
snapshot.

    from penstock import remote_table table = remote_table.in_local_cluster("plant",
    "by_minute").subscribe(included_columns=["_wstart", "n"]) table =
    remote_table.for_remote_cluster("http://cloud:7700").query_name("plant").table_name("by_minute").blink(True).subscribe()

The deployments are those of `penstock.uri.session`. Nothing goes over the network before
`subscribe` or `snapshot`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from penstock import uri as uris
from penstock.catalog.model import Table
from penstock.errors import RemoteError, SchemaError
from penstock.link.description import Description
from penstock.link.mirror import RemoteTable
from penstock.link.remote_request import MirrorOptions, RemoteTarget
from penstock.link.snapshot import snapshot
from penstock.link.uris import DEFAULT_RETRY_WINDOW_MS
from penstock.sql.dialect import tokenize
from penstock.sql.parsers.column_types import TypeParser
from penstock.sql.plan import Column, Precision
from penstock.sql.source import Source
from penstock.types import FROM_ARROW, ColumnType

Definition: TypeAlias = "Mapping[str, str | pa.DataType] | pa.Schema | Description | Table"


@dataclass(frozen=True)
class RemoteTableBuilder:
    """Each method gives a builder with one thing more."""

    _url: str | None = None
    _query: str | int | None = None
    _table: str | None = None
    _definition: Description | None = None
    _options: MirrorOptions = field(default_factory=MirrorOptions)

    def query_name(self, name: str | int) -> RemoteTableBuilder:
        """A stream, a view or a database, by name or by serial."""
        return dataclasses.replace(self, _query=name)

    def table_name(self, name: str) -> RemoteTableBuilder:
        return dataclasses.replace(self, _table=name)

    def table_definition(self, definition: Definition) -> RemoteTableBuilder:
        """What the table looks like: then `subscribe` works while the other side is down. Names to
        types (`"INT"`, `pa.int32()`), an Arrow schema, or a table's own description.
        """
        return dataclasses.replace(self, _definition=definition_of(definition))

    def blink(self, value: bool | Literal["require"] = True) -> RemoteTableBuilder:
        """Only the rows of the newest update cycle."""
        options = dataclasses.replace(
            self._options, blink=bool(value), blink_required=value == "require"
        )
        return dataclasses.replace(self, _options=options)

    def subscribe(
        self,
        included_columns: Sequence[str] | None = None,
        *,
        clear_on_disconnect: bool = True,
        retry_window_ms: int = DEFAULT_RETRY_WINDOW_MS,
        max_retries: int = 0,
        filters: str = "",
        wait_timeout_ms: int | None = None,
    ) -> RemoteTable:
        """A table that follows the one over there.

        Args:
            included_columns: only these, in this order; by default all.
            clear_on_disconnect: show no rows while cut off (else those that were there).
            retry_window_ms: for how long it is tried to come back.
            max_retries: how often within that; 0: as often as it takes.
            filters: a condition on rows, computed over there.
            wait_timeout_ms: for how long the first rows are waited for.

        Raises:
            RemoteError: query or table name are missing; the other side is not there (and no
                definition was given).
        """
        options = dataclasses.replace(
            self._options,
            columns=_names(included_columns),
            on_disconnect="clear" if clear_on_disconnect else "retain",
            retry_window_ms=retry_window_ms,
            max_retries=max_retries,
            where=filters,
            wait_timeout_ms=wait_timeout_ms,
        )
        return RemoteTable(self._target(), options, self._definition).start()

    def snapshot(
        self,
        included_columns: Sequence[str] | None = None,
        *,
        filters: str = "",
        wait_timeout_ms: int | None = None,
    ) -> pa.Table:
        """The rows of this moment; an error when the other side is not there, definition or not."""
        options = MirrorOptions(
            columns=_names(included_columns), where=filters, wait_timeout_ms=wait_timeout_ms
        )
        return snapshot(self._target(), options)

    def _target(self) -> RemoteTarget:
        if self._query is None or not self._table:
            what = "query" if self._query is None else "table"
            raise RemoteError(f"which {what}?", code="E_URI", hint=f"builder.{what}_name(…)")
        home = uris.session_for(self._url)
        serial = self._query if isinstance(self._query, int) else None
        return RemoteTarget(
            home.replicas, self._table, None if serial is not None else str(self._query), serial
        )


def in_local_cluster(
    query_name: str | int, table_name: str, table_definition: Definition | None = None
) -> RemoteTableBuilder:
    """A table of the deployment of the default session."""
    builder = RemoteTableBuilder(None, query_name, table_name)
    return builder if table_definition is None else builder.table_definition(table_definition)


def for_remote_cluster(url: str) -> RemoteTableBuilder:
    """A table of another deployment; say which with `query_name` and `table_name`."""
    return RemoteTableBuilder(url)


def definition_of(given: Definition) -> Description:
    """Raises SchemaError where a type is none of ours."""
    if isinstance(given, Description):
        return given
    if isinstance(given, Table):
        return Description.of(given)
    items: list[tuple[str, Any]] = (
        list(zip(given.names, given.types, strict=True))
        if isinstance(given, pa.Schema)
        else list(given.items())
    )
    precision: Precision = next(
        (t.unit for _, t in items if isinstance(t, pa.TimestampType) and t.unit in ("us", "ns")),
        "ms",
    )
    return Description(
        0, "", "", tuple(Column(name, _type(name, kind)) for name, kind in items), (), precision
    )


def _type(name: str, kind: str | pa.DataType) -> ColumnType:
    if isinstance(kind, str):
        cursor = TypeParser(tokenize(kind), Source(kind))
        made = cursor.column_type(default_length=65_517)
        cursor.expect_end()
        return made
    if pa.types.is_timestamp(kind):
        return ColumnType("TIMESTAMP")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return ColumnType("VARCHAR", 65_517)
    if pa.types.is_binary(kind):
        return ColumnType("VARBINARY", 65_517)
    if pa.types.is_decimal(kind):
        return ColumnType("DECIMAL", precision=kind.precision, scale=kind.scale)
    if kind in FROM_ARROW:
        return ColumnType(FROM_ARROW[kind])
    raise SchemaError(f'no column type is {kind} (column "{name}")')


def _names(columns: Sequence[str] | None) -> tuple[str, ...]:
    if columns is None:
        return ()
    if isinstance(columns, str):
        return (columns,)
    if len({c.lower() for c in columns}) < len(columns):
        raise SchemaError("a column is included twice", code="E_DUPLICATE_COLUMN")
    return tuple(columns)
