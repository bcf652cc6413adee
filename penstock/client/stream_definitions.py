"""Stream tables before they are made: `stream_table`, `keyed_stream_table`,
`latest_keyed_stream_table` and `changelog_stream_table`.

As in DolphinDB, each gives a table that nobody else sees; `client.ha.share` makes it. What it
becomes here is a stream table of a raft group like any other, so it needs a time as its first
column: without one it gets `arrived`, which the leader fills and `StreamTable.select` leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.client.table_handles import ARRIVED, CHANGELOG_TYPE, TableDefinition, quote_name
from penstock.errors import SchemaError


class StreamDefinition(TableDefinition):
    """Columns, the rule about keys, and perhaps the first rows, by column."""

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[str],
        key_column: Sequence[str] = (),
        rule: str = "first",
        time_column: Sequence[str] = (),
        values: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        """
        Args:
            key_column: columns of the key; none: rows are not looked at.
            rule: `first`, `latest` or `changelog`.
            time_column: for `latest`: one column, or a date and a time.
            values: rows to begin with.

        Raises:
            SchemaError: names and types do not fit each other.
        """
        super().__init__(names, types)
        self.values = dict(values or {})
        self._key = tuple(key_column)
        self._rule = rule
        self._time = tuple(time_column)
        self._stamped = self.types[0] != "TIMESTAMP"

    def columns_sql(self) -> str:
        first = [f"{ARRIVED} TIMESTAMP"] if self._stamped else []
        last = [f"{CHANGELOG_TYPE} VARCHAR(1)"] if self._rule == "changelog" else []
        return ", ".join([*first, super().columns_sql(), *last])

    def options_sql(self) -> list[str]:
        """For WITH (here)."""
        found = [f"timestamp_column='{ARRIVED}'"] if self._stamped else []
        found += [f"key_column={_list_names(self._key)}"] if self._key else []
        found += [f"key_rule='{self._rule}'"] if self._rule != "first" else []
        found += [f"time_column={_list_names(self._time)}"] if self._time else []
        return found + ([f"status_column='{CHANGELOG_TYPE}'"] if self._rule == "changelog" else [])


Columns = Sequence[str] | Mapping[str, Sequence[Any]]


def stream_table(columns: Columns, types: Sequence[str]) -> StreamDefinition:
    """A stream table that takes every row.

    Args:
        columns: names, or names with the values of the first rows.
        types: of the columns.

    Raises:
        SchemaError: names and types do not fit each other.
    """
    return _define(columns, types)


def keyed_stream_table(
    key_column: str | Sequence[str], columns: Columns, types: Sequence[str]
) -> StreamDefinition:
    """A stream table that takes the first row of each key. Arguments and errors are those of
    `stream_table`.

    Args:
        key_column: one column or several.
        columns: names, or names with the values of the first rows.
        types: of the columns.
    """
    return _define(columns, types, key_column)


def latest_keyed_stream_table(
    key_column: str | Sequence[str],
    time_column: str | Sequence[str],
    columns: Columns,
    types: Sequence[str],
) -> StreamDefinition:
    """A stream table that takes a row when it is newer than the last one of its key; of the rows of
    one write only the newest.

    Args:
        key_column: one column or several.
        time_column: what is compared: one column, or a date and a time.
        columns: names, or names with the values of the first rows.
        types: of the columns.
    """
    return _define(columns, types, key_column, "latest", time_column)


def changelog_stream_table(
    key_column: str | Sequence[str], columns: Columns, types: Sequence[str]
) -> StreamDefinition:
    """A stream table that takes every row and says in `changelog_type` whether its key was new (N)
    or there (U).

    Args:
        key_column: one column or several.
        columns: names, or names with the values of the first rows.
        types: of the columns.
    """
    return _define(columns, types, key_column, "changelog")


def _define(
    columns: Columns,
    types: Sequence[str],
    key: str | Sequence[str] = (),
    rule: str = "first",
    time: str | Sequence[str] = (),
) -> StreamDefinition:
    names = list(columns)
    keys, times = ([given] if isinstance(given, str) else list(given) for given in (key, time))
    unknown = [c for c in (*keys, *times) if c.lower() not in {n.lower() for n in names}]
    if unknown:
        raise SchemaError(
            f"{unknown[0]} is no column of the table",
            code="E_BODY",
            hint=f"columns are {', '.join(names)}",
        )
    return StreamDefinition(
        names, types, keys, rule, times, columns if isinstance(columns, Mapping) else None
    )


def _list_names(names: Sequence[str]) -> str:
    return "'" + ", ".join(quote_name(n) for n in names).replace("'", "''") + "'"
