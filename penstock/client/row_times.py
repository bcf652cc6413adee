"""Times of rows that the notifier sends: ticks on the wire, times for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.notebook.markup import Rows

if TYPE_CHECKING:
    from penstock.client.at_nodes import Statements

#: of window events
_EVENT_TIMES = ("windowStart", "windowEnd")


class RowTimes:
    """Asks once which columns are times, when the first rows are shown."""

    def __init__(self, ask: Callable[[], Mapping[str, str]] | None = None) -> None:
        """
        Args:
            ask: returns the unit of each column that is a time (`ms`, `us`, `ns`). May raise
                PenstockError: then ticks are shown.
        """
        self._ask = ask
        self._units: Mapping[str, str] = {}

    def shown(self, names: Sequence[str], rows: Rows) -> Rows:
        """Return *rows* with times in place of ticks."""
        if rows and self._ask is not None:
            ask = self._ask
            self._ask = None
            try:
                self._units = ask()
            except PenstockError:
                return rows
        units = [self._units.get(name) for name in names]
        return [[_time(*pair) for pair in zip(row, units, strict=True)] for row in rows]


def _time(value: Any, unit: str | None) -> Any:
    """Return ticks as ISO text; anything else as it is."""
    if unit is None or not isinstance(value, int):
        return value
    try:
        return pa.scalar(value, pa.timestamp(unit)).cast(pa.string()).as_py()
    except (pa.ArrowException, OverflowError):  # beyond what a time can be
        return value


def time_units(connection: Statements, request: Mapping[str, Any]) -> dict[str, str]:
    """Return the unit of each column that is a time, of the rows or events that *request* asks for.
    Raises PenstockError.
    """
    # a program that shows no rows does not load it
    from penstock.client.stream_table_sql import spell_path

    if request["what"] == "events":
        return dict.fromkeys(_EVENT_TIMES, _precision(connection, request["stream"]))
    table = request.get("table") or _target(connection, request["stream"])
    schema = connection.query(f"SELECT * FROM {spell_path(table)} LIMIT 0").table.schema
    return {field.name: field.type.unit for field in schema if pa.types.is_timestamp(field.type)}


def _precision(connection: Statements, name: str) -> str:
    wanted = name.partition(".")[0].lower()
    listed = connection.query("SELECT name, `precision` FROM information_schema.ins_databases")
    return next((str(unit) for found, unit in listed if str(found).lower() == wanted), "ms")


def _target(connection: Statements, stream: str) -> str:
    """Return the table that a stream writes to; the stream's own name when there is none."""
    database, _, wanted = stream.partition(".")
    listed = connection.query("SHOW STREAMS", database=database).table
    columns = [listed.column(n).to_pylist() for n in ("stream_name", "target_db", "target_table")]
    for name, home, table in zip(*columns, strict=True):
        if str(name).lower() == wanted.lower() and table is not None:
            return f"{home}.{table}"
    return stream
